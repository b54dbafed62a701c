"""What goes to a model and what comes back: the types that all providers share."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant", "tool"]
# Where a message comes from. Models see the text alone; the offline provider and the tests look at the kind.
Kind = Literal["system", "skill", "reference", "history", "prompt", "tools"]
Finish = Literal["stop", "tools", "length", "refused"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model asks for; the arguments are JSON as the model wrote it, which may be none."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message to the model. A tool's result names the call that it answers."""

    role: Role
    content: str
    kind: Kind
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The description of a tool for models; the parameters are a JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Quote:
    """A piece of the answer that repeats memory or a tool: shown as it is; the session and the gateway keep `kept`."""

    text: str
    kept: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of what the model thinks aloud; it is neither shown nor kept."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of every whole answer: why it ended."""

    reason: Finish


Event = TextDelta | Quote | ReasoningDelta | ToolCall | Finished


class Provider(Protocol):
    """Anything that answers. The stream ends with `Finished`, or raises ProviderError with one sentence."""

    @property
    def model(self) -> str:
        """The model that answers."""
        ...

    def stream(self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]) -> AsyncGenerator[Event, None]:
        """One answer, as it comes."""
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...
