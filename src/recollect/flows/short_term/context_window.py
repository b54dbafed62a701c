"""The context window: a session's short-term memory, kept small by a sliding window or by summaries."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from recollect import checks, origin
from recollect.flows.chat_ids import refuse_stored_chat
from recollect.flows.defence.masking import MasksSecrets, masks
from recollect.flows.short_term.summaries import Summariser
from recollect.flows.short_term.window_stores import WindowStore
from recollect.identifiers import uuid7
from recollect.memory.log import NewMessage
from recollect.memory.windows import SUMMARY, OutlinedMessage, Strategy, WindowConfig, WindowMessage

# Of a window's messages, the share of the oldest that one summary takes the place of.
COMPACTED_PERCENT = 60

# A summary may take this part of the threshold, or so many tokens if that says too little, and half of what it stands
# for.
BUDGET_OF_THRESHOLD = 4
LEAST_SUMMARY = 32
BUDGET_OF_PART = 2

# A message whose tokens count, with all of its text or without.
Weighed = TypeVar("Weighed", WindowMessage, OutlinedMessage)

# How often to begin anew because another process has compacted the window meanwhile.
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class WindowDefaults:
    """What holds for every session that sets nothing else."""

    strategy: Strategy
    max_messages: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Context:
    """What an agent should have before it, and by which rule."""

    messages: list[WindowMessage]
    strategy: Strategy

    @property
    def total_tokens(self) -> int:
        """Of all the messages together."""
        return _tokens(self.messages)


@dataclass(frozen=True, slots=True)
class OutlinedWindow:
    """A window for people: the rule in force, what the session sets of it, and what an agent would have before it.

    Texts are cut. Of a large window the oldest messages are left out, and it is not whole.
    """

    strategy: Strategy
    max_messages: int
    max_tokens: int
    own: WindowConfig
    messages: list[OutlinedMessage]
    is_whole: bool

    @property
    def total_tokens(self) -> int:
        """Of the messages here, about."""
        return _tokens(self.messages)

    @property
    def begins(self) -> int | None:
        """The position of its first message that is not pinned; None if the log has none of them."""
        in_log = (each.position for each in self.messages if each.position is not None and not each.pinned)
        return next(in_log, None)

    @property
    def will_be_compacted(self) -> bool:
        """Whether its next reader gets a summary in the place of its oldest messages."""
        if self.strategy == "sliding_window":
            return False
        return not self.is_whole or bool(to_compact(self.messages, self.max_tokens))


class ContextWindow(MasksSecrets):
    """Short-term memory, whichever store it lives in."""

    def __init__(self, store: WindowStore, summariser: Summariser, defaults: WindowDefaults) -> None:
        self._store = store
        self._summariser = summariser
        self._defaults = defaults
        self._compacting: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @masks("messages")
    async def add(
        self, namespace: str, session_id: str, messages: Sequence[NewMessage], user_id: str | None = None
    ) -> list[WindowMessage]:
        """Append messages, checked by their door; a session that does not exist begins with them, as the user's."""
        refuse_stored_chat(checks.identifier(session_id, "session_id"))
        checks.optional_identifier(user_id, "user_id")
        return await self._store.add(namespace, session_id, messages, user_id) if messages else []

    async def messages(
        self, namespace: str, session_id: str, limit: int | None = None, as_of: datetime | None = None
    ) -> list[WindowMessage]:
        """The last messages, or all, oldest first, or those of a moment; a session that does not exist has none."""
        checks.identifier(session_id, "session_id")
        if limit is not None:
            checks.positive(limit, "limit")
        return await self._store.messages(namespace, session_id, limit, checks.as_of(as_of))

    async def context(self, namespace: str, session_id: str, as_of: datetime | None = None) -> Context:
        """The messages that the session's strategy leaves; a window over its threshold is compacted until it fits.

        One of a moment is never compacted: its last summary by then, and what was said since, up to then.
        """
        checks.identifier(session_id, "session_id")
        moment, defaults = checks.as_of(as_of), self._defaults
        own, messages = await self._store.window(
            namespace, session_id, defaults.strategy, defaults.max_messages, moment
        )
        strategy = own.strategy or defaults.strategy
        max_tokens = own.max_tokens or defaults.max_tokens
        if moment is not None or strategy == "sliding_window" or not to_compact(messages, max_tokens):
            return Context(messages, strategy)
        # Readers of one process who come at the same time share one summary; others find it in the store.
        async with self._compacting.setdefault((namespace, session_id), asyncio.Lock()):
            for _ in range(_ATTEMPTS):
                messages = await self._store.messages(namespace, session_id, None)
                part = to_compact(messages, max_tokens)
                if not part:
                    return Context(messages, strategy)
                rest = messages[len(part) :]
                pinned = [message for message in part if message.pinned]
                summary = await self._summary(namespace, part, budget(part, [*pinned, *rest], max_tokens))
                # Whoever reads first brings it about, also one who may only read.
                with origin.own_work():
                    is_replaced = await self._store.replace(namespace, session_id, part, summary)
                if is_replaced:
                    break
        # Also where others were quicker each time: this is what the window was, and it fits.
        return Context([*pinned, summary, *rest], strategy)

    async def outline(self, namespace: str, session_id: str, shown: int, characters: int) -> OutlinedWindow:
        """The window as it is now, not compacted for it: so many messages, and characters of each, at most."""
        checks.identifier(session_id, "session_id")
        defaults = self._defaults
        own, messages, is_whole = await self._store.outline(
            namespace, session_id, defaults.strategy, defaults.max_messages, shown, characters
        )
        return OutlinedWindow(
            own.strategy or defaults.strategy,
            own.max_messages or defaults.max_messages,
            own.max_tokens or defaults.max_tokens,
            own,
            messages,
            is_whole,
        )

    async def configure(self, namespace: str, session_id: str, config: WindowConfig) -> WindowConfig:
        """Set what holds for this session, over all that was set before; None follows the defaults."""
        refuse_stored_chat(checks.identifier(session_id, "session_id"))
        for value, name in ((config.max_messages, "max_messages"), (config.max_tokens, "max_tokens")):
            if value is not None:
                checks.positive(value, name)
        await self._store.configure(namespace, session_id, config)
        return config

    async def delete(self, namespace: str, session_id: str) -> bool:
        """Delete the session with all that belongs to it; False if there is none."""
        checks.identifier(session_id, "session_id")
        return await self._store.delete(namespace, session_id)

    async def _summary(self, namespace: str, part: Sequence[WindowMessage], max_tokens: int) -> WindowMessage:
        going = [message for message in part if not message.pinned]
        made = await self._summariser.summarise(namespace, going, max_tokens)
        # It also stands for the messages of the summary before it.
        earlier = going[0].metadata if going[0].compacted and isinstance(going[0].metadata, dict) else {}
        metadata: dict[str, Any] = {
            "summary_method": made.method,
            "summarized_messages": len(going) + earlier.get("summarized_messages", 1) - 1,
            "first_message_id": earlier.get("first_message_id", str(going[0].id)),
            "last_message_id": str(going[-1].id),
        }
        if made.note is not None:
            metadata["llm_error"] = made.note
        # Of the time of the last message it stands for, so that a window is in the order of time, too.
        return WindowMessage.of(uuid7(), SUMMARY, made.text, metadata, going[-1].at, compacted=True)


