"""One run: collects the context, calls the model and its tools, returns the answer and stores the turn."""

import asyncio
import contextlib
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from recollect.agent.context import MAX_HISTORY_MESSAGES, ContextBuilder
from recollect.agent.faults import AgentError, ProviderError, Refused
from recollect.agent.messages import Finish, Finished, Message, Provider, Quote, TextDelta, ToolCall
from recollect.agent.recall.gateway_service import AuditEvent, MemoryGatewayService
from recollect.agent.secret import Secret
from recollect.agent.tools import Run, Toolbox
from recollect.agent.workspace.curated import MemoryService
from recollect.agent.workspace.sessions import SessionEvent, SessionStore, now_ms
from recollect.agent.workspace.skills import Skill, SkillLibrary

MAX_PROMPT_CHARACTERS = 100_000
TOOL_LIMIT_ANSWER = (
    "I stopped after {rounds} rounds of tool calls without a final answer. Try again, or ask for less at a time."
)
EMPTY_ANSWER = "The model returned an empty answer. Try again, or rephrase the question."
DECLINED_ANSWER = "The model declined to answer."

RECALLING = "Searching the memory gateway"
PERSISTING = "Storing this turn in the memory gateway"
# A shorter credential may be a word; to take it out of what is said would spoil the text.
SHORTEST_CREDENTIAL = 8
CREDENTIAL_TYPED = "The prompt contained a credential from the configuration, which was replaced with ***."

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
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Said:
    """What was shown as an answer, and what is kept of it: the two differ where memory is quoted."""

    text: str = ""
    kept: str = ""


