"""The LLM protocol: what the rest of Recollect needs from a model that writes text, whatever its provider."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from recollect.errors import Unavailable
from recollect.inference.failures import Refused

if TYPE_CHECKING:
    from recollect.inference.requests.limits import Clock

M = TypeVar("M", bound=BaseModel)

SHARE_OF_ONE_TRY = 0.6

# How long a model is asked without what it refused. Models change behind their names, and an answer may be a mistake.
REFUSAL_SECONDS = 3600.0

# What a JSON schema may say that a provider's own enforcement does not know; our validation does.
_UNENFORCED = {
    *("title", "default", "examples", "format", "pattern", "minLength", "maxLength", "minItems", "maxItems"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems"),
}

# What providers put around a prompt: roles, and instructions for a schema.
_ADDED_TOKENS = 256

_AS_JSON = "Answer with one JSON object and nothing else. It must fit this JSON schema:\n"
_AGAIN = "\n\nYour last answer did not fit the schema ({fault}). Answer again, with the JSON object alone."


@dataclass(frozen=True, slots=True)
class Prompt:
    """What to ask, and for what: usage is counted by namespace and feature."""

    system: str
    user: str
    feature: str
    namespace: str
    max_tokens: int = 1024
    temperature: float | None = None
    """None leaves it to the model. A model that refuses to be told is asked without."""
    seconds: float | None = None
    """How long the answer may take, waiting for a turn and repeated attempts included; None is the setting."""


def most_tokens(prompt: Prompt, schema: dict[str, Any] | None = None) -> int:
    """The most that a request can take: no token is shorter than a byte, and providers add a little of their own."""
    said = len(prompt.system.encode()) + len(prompt.user.encode())
    return said + (0 if schema is None else len(json.dumps(schema))) + _ADDED_TOKENS + prompt.max_tokens


def one_try(seconds: float) -> float:
    """How long one attempt may take of the time there is: a provider that hangs leaves time for another."""
    return seconds * SHARE_OF_ONE_TRY


class Llm(Protocol):
    """Writes text. Failures are Unavailable (after the prompt's time, too), LimitReached or Misconfigured.

    None of them names a key.
    """

    @property
    def model_id(self) -> str:
        """Provider and model, as in `openai:gpt-4o`."""

    async def complete(self, prompt: Prompt) -> str:
        """The model's answer."""

    async def complete_as(self, prompt: Prompt, shape: type[M]) -> M:
        """The model's answer in a shape; one that does not fit is asked for once more, then it is Unavailable."""


class Writer(Protocol):
    """What an adapter brings: one answer to one prompt, in the shape of a JSON schema if one is given."""

    @property
    def model_id(self) -> str:
        """Provider and model."""

    async def write(self, prompt: Prompt, seconds: float, schema: dict[str, Any] | None = None) -> str:
        """One answer within so many seconds; Refused when the model does not take the request in this form."""


class Refusals:
    """Remembers for a while that a model refused a form of request."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: float | None = None

    def note(self) -> None:
        self._until = self._clock.now() + REFUSAL_SECONDS

    @property
    def are_fresh(self) -> bool:
        return self._until is not None and self._clock.now() < self._until


class WrittenLlm:
    """An Llm over any adapter: time, temperature and shapes are looked after in one place."""

    def __init__(self, writer: Writer, clock: Clock, seconds: float) -> None:
        self._writer = writer
        self._seconds = seconds
        self._refused_schema = Refusals(clock)
        self._refused_temperature = Refusals(clock)

    @property
    def model_id(self) -> str:
        return self._writer.model_id

    async def complete(self, prompt: Prompt) -> str:
        async with self._in_time(prompt):
            return await self._write(prompt)

    async def complete_as(self, prompt: Prompt, shape: type[M]) -> M:
        async with self._in_time(prompt):
            schema = strict_schema(shape)
            # Said in words too: not every server that is called compatible enforces a schema.
            asked = replace(prompt, system=f"{prompt.system}\n\n{_AS_JSON}{json.dumps(schema)}".strip())
            try:
                return _parsed(await self._shaped(asked, schema), shape)
            except ValidationError as problem:
                again = replace(asked, user=asked.user + _AGAIN.format(fault=_fault(problem)))
            try:
                return _parsed(await self._shaped(again, schema), shape)
            except ValidationError as problem:
                raise Unavailable(
                    f"{self.model_id} returned an invalid answer twice ({_fault(problem)}). "
                    "Try again, or choose another model."
                ) from None

    @asynccontextmanager
    async def _in_time(self, prompt: Prompt) -> AsyncIterator[None]:
        seconds = prompt.seconds or self._seconds
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise Unavailable(f"{self.model_id} did not answer within {seconds:g} s. Try again later.") from None

    async def _shaped(self, prompt: Prompt, schema: dict[str, Any]) -> str:
        if self._refused_schema.are_fresh:
            return await self._write(prompt)
        try:
            return await self._write(prompt, schema)
        except Refused:
            # Perhaps because of the schema, which older models do not take: the prompt says the same in words.
            answer = await self._write(prompt)
        self._refused_schema.note()
        return answer

    async def _write(self, prompt: Prompt, schema: dict[str, Any] | None = None) -> str:
        without, seconds = replace(prompt, temperature=None), prompt.seconds or self._seconds
        if prompt.temperature is None or self._refused_temperature.are_fresh:
            return await self._writer.write(without, seconds, schema)
        try:
            return await self._writer.write(prompt, seconds, schema)
        except Refused as problem:
            if "temperature" not in str(problem).lower():
                raise
        self._refused_temperature.note()
        return await self._writer.write(without, seconds, schema)


def strict_schema(shape: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a shape in the dialect that both providers enforce: everything required, nothing added."""
    schema: dict[str, Any] = _strict(shape.model_json_schema())
    return schema


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    kept = {key: value for key, value in node.items() if key not in _UNENFORCED}
    for named in ("properties", "$defs"):
        if named in kept:
            kept[named] = {name: _strict(entry) for name, entry in kept[named].items()}
    for nested in ("items", "prefixItems", "anyOf", "allOf", "oneOf"):
        if nested in kept:
            kept[nested] = _strict(kept[nested])
    if kept.get("type") == "object":
        kept |= {"required": list(kept.get("properties", {})), "additionalProperties": False}
    return kept


def _parsed(answer: str, shape: type[M]) -> M:
    text = answer.strip()
    # Some models wrap JSON in a Markdown fence whatever they are told.
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        text = text[text.index("\n") + 1 : -3]
    return shape.model_validate_json(text, strict=True)


def _fault(problem: ValidationError) -> str:
    """Where it does not fit and why, without the model's words, which may be someone's."""
    first = problem.errors(include_input=False, include_url=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['type']}" if place else first["type"]
