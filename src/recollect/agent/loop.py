"""One run: what is known goes in, the model and its tools work, the answer comes out and is remembered."""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from recollect.agent.context import MAX_HISTORY_MESSAGES, ContextBuilder
from recollect.agent.curated import MemoryService, MemorySnapshot
from recollect.agent.faults import AgentError, ProviderError, Refused
from recollect.agent.gateway_service import AuditEvent, MemoryGatewayService
from recollect.agent.messages import Finish, Finished, Message, Provider, TextDelta, ToolCall
from recollect.agent.sessions import SessionEvent, SessionStore, now_ms
from recollect.agent.skills import Skill, SkillLibrary
from recollect.agent.tools import Run, Toolbox

MAX_PROMPT_CHARACTERS = 100_000
TOOL_LIMIT_ANSWER = (
    "I stopped after {rounds} rounds of tool calls without a final answer. Ask again, or ask for less at once."
)
EMPTY_ANSWER = "The model gave an empty answer. Ask again, perhaps in other words."
DECLINED_ANSWER = "The model declined to answer."

Show = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class AgentRunResult:
    """What a run came to. The gateway has no part in it: whether it was there does not show here."""

    session_id: str
    answer: str
    finish_reason: Literal["stop", "length", "refused", "tool_limit"]
    tool_rounds: int
    tools_called: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reply:
    """One answer of the model: its text, and the calls it waits for."""

    text: str
    calls: tuple[ToolCall, ...]
    reason: Finish


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What the model will see, and the events that say so."""

    messages: tuple[Message, ...]
    events: tuple[SessionEvent, ...]


class AgentLoop:
    """Runs prompts. Curated memory is part of every run; the gateway only where there is one, and never in its way."""

    def __init__(
        self,
        provider: Provider,
        memory: MemoryService,
        gateway: MemoryGatewayService | None,
        sessions: SessionStore,
        skills: SkillLibrary,
        tools: Toolbox,
        max_tool_rounds: int,
    ) -> None:
        self._provider = provider
        self._memory = memory
        self._gateway = gateway
        self._sessions = sessions
        self._skills = skills
        self._tools = tools
        self._max_tool_rounds = max_tool_rounds
        self._context = ContextBuilder()

    async def run(self, session_id: str | None, prompt: str, show: Show | None = None) -> AgentRunResult:
        """Answer a prompt in a session, which a new id or none begins; `show` gets the text as it comes."""
        _check(prompt)
        skills = self._skills.activated(prompt)
        run = Run(session_id or self._sessions.new_id(), secrets.token_hex(8))
        asked_at = now_ms()
        prepared = await self._prepare(run, prompt, skills)
        asked = SessionEvent.message(run.run_id, "user", prompt, asked_at)
        await self._record(run, [asked, *prepared.events])
        try:
            result = await self._work(run, prepared.messages, skills, show or _show_nobody)
        except (Exception, asyncio.CancelledError) as problem:
            await self._record(run, [SessionEvent.hidden(run.run_id, "run_failed", _failure(problem))])
            raise
        answered_at = max(now_ms(), asked_at)
        await self._record(run, [SessionEvent.message(run.run_id, "assistant", result.answer, answered_at)])
        if self._gateway:
            told = await self._gateway.persist_after_run(run.session_id, prompt, result.answer, asked_at, answered_at)
            await self._record(run, [_audit(run, event) for event in told])
        return result

    async def _prepare(self, run: Run, prompt: str, skills: Sequence[Skill]) -> _Prepared:
        snapshot, history = await asyncio.to_thread(self._known, run.session_id)
        events = (
            [SessionEvent.hidden(run.run_id, "skills_activated", {"names": [s.name for s in skills]})] if skills else []
        )
        references: tuple[str, ...] = ()
        if self._gateway:
            recalled = await self._gateway.recall_before_run(run.session_id, prompt)
            references = tuple(message.text for message in recalled.messages)
            events.append(_audit(run, recalled.event))
        messages = self._context.build_messages(
            snapshot,
            prompt,
            skills=skills,
            references=references,
            history=history,
            gateway_rule=self._gateway.system_rule if self._gateway else None,
        )
        return _Prepared(messages, tuple(events))

    def _known(self, session_id: str) -> tuple[MemorySnapshot, list[SessionEvent]]:
        return self._memory.snapshot(), self._sessions.recent(session_id, MAX_HISTORY_MESSAGES)

    async def _work(
        self, run: Run, messages: tuple[Message, ...], skills: Sequence[Skill], show: Show
    ) -> AgentRunResult:
        """Ask, do what the model asks for, and ask again, until it asks for nothing more or the limit is reached."""
        called: list[str] = []
        said = ""
        names = tuple(skill.name for skill in skills)
        for rounds in range(self._max_tool_rounds + 1):
            reply = await self._ask(messages, show)
            said = reply.text or said
            if not reply.calls or reply.reason not in ("stop", "tools"):
                # A model may answer first and then put something into memory, without another word.
                answer = said or _shown(show, DECLINED_ANSWER if reply.reason == "refused" else EMPTY_ANSWER)
                reason = "stop" if reply.reason == "tools" else reply.reason
                return AgentRunResult(run.session_id, answer, reason, rounds, tuple(called), names)
            if reply.text:
                show("\n\n")
            if rounds == self._max_tool_rounds:
                break
            messages = (*messages, *await self._do(run, reply))
            called += [call.name for call in reply.calls]
        answer = _shown(show, TOOL_LIMIT_ANSWER.format(rounds=self._max_tool_rounds))
        return AgentRunResult(run.session_id, answer, "tool_limit", self._max_tool_rounds, tuple(called), names)

    async def _ask(self, messages: tuple[Message, ...], show: Show) -> _Reply:
        pieces: list[str] = []
        calls: list[ToolCall] = []
        reason: Finish | None = None
        async with contextlib.aclosing(self._provider.stream(messages, self._tools.specs)) as events:
            async for event in events:
                match event:
                    case TextDelta(text):
                        pieces.append(text)
                        show(_encodable(text))
                    case ToolCall():
                        calls.append(event)
                    case Finished():
                        reason = event.reason
        if reason is None:
            raise ProviderError(f"The answer of {self._provider.model} broke off before its end: try again.")
        return _Reply(_encodable("".join(pieces)).strip(), tuple(calls), reason)

    async def _do(self, run: Run, reply: _Reply) -> list[Message]:
        """Call the tools, one after the other, and leave a hidden record of each call."""
        messages = [Message("assistant", reply.text, "tools", reply.calls)]
        events = []
        for call in reply.calls:
            result = await self._tools.call(call, run)
            messages.append(Message("tool", result.text, "tools", (), call.id, result.is_error))
            payload = {"name": call.name, "arguments": call.arguments, "result": result.text, "error": result.is_error}
            events.append(SessionEvent.hidden(run.run_id, "tool_called", payload))
        await self._record(run, events)
        return messages

    async def _record(self, run: Run, events: Sequence[SessionEvent]) -> None:
        await asyncio.to_thread(self._sessions.append, run.session_id, events)


def _check(prompt: str) -> None:
    if not prompt.strip():
        raise Refused("The prompt is empty: say something.")
    if len(prompt) > MAX_PROMPT_CHARACTERS:
        raise Refused(f"The prompt has {len(prompt):,} characters, more than the limit of {MAX_PROMPT_CHARACTERS:,}.")
    if _encodable(prompt) != prompt:
        raise Refused("The prompt is not valid UTF-8: it holds half of a surrogate pair.")


def _encodable(text: str) -> str:
    """The text with halves of surrogate pairs joined, or replaced where the other half is missing."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _shown(show: Show, text: str) -> str:
    show(text)
    return text


def _show_nobody(text: str) -> None:
    """For callers that wait for the whole answer."""


def _audit(run: Run, event: AuditEvent) -> SessionEvent:
    return SessionEvent.hidden(run.run_id, event.name, event.payload)


def _failure(problem: BaseException) -> dict[str, str]:
    """What the session keeps of a failure: our own sentences hold no credentials, those of others are left out."""
    payload = {"error": type(problem).__name__}
    return payload | {"message": str(problem)} if isinstance(problem, AgentError) else payload
