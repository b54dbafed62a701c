"""JSON Schemas as the contracts write them: no generated titles, no `null` beside a type, nothing by reference."""

import inspect
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Annotated, Any, get_origin

from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, create_model

from recollect import checks

Schema = dict[str, Any]


class Arguments(ArgModelBase):
    """Arguments exactly as declared: an unknown name or another type is refused, not ignored and not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


# JSON has one kind of number: 5.0 is an integer to JSON Schema, so it is one here. To be named after Field.
WHOLE = BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)


Moment = Annotated[datetime, BeforeValidator(checks.moment)]
"""A date and time, which JSON has as text."""

AsOf = Annotated[Moment | None, Field(description="As it was at this time (default: now)")]
"""A moment in the past, of which a tool tells what it would have answered then."""


def arguments_of(function: Callable[..., Any], not_arguments: Collection[str]) -> type[Arguments]:
    """The arguments of a tool, from its signature."""
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    fields: dict[str, Any] = {
        each.name: (each.annotation, ... if each.default is each.empty else each.default)
        for each in parameters
        if each.name not in not_arguments
    }
    return create_model(function.__name__, __base__=Arguments, **fields)


def input_schema(arguments: type[BaseModel]) -> Schema:
    """What a client may send. An argument that may be left out says so by not being required, not by being nullable."""
    return {"required": [], **_Plain(arguments.model_json_schema(), nullable=False).root()}


def output_schema(returned: Any) -> Schema:
    """What a client gets as structured content, which is always an object: a list is put under `result`."""
    schema = _Plain(TypeAdapter(returned).json_schema(mode="serialization"), nullable=True).root()
    if get_origin(returned) is list:
        return {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    return schema


class _Plain:
    """Rewrites one generated schema."""

    def __init__(self, schema: Schema, *, nullable: bool) -> None:
        self._schema = schema
        self._definitions: Schema = schema.get("$defs", {})
        self._nullable = nullable

    def root(self) -> Schema:
        return self._rewritten(_without(self._schema, "description"))

    def _rewritten(self, schema: Schema) -> Schema:
        if reference := schema.get("$ref"):
            named = self._definitions[reference.rpartition("/")[2]]
            # A description of the class is for programmers; one at the field is the contract's.
            schema = {**_without(named, "description"), **_without(schema, "$ref")}
        if "anyOf" in schema:
            # A type or null, the only choice our models offer, as that type.
            (typed,) = (self._rewritten(choice) for choice in schema["anyOf"] if choice != {"type": "null"})
            if self._nullable:
                typed["type"] = [typed["type"], "null"]
            schema = {**typed, **_without(schema, "anyOf")}
        schema = _without(schema, "title", "$defs", "additionalProperties")
        if self._nullable or schema.get("default", ...) is None:
            schema = _without(schema, "default")
        if "properties" in schema:
            schema["properties"] = {name: self._rewritten(each) for name, each in schema["properties"].items()}
        if "items" in schema:
            schema["items"] = self._rewritten(schema["items"])
        return schema


def _without(schema: Schema, *names: str) -> Schema:
    return {key: value for key, value in schema.items() if key not in names}
