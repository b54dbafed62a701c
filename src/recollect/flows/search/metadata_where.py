"""Conditions on metadata, such as {"price": {"lt": 20}}, as the JSON path that PostgreSQL evaluates."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from recollect import checks
from recollect.errors import Invalid

# Each is evaluated for every item in scope.
MAX_CONDITIONS = 100
MAX_NESTING = 10

COMPARISONS = {"eq": "==", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
OPERATORS = (*COMPARISONS, "ne", "in", "nin", "contains", "icontains", "exists")
_PLAIN = (str, int, float, bool, type(None))


def json_path(conditions: Mapping[str, Any] | None, name: str) -> str | None:
    """One predicate for all conditions; None without any.

    A key has a value, which must be equal, or an object of operators, all of which must hold. `AND`, `OR` and `NOT`
    have lists of such conditions; `NOT` means none of them. A list in the metadata meets a condition if an element
    does. What is not there only meets `ne`, `nin`, `NOT` and `{"exists": false}`.
    """
    checks.metadata(conditions, name)
    if not conditions:
        return None
    predicates = _Predicates(name)
    return predicates.all_of(conditions, MAX_NESTING)


class _Predicates:
    """Predicates that are never unknown, so that each can be negated: a filter drops what cannot be compared."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._left = MAX_CONDITIONS

    def all_of(self, conditions: Any, nesting: int) -> str:
        """Holds if every condition does."""
        if not isinstance(conditions, Mapping) or not conditions:
            raise Invalid(f'{self._name} must have conditions such as {{"price": {{"lt": 20}}}}, not {conditions!r}')
        return " && ".join(f"({self._one(key, asked, nesting)})" for key, asked in conditions.items())

    def _one(self, key: str, asked: Any, nesting: int) -> str:
        if key in ("AND", "OR", "NOT"):
            return self._combined(key, asked, nesting - 1)
        place = f"$.{_quoted(key)}"
        if isinstance(asked, Mapping) and asked:
            return " && ".join(self._held(place, operator, value) for operator, value in asked.items())
        return self._held(place, "eq", asked)

    def _combined(self, key: str, asked: Any, nesting: int) -> str:
        if not isinstance(asked, list) or not asked:
            raise Invalid(f"{key} in {self._name} must be a list of conditions that is not empty")
        if nesting == 0:
            raise Invalid(f"{self._name} is nested too deeply: the limit is {MAX_NESTING} levels")
        parts = [f"({self.all_of(each, nesting)})" for each in asked]
        return f"!({' || '.join(parts)})" if key == "NOT" else (" || " if key == "OR" else " && ").join(parts)

    def _held(self, place: str, operator: str, value: Any) -> str:
        checks.one_of(operator, OPERATORS, f"an operator in {self._name}")
        if operator in ("in", "nin"):
            if not isinstance(value, Sequence) or isinstance(value, str):
                raise Invalid(f"The operator {operator} in {self._name} must have a list, not {value!r}")
            known = " || ".join(self._exists(place, f"@ == {self._literal(each)}") for each in value) or "(1 == 2)"
            return f"({known})" if operator == "in" else f"!({known})"
        if operator == "exists":
            return f"exists({place})" if value else f"!(exists({place}))"
        if operator in ("contains", "icontains"):
            flags = '"q"' if operator == "contains" else '"iq"'
            return self._exists(place, f"@ like_regex {_quoted(str(value))} flag {flags}")
        if operator == "ne":
            return f"!({self._exists(place, f'@ == {self._literal(value)}')})"
        return self._exists(place, f"@ {COMPARISONS[operator]} {self._literal(value)}")

    def _literal(self, value: Any) -> str:
        if not isinstance(value, _PLAIN):
            raise Invalid(f"{self._name} compares with a text, a number, true, false or null, not {value!r}")
        return _quoted(value)

    def _exists(self, place: str, test: str) -> str:
        self._left -= 1
        if self._left < 0:
            raise Invalid(f"{self._name} has more than {MAX_CONDITIONS} conditions: ask for fewer")
        return f"exists({place} ? ({test}))"


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
