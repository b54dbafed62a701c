"""What the fields of an imported record may hold: the same as the doors accept, so that every door can show it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, get_args

from recollect import checks
from recollect.errors import Invalid
from recollect.flows.chat_ids import is_stored_chat, mark, refuse_stored_chat
from recollect.flows.cognitive import agreement
from recollect.flows.gateway import MAX_URI_CHARACTERS
from recollect.flows.search.recall import CATEGORIES
from recollect.flows.transfer.import_lines import LARGEST_ID
from recollect.language.lengths import LENGTHS
from recollect.memory.cognitive.working import REASONS
from recollect.memory.memories import EVENTS
from recollect.memory.windows import Strategy

Fields = Mapping[str, Any]
Rule = Callable[[Any, str], object]
"""Takes a value and the name of its field, and raises Invalid if no door would accept the value there."""


def check_values(kind: str, fields: Fields) -> None:
    """Refuse a record that no door could have made; null, where the table has it, needs no rule."""
    for name, rule in _RULES[kind].items():
        if fields[name] is not None:
            rule(fields[name], name)
    if kind == "session":
        _check_session(fields)
    if kind == "memory" and not (fields["user_id"] or fields["agent_id"] or fields["session_id"]):
        raise Invalid("the memory has no user_id, agent_id or session_id: it needs one of them")


def check_positions(messages: Sequence[Fields], next_positions: Mapping[str, int]) -> None:
    """Refuse messages in places that their session has yet to hand out: new ones could not be stored there."""
    for fields in messages:
        free = next_positions[fields["session_id"]]
        if fields["position"] >= free:
            raise Invalid(f"position must be below {free}, the next_position of its session, not {fields['position']}")


def _check_session(fields: Fields) -> None:
    if fields["window_start"] > fields["next_position"]:
        raise Invalid(f"window_start must not be above next_position, which is {fields['next_position']}")
    owner = mark(fields["user_id"], fields["realm"])
    if is_stored_chat(fields["id"]) and not fields["id"].endswith(owner):
        raise Invalid("id is that of a gateway chat of another user, app or project than user_id and realm say")


def _object(value: Any, name: str) -> None:
    if not isinstance(value, dict):
        raise Invalid(f"{name} must be a JSON object")


def _one_of(*allowed: str) -> Rule:
    return lambda value, name: checks.one_of(value, allowed, name)


def _between(low: float, high: float) -> Rule:
    return lambda value, name: checks.number_between(value, low, high, name)


def _from(low: int) -> Rule:
    return lambda value, name: checks.between(value, low, LARGEST_ID, name)


def _own_session(value: str, name: str) -> None:
    refuse_stored_chat(checks.identifier(value, name))


def _uri(value: str, name: str) -> None:
    if len(checks.text(value, name)) > MAX_URI_CHARACTERS:
        raise Invalid(f"{name} is longer than {MAX_URI_CHARACTERS} characters")


_share = _between(0.0, 1.0)
_score = {"judge1_score": _share, "judge2_score": _share}
_scope: dict[str, Rule] = {
    "user_id": checks.identifier,
    "agent_id": checks.identifier,
    "session_id": _own_session,
}

_RULES: Mapping[str, Mapping[str, Rule]] = {
    "session": {
        "id": checks.identifier,
        "user_id": checks.identifier,
        "agent_id": checks.identifier,
        "title": checks.optional_text,
        "metadata": _object,
        "next_position": _from(0),
        "window_start": _from(0),
        "window_strategy": _one_of(*get_args(Strategy)),
        "window_max_messages": checks.positive,
        "window_max_tokens": checks.positive,
    },
    "message": {
        "session_id": checks.identifier,
        "position": _from(0),
        "role": checks.short_name,
        "speaker": checks.identifier,
        "content": checks.text,
    },
    "summary": {"until": _from(1), "content": checks.optional_text, "metadata": _object},
    "document": {"content": checks.text, "embedding": checks.embedding, "metadata": _object},
    "memory": {"text": checks.text, "category": _one_of(*CATEGORIES), "metadata": _object, **_scope},
    "memory_history": {
        "number": _from(1),
        "event": _one_of(*EVENTS),
        "old_memory": checks.optional_text,
        "new_memory": checks.optional_text,
        "user_id": checks.identifier,
        "session_id": checks.identifier,
    },
    "insight": {"content": checks.text, "fidelity": _share, "metadata": _object},
    "working_item": {"content": checks.text, "importance": _share},
    "stale_item": {"original_content": checks.text, "importance": _share, "reason": _one_of(*REASONS)},
    "episode": {"query": checks.text, "reward": _between(-1.0, 1.0), "reflection": checks.text},
    "graph_node": {"name": checks.short_name, "label": checks.short_name, "properties": _object},
    "graph_edge": {"relation": checks.short_name, "weight": _share, "properties": _object},
    "resource": {
        "user_id": checks.identifier,
        "uri": _uri,
        "title": checks.optional_text,
        "content": checks.text,
        "metadata": _object,
    },
    "golden_query": {"query": partial(checks.question, needs_words=False)},
    "golden_run": {"precision_at_5": _share, "baseline_precision": _share, "queries_tested": _from(0)},
    "golden_result": {"query_type": _one_of(*LENGTHS), "hits": _from(0)},
    "golden_query_baseline": {"hits": _from(0)},
    "judgement": {"query": checks.text, "kappa": _between(-1.0, 1.0), "agreement": _one_of(*agreement.NAMES), **_score},
    "judge_score": _score,
}