@dataclass(frozen=True, slots=True)
class _Reply:
    """One answer of the model: its text, and the calls it waits for."""

    said: _Said
    calls: tuple[ToolCall, ...]
    reason: Finish


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
        credentials: Sequence[Secret] = (),
    ) -> None:
        self._provider = provider
        self._memory = memory
        self._gateway = gateway
        self._sessions = sessions
        self._skills = skills
        self._tools = tools
        self._max_tool_rounds = max_tool_rounds
        self._credentials = [secret for secret in credentials if len(secret.reveal()) >= SHORTEST_CREDENTIAL]
        self._context = ContextBuilder()

    async def run(
        self, session_id: str | None, prompt: str, show: Show | None = None, progress: Show | None = None
    ) -> AgentRunResult:
        """Answer a prompt in a session, which a new id or none begins.

        `show` gets the text as it comes, `progress` the name of each step that may keep the user waiting.
        """
        typed, prompt = prompt, self._without_credentials(prompt)
        _check(prompt)
        skills = self._skills.activated(prompt)
        run = Run(session_id or self._sessions.new_id(), secrets.token_hex(8))
        asked_at = now_ms()
        snapshot = await asyncio.to_thread(self._memory.snapshot)
        history = await asyncio.to_thread(self._sessions.recent, run.session_id, MAX_HISTORY_MESSAGES)
        events = [SessionEvent.message(run.run_id, "user", prompt, asked_at)]
        if skills:
            names = [skill.name for skill in skills]
            events.append(SessionEvent.hidden(run.run_id, "skills_activated", {"names": names}))
        await self._record(run, events)
        try:
            references = await self._recall(run, prompt, progress or _show_nobody)
            rule = self._gateway.system_rule if self._gateway else None
            messages = self._context.build_messages(
                snapshot, prompt, skills=skills, references=references, history=history, gateway_rule=rule
            )
            result, kept = await self._work(run, messages, skills, show or _show_nobody)
        except (Exception, asyncio.CancelledError) as problem:
            # Our own sentences hold no credentials; those of others are left out.
            said = {"message": str(problem)} if isinstance(problem, AgentError) else {}
            failure = {"error": type(problem).__name__, **said}
            await self._record(run, [SessionEvent.hidden(run.run_id, "run_failed", failure)])
            raise
        kept = self._without_credentials(kept)
        answered_at = max(now_ms(), asked_at)
        await self._record(run, [SessionEvent.message(run.run_id, "assistant", kept, answered_at)])
        if self._gateway:
            (progress or _show_nobody)(PERSISTING)
            await self._gateway.persist_after_run(
                run.session_id, prompt, kept, asked_at, answered_at, lambda event: self._audit(run, event)
            )
        return replace(result, warnings=(*snapshot.warnings, *([CREDENTIAL_TYPED] if typed != prompt else [])))

    async def _recall(self, run: Run, prompt: str, progress: Show) -> tuple[str, ...]:
        """What the gateway recalls; what became of the request is recorded before anything else happens."""
        if not self._gateway:
            return ()
        progress(RECALLING)
        try:
            recalled = await self._gateway.recall_before_run(run.session_id, prompt)
        except asyncio.CancelledError:
            await self._audit(run, self._gateway.recall_stopped())
            raise
        await self._audit(run, recalled.event)
        return tuple(message.text for message in recalled.messages)

    async def _work(
        self, run: Run, messages: tuple[Message, ...], skills: Sequence[Skill], show: Show
    ) -> tuple[AgentRunResult, str]:
        """Ask, do what the model asks for, and ask again, until it asks for nothing more or the limit is reached.

        Returns the result, and what is kept of the answer.
        """
        called: list[str] = []
        said = _Said()
        names = tuple(skill.name for skill in skills)
        for rounds in range(self._max_tool_rounds + 1):
            reply = await self._ask(messages, show)
            said = reply.said if reply.said.text else said
            if not reply.calls or reply.reason not in ("stop", "tools"):
                # A model may answer first and then put something into memory, without another word.
                if not said.text:
                    said = _shown(show, DECLINED_ANSWER if reply.reason == "refused" else EMPTY_ANSWER)
                reason = "stop" if reply.reason == "tools" else reply.reason
                return AgentRunResult(run.session_id, said.text, reason, rounds, tuple(called), names), said.kept
            if reply.said.text:
                show("\n\n")
            if rounds == self._max_tool_rounds:
                break
            messages = (*messages, *await self._do(run, reply))
            called += [call.name for call in reply.calls]
        said = _shown(show, TOOL_LIMIT_ANSWER.format(rounds=self._max_tool_rounds))
        return AgentRunResult(
            run.session_id, said.text, "tool_limit", self._max_tool_rounds, tuple(called), names
        ), said.kept

    async def _ask(self, messages: tuple[Message, ...], show: Show) -> _Reply:
        pieces: list[str] = []
        kept: list[str] = []
        calls: list[ToolCall] = []
        reason: Finish | None = None
        async with contextlib.aclosing(self._provider.stream(messages, self._tools.specs)) as events:
            async for event in events:
                match event:
                    case TextDelta(text) | Quote(text):
                        pieces.append(text)
                        kept.append(event.kept if isinstance(event, Quote) else text)
                        show(_storable(text))
                    case ToolCall():
                        calls.append(_storable_call(event))
                    case Finished():
                        reason = event.reason
        if reason is None:
            raise ProviderError(f"The answer from {self._provider.model} was cut off: try again")
        said = _Said(_storable("".join(pieces)).strip(), _storable("".join(kept)).strip())
        return _Reply(said, tuple(calls), reason)

    async def _do(self, run: Run, reply: _Reply) -> list[Message]:
        """Call the tools, one after the other, and leave a hidden record of each call."""
        messages = [Message("assistant", reply.said.text, "tools", reply.calls)]
        events = []
        for call in reply.calls:
            result = await self._tools.call(call, run)
            text = _storable(result.text)
            messages.append(Message("tool", text, "tools", (), call.id, result.is_error))
            payload = {"name": call.name, "arguments": call.arguments, "result": text, "error": result.is_error}
            events.append(SessionEvent.hidden(run.run_id, "tool_called", payload))
        await self._record(run, events)
        return messages

    def _without_credentials(self, text: str) -> str:
        for secret in self._credentials:
            text = secret.removed_from(text)
        return text

    async def _audit(self, run: Run, event: AuditEvent) -> None:
        await self._record(run, [SessionEvent.hidden(run.run_id, event.name, event.payload)])

    async def _record(self, run: Run, events: Sequence[SessionEvent]) -> None:
        await asyncio.to_thread(self._sessions.append, run.session_id, events)


def _check(prompt: str) -> None:
    if not prompt.strip():
        raise Refused("The prompt is empty: enter some text")
    if len(prompt) > MAX_PROMPT_CHARACTERS:
        raise Refused(f"The prompt has {len(prompt):,} characters, more than the limit of {MAX_PROMPT_CHARACTERS:,}")
    if "\0" in prompt:
        raise Refused("The prompt contains a NUL character, which cannot be stored: remove it")
    if _storable(prompt) != prompt:
        raise Refused("The prompt is not valid UTF-8: it contains half of a surrogate pair")


def _storable(text: str) -> str:
    """The text without NUL, with halves of surrogate pairs joined, or replaced where the other half is missing."""
    text = text.replace("\0", "")
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _storable_call(call: ToolCall) -> ToolCall:
    """A call that every provider can be shown again. JSON may hold half a surrogate pair behind an escape, too."""
    arguments = _storable(call.arguments)
    with contextlib.suppress(ValueError, RecursionError):
        written = json.dumps(json.loads(arguments), ensure_ascii=False)
        if _storable(written) != written:
            arguments = _storable(written)
    return ToolCall(_storable(call.id), _storable(call.name), arguments)


def _shown(show: Show, text: str) -> _Said:
    show(text)
    return _Said(text, text)


def _show_nobody(text: str) -> None:
    """For callers that wait for the whole answer."""
