"""A user of the gateway touches chats of the gateway only, and no other door writes to those."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx
import pytest
from mcp import Client

from recollect.engine import Engine
from tests.gateway_clients import new_user, said
from tests.mcp_servers import text_of
from tests.rest_servers import listening

Write = Callable[[], Awaitable[object]]


class Application:
    """What an application with access to the namespace does with sessions of its own."""

    def __init__(self, http: httpx.AsyncClient, mcp: Client) -> None:
        self.http = http
        self._mcp = mcp

    async def stm(self, session_id: str, text: str) -> httpx.Response:
        messages = [{"role": "user", "content": text}]
        return await self.http.post(f"/stm/{session_id}/messages", json={"messages": messages})

    async def tool(self, name: str, **arguments: Any) -> tuple[bool, str]:
        """Whether the tool did it, and what it said."""
        result = await self._mcp.call_tool(name, arguments)
        return not result.is_error, text_of(result)

    async def ltm(self, session_id: str, user_id: str, text: str) -> httpx.Response:
        body = {"messages": text, "category": "fact", "session_id": session_id, "user_id": user_id}
        return await self.http.post("/ltm/memories", json=body)

    async def raw(self, session_id: str, text: str) -> tuple[bool, str]:
        return await self.tool("store_raw_dialogue", session_id=session_id, speaker="agent", content=text)

    async def interaction(self, session_id: str, text: str) -> tuple[bool, str]:
        return await self.tool(
            "record_interaction", conversation_id=session_id, user_message=text, assistant_response="The secret is out."
        )

    async def sees(self, session_id: str) -> set[str]:
        """Everything that the doors which show a session show of it."""
        texts = set()
        for part in ("messages", "context"):
            shown = (await self.http.get(f"/stm/{session_id}/{part}")).raise_for_status().json()
            texts |= {message["content"] for message in shown["messages"]}
        there, fetched = await self.tool("fetch_chat_history", conversation_id=session_id)
        texts |= {message["content"] for message in json.loads(fetched)["messages"]} if there else set()
        (contents,) = (await self._mcp.read_resource(f"memory://l0-raw?session_id={session_id}")).contents
        return texts | {message["content"] for message in json.loads(contents.text)["contents"]}  # type: ignore[union-attr]


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


@pytest.fixture
async def url(engine: Engine) -> AsyncIterator[str]:
    async with listening(engine) as address:
        yield address


@asynccontextmanager
async def running(url: str) -> AsyncIterator[Application]:
    """No fixture: the MCP client must be closed by the task that opened it."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as http, Client(f"{url}/mcp") as mcp:
        yield Application(http, mcp)


async def test_a_session_name_that_both_use_is_two_sessions(url: str) -> None:
    async with running(url) as application:
        anna = await new_user(application.http, "anna")
        for order in ("user first", "application first", "at once"):
            session = f"chat:{order.replace(' ', '-')}"
            mine = [f"Anna likes tea, {order}."]
            secrets = [f"The secret is tea number {number}, {order}." for number in range(3)]

            async def user(session: str = session, texts: list[str] = mine) -> None:
                await anna.ok("/memories/add", session_id=session, messages=said("anna", *texts))

            async def writes(session: str = session, texts: list[str] = secrets) -> None:
                (await application.stm(session, texts[0])).raise_for_status()
                assert (await application.raw(session, texts[1]))[0]
                assert (await application.interaction(session, texts[2]))[0]

            await _in_order(order, user, writes)
            await anna.ok("/memories/flush", session_id=session)
            conversation = session.removeprefix("chat:")
            assert await anna.texts("secret tea", "current_chat", conversation_id=conversation) == mine
            assert {*secrets, "The secret is out."} == await application.sees(session)
        found = await anna.texts("The secret is out, which tea number?", top_k=100)
        assert len(found) == 3
        assert all(text.startswith("Anna likes tea") for text in found)


async def _in_order(order: str, user: Write, application: Write) -> None:
    if order == "at once":
        await asyncio.gather(user(), application())
        return
    for write in (user, application) if order == "user first" else (application, user):
        await write()


async def test_a_session_that_is_no_chat_is_refused_and_stays_the_applications(url: str) -> None:
    async with running(url) as application:
        anna = await new_user(application.http, "anna")
        for name in ("main", "support-123", "Chat:1", " chat:1", "chat", "chat:"):
            for path, more in (("/memories/add", {"messages": said("anna", "Tea?")}), ("/memories/flush", {})):
                assert "session_id must be chat: followed by the id" in await anna.refused(
                    422, path, session_id=name, **more
                )
        (await application.stm("main", "The secret is tea.")).raise_for_status()
        assert await anna.found("secret tea") == []
        assert await application.sees("main") == {"The secret is tea."}


async def test_other_doors_read_a_chat_by_its_own_id_and_write_nothing_to_it(url: str) -> None:
    async with running(url) as application:
        anna = await new_user(application.http, "anna")
        stored: str = (await anna.say("1", "Anna likes tea."))["stored_as"]
        assert stored.startswith("chat:1@")
        assert await application.sees(stored) == {"Anna likes tea."}
        assert await application.sees("chat:1") == set()
        refusals = [
            (await application.stm(stored, "The secret is tea.")).text,
            (await application.http.put(f"/stm/{stored}/config", json={"strategy": "sliding_window"})).text,
            (await application.ltm(stored, "anna", "The secret is tea.")).text,
            (await application.raw(stored, "The secret is tea."))[1],
            (await application.interaction(stored, "The secret is tea."))[1],
        ]
        assert all("is a gateway chat: only its user" in refusal for refusal in refusals), refusals
        assert await application.sees(stored) == {"Anna likes tea."}
        assert await anna.texts("secret tea") == ["Anna likes tea."]


async def test_a_chat_that_nobody_has_begun_cannot_be_taken_beforehand(url: str) -> None:
    async with running(url) as application:
        anna = await new_user(application.http, "anna")
        stored: str = (await anna.say("1", "Anna likes tea."))["stored_as"]
        unbegun = stored.replace("chat:1@", "chat:2@")
        assert (await application.stm(unbegun, "The secret is tea.")).status_code == 422
        assert (await anna.say("2", "Anna likes coffee."))["stored_as"] == unbegun
        assert await application.sees(unbegun) == {"Anna likes coffee."}


async def test_the_id_of_anothers_chat_is_only_a_name(url: str) -> None:
    async with running(url) as application:
        anna, mallory = [await new_user(application.http, name) for name in ("anna", "mallory")]
        stored: str = (await anna.say("1", "Anna likes tea."))["stored_as"]
        taken = await mallory.say(stored.removeprefix("chat:"), "Mallory was here.")
        assert taken["stored_as"].startswith(f"{stored}@")
        assert await mallory.texts("tea", "current_chat", conversation_id=stored.removeprefix("chat:")) == [
            "Mallory was here."
        ]
        assert await application.sees(stored) == {"Anna likes tea."}
        assert await anna.texts("Mallory") == ["Anna likes tea."]
