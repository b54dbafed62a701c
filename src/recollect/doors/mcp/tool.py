"""A tool: a typed function with its contract's schema, whose every failure is an answer in its contract's shape."""

import contextlib
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar, get_args, get_origin

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field, ValidationError

from recollect import origin
from recollect.doors.caller import Caller
from recollect.doors.mcp import errors, schema
from recollect.errors import RecollectError
from recollect.flows.accounts.audit import outcome_of
from recollect.flows.defence.masking import counting_masked

# Parameters that the server fills in. `progress` tells the client how far a long call is, if the client asked for it.
CALLER = "caller"
PROGRESS = "progress"

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
MERGES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
ASKS_MODELS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True)

# Of an object or array inside a string: it is decoded at once, while everybody else waits.
MAX_ENCODED_CHARACTERS = 512 * 1024

Function = Callable[..., Awaitable[Any]]
CallerOf = Callable[[Any], Caller]
Answer = TypeVar("Answer", bound=BaseModel)

_log = logging.getLogger(__name__)


DEGRADED = "recollect/degraded"
"""The `_meta` key that says why semantic search did not run, for answers whose fields a contract fixes."""

WARNINGS = "recollect/warnings"
"""The key under which such an answer says what its caller should look at."""


MASKED = "recollect/masked"
"""The key under which an answer says how many secrets of each kind were written over."""


@dataclass(frozen=True, slots=True)
class Degradable(Generic[Answer]):
    """An answer in its contract's fields, and beside it why words alone count, if they do, and warnings."""

    answer: Answer
    degraded: str | None
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Worded(Generic[Answer]):
    """An answer for programs, and the text that a model reads in place of its JSON."""

    answer: Answer
    text: str


def meta(degraded: str | None, warnings: Sequence[str] = ()) -> dict[str, Any] | None:
    """The `_meta` of an answer."""
    said = ({} if degraded is None else {DEGRADED: degraded}) | ({WARNINGS: list(warnings)} if warnings else {})
    return said or None


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool before it is bound to an engine."""

    function: Function
    title: str
    annotations: ToolAnnotations
    refuse: errors.Answer


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of one module; `refuse` shapes their errors."""

    refuse: errors.Answer
    definitions: list[Definition] = field(default_factory=list)

    def tool(self, title: str, annotations: ToolAnnotations) -> Callable[[Function], Function]:
        """Add a function whose first parameter is the caller; its docstring is what a model reads."""

        def register(function: Function) -> Function:
            self.definitions.append(Definition(function, title, annotations, self.refuse))
            return function

        return register


def bound(definitions: Iterable[Definition], caller_of: CallerOf) -> list[Tool]:
    """The tools of one server."""
    return [ContractTool.define(definition, caller_of) for definition in definitions]


@cache
def _metadata(function: Function) -> FuncMetadata:
    """What a function takes and returns, worked out once for all servers of a process."""
    returned = inspect.signature(function, eval_str=True).return_annotation
    if get_origin(returned) in (Degradable, Worded):
        (returned,) = get_args(returned)
    return FuncMetadata(
        arg_model=schema.arguments_of(function, not_arguments=(CALLER, PROGRESS)),
        output_schema=schema.output_schema(returned),
    )


class ContractTool(Tool):
    """Unlike the SDK's own, it answers failures in the contract's words, and does not repair arguments."""

    caller_of: CallerOf = Field(exclude=True)
    refuse: errors.Answer = Field(exclude=True)
    tells_progress: bool = Field(exclude=True)

    @classmethod
    def define(cls, definition: Definition, caller_of: CallerOf) -> "ContractTool":
        function = definition.function
        metadata = _metadata(function)
        return cls(
            fn=function,
            name=function.__name__,
            title=definition.title,
            description=" ".join((function.__doc__ or "").split()),
            parameters=schema.input_schema(metadata.arg_model),
            fn_metadata=metadata,
            is_async=True,
            annotations=definition.annotations,
            caller_of=caller_of,
            refuse=definition.refuse,
            tells_progress=PROGRESS in inspect.signature(function).parameters,
        )

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> CallToolResult:
        """Call the function; whatever happens, the client gets a result."""
        unknown = [name for name in arguments if name not in self.parameters["properties"]]
        if refused := errors.unknown_arguments(unknown):
            return self.refuse(self.name, refused)
        try:
            given = self.fn_metadata.arg_model.model_validate(self._parsed(arguments))
        except ValidationError as problem:
            return self.refuse(self.name, errors.bad_arguments(problem, self.parameters))
        try:
            caller = self.caller_of(context.request_context.request)
            progress = {PROGRESS: context.report_progress} if self.tells_progress else {}
            with counting_masked() as masked:
                answer = _answer(await self.fn(caller, **given.model_dump_one_level(), **progress))
            if masked:
                answer = answer.model_copy(update={"meta": (answer.meta or {}) | {MASKED: dict(masked)}})
            return answer
        except RecollectError as problem:
            if outcome_of(problem) == "failed":
                origin.note_failure()
            return self.refuse(self.name, errors.refusal(problem))
        except Exception:  # noqa: BLE001  # the door: past it, the SDK would send the exception's own text
            _log.exception("Tool %s failed unexpectedly", self.name)
            origin.note_failure()
            return self.refuse(self.name, errors.CRASH)

    def _parsed(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Some clients send objects and arrays as JSON inside a string; text stays text, even if it is JSON.

        Others send null for what they leave out.
        """
        properties = self.parameters["properties"]
        optional = properties.keys() - set(self.parameters["required"])
        parsed = {name: value for name, value in arguments.items() if value is not None or name not in optional}
        for name, value in parsed.items():
            is_short = isinstance(value, str) and len(value) <= MAX_ENCODED_CHARACTERS
            if is_short and properties.get(name, {}).get("type") in ("object", "array"):
                with contextlib.suppress(ValueError, RecursionError):
                    parsed[name] = json.loads(value)
        return parsed


def _answer(result: BaseModel | list[BaseModel] | Degradable[Any] | Worded[Any]) -> CallToolResult:
    """The contract's JSON as text for the model to read, and the same as structured content for programs."""
    if isinstance(result, Degradable):
        return _answer(result.answer).model_copy(update={"meta": meta(result.degraded, result.warnings)})
    if isinstance(result, Worded):
        text = TextContent(type="text", text=result.text)
        return _answer(result.answer).model_copy(update={"content": [text]})
    if isinstance(result, list):
        items = [item.model_dump(mode="json") for item in result]
        return _content(items, {"result": items})
    dumped = result.model_dump(mode="json")
    return _content(dumped, dumped)


def _content(shown: Any, structured: dict[str, Any]) -> CallToolResult:
    text = json.dumps(shown, ensure_ascii=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=structured)
