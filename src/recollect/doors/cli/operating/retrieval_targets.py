"""What `recollect bench retrieval` can measure: the engine, or the public methods of the library."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Protocol

from recollect.doors.cli.one_command import opened_engine
from recollect.doors.cli.printing import indexed
from recollect.doors.library.memory_manager import MemoryManager
from recollect.doors.library.new_items import NewMessage
from recollect.engine import Engine
from recollect.flows.remember import Turn
from recollect.flows.search.recollection import Recollection
from recollect.identifiers import uuid_of
from recollect.memory import log
from recollect.memory.index.search import Scope


class Target(Protocol):
    """Stores conversations in one namespace, each as the sessions of its own user, and recalls from one of them."""

    async def holds(self, conversation: str) -> bool:
        """Whether the conversation is stored."""

    async def store(self, conversation: str, session: str, messages: Sequence[log.NewMessage]) -> None:
        """Store a session in the order given."""

    async def index(self) -> None:
        """Wait until all of it is embedded."""

    async def recall(self, conversation: str, question: str, until: datetime | None, top_k: int) -> Recollection:
        """What answers a question."""


class EngineTarget:
    """Calls the flows, as our own doors do."""

    def __init__(self, engine: Engine, namespace: str) -> None:
        self._engine = engine
        self._namespace = namespace

    async def holds(self, conversation: str) -> bool:
        return bool(await self._engine.conversations.of_user(self._namespace, conversation, 1))

    async def store(self, conversation: str, session: str, messages: Sequence[log.NewMessage]) -> None:
        turn = Turn(f"{conversation}/{session}", tuple(messages), owner_if_new=conversation)
        await self._engine.remember.turn(self._namespace, turn)

    async def index(self) -> None:
        await indexed(self._engine.indexer, self._namespace)

    async def recall(self, conversation: str, question: str, until: datetime | None, top_k: int) -> Recollection:
        scope = Scope(owner=conversation, until=until)
        return await self._engine.recall.recall(self._namespace, question, scope, top_k=top_k)


class _LibraryTarget:
    """Calls what a user of the library can call."""

    def __init__(self, memory: MemoryManager) -> None:
        self._memory = memory

    async def holds(self, conversation: str) -> bool:
        return bool(await self._memory.list_sessions(conversation, limit=1))

    async def store(self, conversation: str, session: str, messages: Sequence[log.NewMessage]) -> None:
        new = [
            NewMessage(
                role=message.role,
                content=message.content,
                metadata=json.loads(message.metadata or "null"),
                speaker=message.speaker,
                at=message.at,
            )
            for message in messages
        ]
        await self._memory.store_messages(uuid_of(conversation, session), new, user_id=conversation)

    async def index(self) -> None:
        await self._memory.flush()

    async def recall(self, conversation: str, question: str, until: datetime | None, top_k: int) -> Recollection:
        return await self._memory.recall(question, user_id=conversation, until=until, top_k=top_k)


@asynccontextmanager
async def _opened_engine(namespace: str) -> AsyncIterator[Target]:
    async with opened_engine() as engine:
        yield EngineTarget(engine, namespace)


@asynccontextmanager
async def _opened_library(namespace: str) -> AsyncIterator[Target]:
    async with MemoryManager(namespace=namespace) as memory:
        yield _LibraryTarget(memory)


TARGETS: Mapping[str, Callable[[str], AbstractAsyncContextManager[Target]]] = {
    "engine": _opened_engine,
    "library": _opened_library,
}