def to_compact(messages: Sequence[Weighed], max_tokens: int) -> Sequence[Weighed]:
    """The beginning of a window that is to become a summary, but for what is pinned: nothing below the threshold.

    It is the oldest 60 % of the messages, or as many more as it takes for summary and rest to fit. The newest message
    always stays as it is, and a summary is not summarised alone: a window ends, however low its threshold, as what is
    pinned, one summary and one message.
    """
    total = _tokens(messages)
    if total <= max_tokens:
        return ()
    loose = [place for place, message in enumerate(messages) if not message.pinned]
    going = [place for place in loose if place < len(messages) - 1]
    least = 2 if going and messages[going[0]].compacted else 1
    if len(going) < least:
        return ()
    count = min(max(len(loose) * COMPACTED_PERCENT // 100, least), len(going))
    left = total - sum(messages[place].tokens for place in going[:count])
    while count < len(going) and left + _wanted(max_tokens) > max_tokens:
        left -= messages[going[count]].tokens
        count += 1
    return messages[: going[count - 1] + 1]


def budget(part: Sequence[WindowMessage], rest: Sequence[WindowMessage], max_tokens: int) -> int:
    """How many tokens the summary of a part may have beside the rest; where that alone is too long, as ever."""
    going = sum(message.tokens for message in part if not message.pinned)
    wanted = min(_wanted(max_tokens), going // BUDGET_OF_PART)
    room = max_tokens - _tokens(rest)
    return max(min(wanted, room) if room > 0 else wanted, 1)


def _wanted(max_tokens: int) -> int:
    return max(max_tokens // BUDGET_OF_THRESHOLD, min(LEAST_SUMMARY, max_tokens // BUDGET_OF_PART))


def _tokens(messages: Sequence[WindowMessage | OutlinedMessage]) -> int:
    return sum(message.tokens for message in messages)
