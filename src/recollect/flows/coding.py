"""Memory for coding agents: what a session or a prompt should know, as quoted data, and the turns that are kept."""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Self

from recollect import checks, origin
from recollect.errors import Conflict, Invalid
from recollect.flows.long_term.memories import LongTermMemory
from recollect.flows.long_term.pinned import PinnedMemories
from recollect.flows.remember import Remember, Turn
from recollect.flows.search.recall import Recall
from recollect.flows.search.recollection import Memory
from recollect.flows.search.relevance import DEFAULT
from recollect.identifiers import uuid_of
from recollect.language.prompts import fences
from recollect.language.prompts.triviality import is_trivial
from recollect.language.tokens import estimate_tokens
from recollect.memory.index.held import Held
from recollect.memory.index.search import Scope
from recollect.memory.log import Log, Message, NewMessage
from recollect.memory.memories import MemoryScope, StoredMemory
from recollect.memory.sessions import Sessions
from recollect.storage.database import Database
from recollect.trust import Trust, of_item

PROMPT_TOKENS = 800
"""Of what a prompt gets: most of the context belongs to the work itself."""
START_TOKENS = 1200
"""Of what a session gets at its start, pinned memories included."""
MAX_SHOWN = 500
"""Ids that a caller may name as shown already."""

_TOP_K = 8
_TEXT_TOKENS = 300
_CHARACTERS_PER_TOKEN = 6
# A prompt may be a pasted file: its beginning says what it is about, and the model reads no more than that.
_QUESTION_CHARACTERS = 2_000

_SESSIONS_LOOKED_AT = 50
_SESSIONS_SHOWN = 3
_MESSAGES_OF_EACH = 4
_RECENT_MEMORIES = 5

