"""The stores that are compared, each behind the same three calls and with the same embedding model."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeVar

import asyncpg

from benchmarks.yardsticks.conversation import Turn
from recollect.doors.cli.operating.bench import Question, role_and_name
from recollect.engine import Engine
from recollect.flows.remember import Turn as Said
from recollect.inference.embedding.local import THREADS
from recollect.inference.embedding.model_file import ModelFile, minilm
from recollect.inference.embedding.network import Network
from recollect.memory.index.search import Scope
from recollect.memory.log import NewMessage

CALLERS = 8
TOP = 10
OWNER = "owner"

_Result = TypeVar("_Result")


class Store(Protocol):
    """A store with nothing in it."""

    async def write(self, turn: Turn) -> None:
        """Return when the turn is stored."""

    async def searchable(self) -> None:
        """Return when semantic search finds all that was written."""

    async def search(self, question: Question) -> Sequence[str]:
        """The ids of the best turns, best first."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where stores keep what they are given: an engine, its server as the superuser sees it, and a directory."""

    engine: Engine
    superuser: Mapping[str, Any]
    directory: Path


Opening = Callable[[Place], AbstractAsyncContextManager[Store]]


class RecollectStore:
    """The engine as the library uses it, with the indexer in the background."""

    def __init__(self, engine: Engine, namespace: str) -> None:
        self._engine = engine
        self._namespace = namespace

    @classmethod
    @asynccontextmanager
    async def opened(cls, place: Place) -> AsyncIterator[Store]:
        yield cls(place.engine, "yardsticks")

    async def write(self, turn: Turn) -> None:
        role, speaker = role_and_name(turn.speaker)
        message = NewMessage(role, turn.text, json.dumps({"turn": turn.id}), speaker, turn.at)
        await self._engine.remember.turn(self._namespace, Said(turn.session, (message,), owner_if_new=OWNER))

    async def searchable(self) -> None:
        await self._engine.indexer.flush(self._namespace)

    async def search(self, question: Question) -> Sequence[str]:
        scope = Scope(owner=OWNER, until=question.until)
        found = await self._engine.recall.recall(self._namespace, question.text, scope, top_k=TOP)
        return [memory.metadata["turn"] for memory in found.memories if isinstance(memory.metadata, dict)]


class _Threaded:
    """A store with blocking calls, for as many threads as there are callers. It embeds what it writes at once."""

    def __init__(self, with_speaker: bool) -> None:
        file = ModelFile.of_wheel()
        assert file is not None
        self._network = Network.of(minilm(file), THREADS)
        self._threads = ThreadPoolExecutor(CALLERS)
        self._with_speaker = with_speaker

    async def searchable(self) -> None:
        """It was when it was written."""

    async def _call(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _text(self, turn: Turn) -> str:
        return f"{turn.speaker}: {turn.text}" if self._with_speaker else turn.text

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [vector.tolist() for vector in self._network.vectors([*map(self._network.encode, texts)])]


class ChromaStore(_Threaded):
    """A collection on disk, with cosine distance as the model asks for."""

    def __init__(self, home: Path, with_speaker: bool) -> None:
        super().__init__(with_speaker)
        import chromadb

        client = chromadb.PersistentClient(str(home), chromadb.Settings(anonymized_telemetry=False))
        space = {"hnsw": {"space": "cosine"}}
        self._collection = client.create_collection("turns", configuration=space, embedding_function=None)

    @classmethod
    def opening(cls, with_speaker: bool) -> Opening:
        @asynccontextmanager
        async def opened(place: Place) -> AsyncIterator[Store]:
            yield cls(place.directory / f"chroma-{with_speaker}", with_speaker)

        return opened

    async def write(self, turn: Turn) -> None:
        text, said = self._text(turn), {"at": turn.at.timestamp()}
        await self._call(lambda: self._collection.add([turn.id], self._embed([text]), [said], [text]))

    async def search(self, question: Question) -> Sequence[str]:
        until = None if question.until is None else {"at": {"$lte": question.until.timestamp()}}

        def query() -> Any:
            return self._collection.query(self._embed([question.text]), n_results=TOP, where=until)["ids"][0]

        return list(await self._call(query))


class LangGraphStore(_Threaded):
    """PostgresStore with its default index, in a database of its own on the server that Recollect uses."""

    def __init__(self, with_speaker: bool) -> None:
        super().__init__(with_speaker)
        self._store: Any = None

    @classmethod
    def opening(cls, with_speaker: bool) -> Opening:
        @asynccontextmanager
        async def opened(place: Place) -> AsyncIterator[Store]:
            from langgraph.store.postgres import PostgresStore

            self = cls(with_speaker)
            index = {"dims": 384, "embed": self._embed, "fields": ["text"]}
            address = await _new_database(place.superuser, f"langgraph_{with_speaker}".lower())
            pool = {"min_size": CALLERS, "max_size": CALLERS}
            with PostgresStore.from_conn_string(address, pool_config=pool, index=index) as self._store:
                await self._call(self._store.setup)
                yield self

        return opened

    async def write(self, turn: Turn) -> None:
        value = {"text": self._text(turn), "at": turn.at.isoformat()}
        await self._call(lambda: self._store.put((OWNER,), turn.id, value))

    async def search(self, question: Question) -> Sequence[str]:
        until = None if question.until is None else {"at": {"$lte": question.until.isoformat()}}
        found = await self._call(lambda: self._store.search((OWNER,), query=question.text, limit=TOP, filter=until))
        return [item.key for item in found]


async def _new_database(superuser: Mapping[str, Any], name: str) -> str:
    """An empty database on the embedded server, as its superuser: pgvector lets nobody else create the extension."""
    await _execute(superuser, f"create database {name}")
    return f"host={superuser['host']} port={superuser['port']} user={superuser['user']} dbname={name}"


async def vacuum(superuser: Mapping[str, Any]) -> None:
    """What autovacuum would do within a minute, so that it does not do it while others are measured."""
    for row in await _execute(superuser, "select datname from pg_database where datallowconn"):
        await _execute({**superuser, "database": row["datname"]}, "vacuum analyze")


async def _execute(target: Mapping[str, Any], statement: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(**target)
    try:
        return list(await connection.fetch(statement))
    finally:
        await connection.close()


def available() -> dict[str, dict[str, Opening]]:
    """Every store that is installed, by the forms of text that it is tried with."""
    stores: dict[str, dict[str, Opening]] = {"Recollect": {"text": RecollectStore.opened}}
    for name, package, store in (
        ("LangGraph", "langgraph", LangGraphStore),
        ("Chroma", "chromadb", ChromaStore),
    ):
        if find_spec(package) is None:
            print(f"Without {package}, {name} is not measured: `make yardsticks` installs it.")
        else:
            stores[name] = {"text": store.opening(False), "speaker: text": store.opening(True)}
    return stores
