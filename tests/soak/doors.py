"""The doors as the soak uses them: each writes a line, reads its lines back, and asks a question."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from uuid import UUID, uuid4

import httpx
from mcp import Client, MCPError

from recollect import ContextService, MemoryManager

T = TypeVar("T")

MOST = 10_000

# How every sentence begins that tells of a database which cannot answer now.
AWAY = "The database "

# What the SDK makes of the 503 of the gate, which asks the database who may come in.
REFUSED = "Server returned an error response"


class Away(Exception):
    """The database is away, and the door says so in the words of its contract."""


class Door(Protocol):
    """One user at one door."""

    async def write(self, text: str) -> None: ...

    async def read(self) -> list[str]: ...

    async def ask(self, question: str) -> int: ...


async def _http(client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    answer = await client.request(method, path, json=body)
    if answer.status_code == 503:
        raise Away
    assert answer.status_code in (200, 201), f"{method} {path}: {answer.status_code} {answer.text[:200]}"
    return answer.json()


async def _logged(library: MemoryManager, session_id: str) -> list[str]:
    """All that a user said in a session; the contracts show only so much at once."""
    engine = await library._engine()
    async with engine.database.reading("default") as db:
        messages = await engine.capabilities.log.recent(db, session_id, MOST)
    return [message.content for message in messages if message.role == "user"]


@dataclass
class Library:
    memory: MemoryManager
    session: UUID

    @classmethod
    async def enter(cls, memory: MemoryManager, user: str) -> "Library":
        return cls(memory, await memory.create_session(user))

    async def write(self, text: str) -> None:
        await self.memory.store_message(self.session, "user", text)

    async def read(self) -> list[str]:
        return await _logged(self.memory, str(self.session))

    async def ask(self, question: str) -> int:
        return len(await self.memory.get_conversation_history(self.session, limit=20))


@dataclass
class Context:
    library: MemoryManager
    conversation: str

    @classmethod
    async def enter(cls, library: MemoryManager, user: str) -> "Context":
        return cls(library, (await asyncio.to_thread(ContextService.create_conversation, user))["id"])

    async def write(self, text: str) -> None:
        await asyncio.to_thread(ContextService.record_interaction, self.conversation, text, "noted")

    async def read(self) -> list[str]:
        return await _logged(self.library, self.conversation)

    async def ask(self, question: str) -> int:
        return len((await asyncio.to_thread(ContextService.fetch_chat_history, self.conversation, 20))["messages"])


@dataclass
class Mcp:
    client: Client
    session: str

    async def write(self, text: str) -> None:
        await self._call("store_raw_dialogue", session_id=self.session, speaker="user", content=text)

    async def read(self) -> list[str]:
        uri = f"memory://l0-raw?session_id={self.session}&limit=1000"
        (contents,) = (await _unless_away(self.client.read_resource(uri))).contents
        return [message["content"] for message in json.loads(contents.text)["contents"]]  # type: ignore[union-attr]

    async def ask(self, question: str) -> int:
        return len((await self._call("recall", query=question))["memories"])

    async def _call(self, tool: str, **arguments: Any) -> Any:
        result = await _unless_away(self.client.call_tool(tool, arguments))
        text = str(result.content)
        if result.is_error and AWAY in text:
            raise Away
        assert not result.is_error, text
        return result.structured_content


async def _unless_away(answer: Awaitable[T]) -> T:
    try:
        return await answer
    except MCPError as problem:
        if problem.message.startswith((AWAY, REFUSED)):
            raise Away from problem
        raise


@dataclass
class ShortTerm:
    http: httpx.AsyncClient
    session: str

    async def write(self, text: str) -> None:
        body = {"messages": [{"role": "user", "content": text}]}
        await _http(self.http, "POST", f"/stm/{self.session}/messages", body)

    async def read(self) -> list[str]:
        return [m["content"] for m in (await _http(self.http, "GET", f"/stm/{self.session}/messages"))["messages"]]

    async def ask(self, question: str) -> int:
        return len((await _http(self.http, "GET", f"/stm/{self.session}/context"))["messages"])


@dataclass
class LongTerm:
    http: httpx.AsyncClient
    user: str

    async def write(self, text: str) -> None:
        await _http(self.http, "POST", "/ltm/memories", {"messages": text, "category": "fact", "user_id": self.user})

    async def read(self) -> list[str]:
        found = await _http(self.http, "GET", f"/ltm/memories?user_id={self.user}&limit=1000")
        return [memory["memory"] for memory in found["results"]]

    async def ask(self, question: str) -> int:
        body = {"query": question, "user_id": self.user, "limit": 10}
        return len((await _http(self.http, "POST", "/ltm/memories/search", body))["results"])


@dataclass
class Gateway:
    http: httpx.AsyncClient
    user: str
    key: str
    chat: str
    library: MemoryManager
    clock: int = 0
    stored_as: str = ""

    @classmethod
    async def enter(cls, http: httpx.AsyncClient, library: MemoryManager, user: str) -> "Gateway":
        made = await _http(http, "POST", "/users", {"user_id": user})
        return cls(http, user, made["user_key"], f"chat:{uuid4()}", library)

    async def write(self, text: str) -> None:
        self.clock += 1
        said = [{"sender_id": self.user, "role": "user", "timestamp": self.clock, "content": text}]
        self.stored_as = (await self._post("/memories/add", session_id=self.chat, messages=said))["stored_as"]

    async def read(self) -> list[str]:
        """What a gateway chat holds is read through another door: it is the same session."""
        return await _logged(self.library, self.stored_as)

    async def ask(self, question: str) -> int:
        return len((await self._post("/memories/search", query=question, scope=["all_user_memory"]))["results"])

    async def _post(self, path: str, **body: Any) -> Any:
        return await _http(self.http, "POST", path, {"user_id": self.user, "user_key": self.key} | body)


Entering = Callable[[str], Awaitable[Door]]