Reason = Literal["trivial", "nothing relevant"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent works: which agent, in which session and project, for whom, and whose memories it may see."""

    agent: str
    session_id: str
    project: str
    user_id: str
    only_user: bool = False

    def __post_init__(self) -> None:
        checks.identifier(self.agent, "agent")
        if ":" in self.agent:
            raise Invalid("agent must not contain a colon, which ends it in the id of a session")
        checks.identifier(self.session_id, "session_id")
        checks.identifier(self.stored_session, "agent and session_id together")
        checks.text(self.project, "project")
        checks.identifier(self.user_id, "user_id")

    @property
    def stored_session(self) -> str:
        """The id of the session at every door."""
        return f"{self.agent}:{self.session_id}"


@dataclass(frozen=True, slots=True)
class Context:
    """Text for the model, or why there is none; the ids are those of the memories in it."""

    text: str | None
    ids: tuple[str, ...] = ()
    reason: Reason | None = None
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Spoken:
    """A prompt and its answer. The key tells the turns of a session apart, however often one is sent."""

    key: str
    prompt: str | None
    answer: str | None
    prompted_at: datetime | None = None
    answered_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Record:
    """One memory as the model reads it."""

    id: str
    text: str
    source: str
    at: datetime
    trust: Trust
    project: str | None = None

    def shown(self) -> dict[str, str]:
        moment = self.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
        named = {"time": moment, "source": self.source, "trust": self.trust}
        return named | ({} if self.project is None else {"project": self.project}) | {"text": self.text}

    @classmethod
    def of_recalled(cls, memory: Memory) -> Self:
        by = memory.speaker or memory.role
        where = f"session {memory.session_id}" if memory.session_id else None
        source = ", ".join(part for part in (memory.kind, by and f"by {by}", where) if part)
        project = (checks.as_object(memory.metadata) or {}).get("project")
        named = project if isinstance(project, str) else None
        return cls(f"{memory.kind}:{memory.id}", _cut(memory.text), source, memory.at, memory.trust, named)

    @classmethod
    def of_memory(cls, memory: StoredMemory) -> Self:
        source = f"{'pinned ' if memory.pinned else ''}memory of {memory.user_id}"
        return cls(
            f"memory:{memory.id}", _cut(memory.text), source, memory.created_at, of_item("memory", None, memory.trust)
        )

    @classmethod
    def of_message(cls, message: Message, trust: Trust, project: str) -> Self:
        source = f"message, by {message.speaker or message.role}, session {message.session_id}"
        return cls(f"message:{message.id}", _cut(message.content), source, message.created_at, trust, project)


class CodingMemory:
    """What coding agents remember between sessions."""

    def __init__(
        self,
        database: Database,
        sessions: Sessions,
        log: Log,
        held: Held,
        remember: Remember,
        recall: Recall,
        pinned: PinnedMemories,
        memories: LongTermMemory,
    ) -> None:
        self._database = database
        self._sessions = sessions
        self._log = log
        self._held = held
        self._remember = remember
        self._recall = recall
        self._pinned = pinned
        self._memories = memories

    async def at_start(self, namespace: str, place: Place) -> Context:
        """What the user has pinned, the user's newest memories, and what was said last in this project."""
        # Refuses a key that is limited to another user or agent.
        origin.narrowed(place.user_id, place.agent)
        whose = MemoryScope(user_id=place.user_id)
        pinned = (await self._pinned.of(namespace, whose)).memories
        newest = (await self._memories.newest(namespace, whose, _RECENT_MEMORIES)).memories
        known = {memory.id: memory for memory in [*pinned, *newest]}
        records = [_Record.of_memory(memory) for memory in known.values()]
        records += await self._last_said(namespace, place)
        return _context(records, START_TOKENS)

    async def for_prompt(self, namespace: str, place: Place, prompt: str, shown: Collection[str] = ()) -> Context:
        """What bears on a prompt, unless it was shown in this session already."""
        # Refuses a key that is limited to another user or agent.
        origin.narrowed(place.user_id, place.agent)
        checks.storable(prompt, "prompt")
        checks.between(len(shown), 0, MAX_SHOWN, "the number of ids in shown")
        question = fences.without_fenced(prompt)[:_QUESTION_CHARACTERS]
        if is_trivial(question) or not checks.has_words(question):
            return Context(None, reason="trivial")
        owner = place.user_id if place.only_user else None
        found = await self._recall.recall(
            namespace,
            question,
            Scope(owner=owner, exclude_session=place.stored_session),
            top_k=_TOP_K,
            min_relevance=DEFAULT,
        )
        records = (_Record.of_recalled(memory) for memory in found.memories)
        return _context([each for each in records if each.id not in shown], PROMPT_TOKENS, found.degraded)

    async def keep(self, namespace: str, place: Place, spoken: Spoken) -> int:
        """Store a turn once; returns how many messages it has. What was recalled into it is left out."""
        checks.identifier(spoken.key, "key")
        about = checks.metadata({"agent": place.agent, "project": place.project})
        said = (
            ("user", spoken.prompt, place.user_id, spoken.prompted_at),
            ("assistant", spoken.answer, place.agent, spoken.answered_at),
        )
        session, messages = place.stored_session, []
        for role, text, speaker, at in said:
            if own := fences.without_fenced(text or "").strip():
                checks.text(own, role)
                # The same whenever the turn comes, so that it is written once.
                message_id = uuid_of(session, spoken.key, role, own)
                messages.append(NewMessage(role, own, about, speaker, checks.storable_utc(at, "at"), message_id))
        if messages:
            with suppress(Conflict):
                await self._remember.session(namespace, session, place.user_id, metadata=about)
            await self._remember.turn(namespace, Turn(session, tuple(messages), owner_if_new=place.user_id))
        return len(messages)

    async def _last_said(self, namespace: str, place: Place) -> list[_Record]:
        """Of the user's last sessions in the project, but for the present one: the end of each, newest first."""
        ends: list[list[Message]] = []
        async with self._database.reading(namespace) as db:
            for session in await self._sessions.recent_of_user(db, place.user_id, _SESSIONS_LOOKED_AT):
                is_here = (session.metadata or {}).get("project") == place.project
                if is_here and session.id != place.stored_session and len(ends) < _SESSIONS_SHOWN:
                    end = await self._log.recent(db, session.id, _MESSAGES_OF_EACH)
                    noted = await self._held.find(db, "message", [str(each.id) for each in end])
                    end = [each for each in end if str(each.id) not in noted or noted[str(each.id)].state != "held"]
                    ends += [telling] if (telling := [each for each in end if not is_trivial(each.content)]) else []
            shown = [message for end in ends for message in reversed(end)]
            trusts = await self._log.trusts(db, [message.id for message in shown])
        return [_Record.of_message(each, trusts[each.id], place.project) for each in shown if each.id in trusts]


def _context(records: Collection[_Record], budget: int, degraded: str | None = None) -> Context:
    """The records that fit; one that does not, or that says nothing by itself, is passed over."""
    kept: list[_Record] = []
    for record in records:
        size = _tokens(" ".join(record.shown().values()))
        if size <= budget and not is_trivial(record.text):
            kept.append(record)
            budget -= size
    if not kept:
        return Context(None, reason="nothing relevant", degraded=degraded)
    text = fences.fenced(record.shown() for record in kept)
    return Context(text, tuple(record.id for record in kept), degraded=degraded)


def _tokens(text: str) -> int:
    """About how many tokens a text takes; white space, which an estimate of words passes over, counts too."""
    return max(estimate_tokens(text), len(text) // _CHARACTERS_PER_TOKEN)


def _cut(text: str) -> str:
    """The beginning of a long text, with a sign that says so."""
    tokens = _tokens(text)
    return text if tokens <= _TEXT_TOKENS else text[: len(text) * _TEXT_TOKENS // tokens] + " […]"
