"""Tools: what a model may call during a run; a refusal is a result that the model reads, not the end of the run."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from recollect.agent.faults import AgentError, Refused
from recollect.agent.messages import ToolCall, ToolSpec


@dataclass(frozen=True, slots=True)
class Run:
    """Which run of which session calls."""

    session_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call, for the model."""

    text: str
    is_error: bool = False


class Tool(Protocol):
    """One tool. `call` raises an AgentError when it refuses."""

    @property
    def spec(self) -> ToolSpec:
        """Its description for models."""
        ...

    async def call(self, arguments: Mapping[str, Any], run: Run) -> str:
        """Do it, and say what was done."""
        ...


class Toolbox:
    """The tools of this runtime, by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The descriptions of all tools, for models."""
        return tuple(tool.spec for tool in self._tools.values())

    async def call(self, call: ToolCall, run: Run) -> ToolResult:
        """Do what a model asks; whatever is wrong with the call is said to the model, which may try again."""
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolResult(f"Unknown tool {call.name!r}. Available tools: {', '.join(self._tools)}.", is_error=True)
        try:
            arguments = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError) as problem:
            return ToolResult(f"The arguments of {call.name} are not JSON: {problem}", is_error=True)
        if not isinstance(arguments, dict):
            return ToolResult(f"The arguments of {call.name} must be a JSON object", is_error=True)
        try:
            return ToolResult(await tool.call(arguments, run))
        except AgentError as problem:
            return ToolResult(str(problem), is_error=True)


def text_argument(arguments: Mapping[str, Any], name: str) -> str:
    """An argument that must be there and be text."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise Refused(f"{name} is required and must be a string")
    return value
