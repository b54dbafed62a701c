"""The LLM protocol: what the rest of Recollect asks of a model that writes text, whoever provides it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from recollect.errors import Unavailable
from recollect.inference.failures import Refused

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

# However often a request is tried again: whoever stores a memory or reads a window waits for it.
PATIENCE_SECONDS = 30.0

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
    """None leaves it to the model; some newer ones refuse to be told."""


async def in_time(answer: Awaitable[T], seconds: float = PATIENCE_SECONDS) -> T:
    """An answer for somebody who waits for it and can do without; Unavailable when it takes too long."""
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError:
        raise Unavailable(f"The model did not answer within {seconds:g} s.") from None


def most_tokens(prompt: Prompt, schema: dict[str, Any] | None = None) -> int:
    """The most that a request can take: no token is shorter than a byte, and providers add a little of their own."""
    said = len(prompt.system.encode()) + len(prompt.user.encode())
    return said + (0 if schema is None else len(json.dumps(schema))) + _ADDED_TOKENS + prompt.max_tokens


class Llm(Protocol):
    """Writes text. Failures are Unavailable, LimitReached (budget) or Misconfigured; none names a key."""

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

    async def write(self, prompt: Prompt, schema: dict[str, Any] | None = None) -> str:
        """One answer; Refused when the model does not take the request in this form."""


class WrittenLlm:
    """An Llm over any adapter: shapes are asked for and checked in one place."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._enforces_schemas = True

    @property
    def model_id(self) -> str:
        return self._writer.model_id

    async def complete(self, prompt: Prompt) -> str:
        return await self._writer.write(prompt)

    async def complete_as(self, prompt: Prompt, shape: type[M]) -> M:
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
                f"{self.model_id} answered twice in a form that cannot be used ({_fault(problem)}). "
                "Try again, or choose another model."
            ) from None

    async def _shaped(self, prompt: Prompt, schema: dict[str, Any]) -> str:
        if not self._enforces_schemas:
            return await self._writer.write(prompt)
        try:
            return await self._writer.write(prompt, schema)
        except Refused:
            # Perhaps because of the schema, which older models do not take: the prompt says the same in words.
            answer = await self._writer.write(prompt)
        self._enforces_schemas = False
        return answer


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
    return shape.model_validate_json(_without_fence(answer), strict=True)


def _without_fence(answer: str) -> str:
    """Some models wrap JSON in a Markdown fence whatever they are told."""
    text = answer.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") + 1 : -3]
    return text


def _fault(problem: ValidationError) -> str:
    """Where it does not fit and why, without the model's words, which may be someone's."""
    first = problem.errors(include_input=False, include_url=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['type']}" if place else first["type"]
