"""The table in docs/doors.md is true: what is written through each door is read through every door."""

import asyncio
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import pytest

from recollect import ContextService, MemoryManager
from recollect.engine import Engine
from recollect.errors import Invalid, NotFound
from recollect.settings import Settings
from tests import rest_servers
from tests.commands import recollect
from tests.gateway_clients import new_user, said
from tests.mcp_servers import McpClient, connected, over_stdio, serving

PAGE = Path(__file__).parents[2] / "docs" / "doors.md"
HEADER = "| written through | read through | shown in |"
PAIR = re.compile(
    r"^\| (?P<writer>[^|]+) \| (?P<reader>[^|]+) \| (?P<shown>[a-z, -]+?)(?: \[\^(?P<why>\w+)\])? \|$", re.M
)
FOOTNOTE = re.compile(r"^\[\^(\w+)\]: ", re.M)

DOORS = ("library", "ContextService", "MCP stdio", "MCP HTTP", "REST STM", "REST LTM", "gateway", "CLI")
HISTORY, RECALL = "history", "recall"
USER = "anna"

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

# What is written through each door, and a question that shares no word with it.
SAID = {
    "library": ("My physician told me to sleep more.", "What did the doctor advise?"),
    "ContextService": ("We adopted a puppy from the shelter.", "Which pets does this family have?"),
    "MCP stdio": ("Our flight to Lisbon leaves at dawn.", "When is the plane going to take off?"),
    "MCP HTTP": ("The landlord raises the rent in spring.", "Is this apartment getting more expensive?"),
    "REST STM": ("Grandmother's soup needs two onions.", "Which vegetables go into that recipe?"),
    "REST LTM": ("She paints landscapes with watercolours.", "What art does this woman make?"),
    "gateway": ("My bicycle has a broken chain.", "Why can't I ride the bike?"),
    "CLI": ("The spare key lies under the blue flowerpot.", "How do I get into a house that is locked?"),
}


class Door:
    """A way in and out. One that cannot show a history, or cannot search, shows nothing."""

    def write(self, text: str) -> str | None:
        """Store a text; returns the session that it belongs to, if any."""
        raise NotImplementedError

    def history(self, session_id: str) -> list[str]:
        return []

    def recall(self, question: str) -> list[str]:
        """The texts that answer a question, the best first."""
        return []


class Library(Door):
    def __init__(self, settings: Settings, loop: asyncio.Runner) -> None:
        self._memory = MemoryManager(settings)
        self._run = loop.run

    def write(self, text: str) -> str:
        session = self._run(self._memory.create_session(USER))
        self._run(self._memory.store_message(session, "user", text))
        return str(session)

    def history(self, session_id: str) -> list[str]:
        try:
            session = UUID(session_id)
        except ValueError:
            with pytest.raises(Invalid, match="session_id must be a UUID"):
                self._run(self._memory.get_conversation_history(session_id))  # type: ignore[arg-type]
            return []
        return [message.content for message in self._run(self._memory.get_conversation_history(session))]

    def recall(self, question: str) -> list[str]:
        return [memory.text for memory in self._run(self._memory.recall(question)).memories]

    def flush(self) -> None:
        self._run(self._memory.flush())

    def close(self) -> None:
        self._run(self._memory.close())


class Context(Door):
    def write(self, text: str) -> str:
        conversation: str = ContextService.create_conversation(USER)["id"]
        ContextService.record_interaction(conversation, text, "Noted.")
        return conversation

    def history(self, session_id: str) -> list[str]:
        try:
            return [message["content"] for message in ContextService.fetch_chat_history(session_id)["messages"]]
        except NotFound:
            return []


class Mcp(Door):
    def __init__(self, client: McpClient) -> None:
        self._client = client

    def write(self, text: str) -> str:
        conversation: str = self._client.ok("create_conversation", user_id=USER)["id"]
        self._client.ok(
            "record_interaction", conversation_id=conversation, user_message=text, assistant_response="Noted."
        )
        return conversation

    def history(self, session_id: str) -> list[str]:
        raw = [
            message["content"] for message in self._client.read(f"memory://l0-raw?session_id={session_id}")["contents"]
        ]
        if not raw:
            assert "not found" in self._client.refused("fetch_chat_history", conversation_id=session_id)
            return []
        fetched = self._client.ok("fetch_chat_history", conversation_id=session_id)["messages"]
        assert sorted(message["content"] for message in fetched) == sorted(raw)
        return raw

    def recall(self, question: str) -> list[str]:
        return [memory["text"] for memory in self._client.ok("recall", query=question)["memories"]]


class ShortTerm(Door):
    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def write(self, text: str) -> str:
        session = str(uuid4())
        body = {"messages": [{"role": "user", "content": text}]}
        self._http.post(f"/stm/{session}/messages", json=body).raise_for_status()
        return session

    def history(self, session_id: str) -> list[str]:
        answer = self._http.get(f"/stm/{session_id}/messages").raise_for_status()
        return [message["content"] for message in answer.json()["messages"]]

    def recall(self, question: str) -> list[str]:
        answer = self._http.post("/recall", json={"query": question}).raise_for_status()
        return [memory["text"] for memory in answer.json()["memories"]]


class LongTerm(Door):
    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def write(self, text: str) -> str:
        session = str(uuid4())
        body = {"messages": text, "category": "fact", "user_id": USER, "session_id": session}
        self._http.post("/ltm/memories", json=body).raise_for_status()
        return session

    def recall(self, question: str) -> list[str]:
        answer = self._http.post("/ltm/memories/search", json={"query": question, "user_id": USER}).raise_for_status()
        return [result["memory"] for result in answer.json()["results"]]


class Gateway(Door):
    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._identity = {"user_id": USER, "user_key": http.post("/users", json={"user_id": USER}).json()["user_key"]}

    def write(self, text: str) -> str:
        body = {"session_id": f"chat:{uuid4()}", "messages": said(USER, text)}
        answer = self._http.post("/memories/add", json=self._identity | body).raise_for_status()
        stored: str = answer.json()["stored_as"]
        return stored

    def recall(self, question: str) -> list[str]:
        body = {"query": question, "scope": ["all_user_memory"]}
        answer = self._http.post("/memories/search", json=self._identity | body).raise_for_status()
        return [result["text"] for result in answer.json()["results"]]


class CommandLine(Door):
    def write(self, text: str) -> None:
        _command("remember", text)

    def recall(self, question: str) -> list[str]:
        return [memory["text"] for memory in json.loads(_command("recall", question, "--json"))["memories"]]


def _command(*arguments: str) -> str:
    result = recollect(*arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


@contextmanager
def _opened(settings: Settings, log_file: Path) -> Iterator[tuple[Library, dict[str, Door]]]:
    """Every door to one namespace: a running server, a client over stdio, this process and the command."""
    with ExitStack() as stack:
        log = stack.enter_context(log_file.open("w"))
        url = stack.enter_context(serving(settings.namespace, log))
        http = stack.enter_context(httpx.Client(base_url=url.removesuffix("/mcp"), timeout=60))
        library = Library(settings, stack.enter_context(asyncio.Runner()))
        stack.callback(library.close)
        stack.callback(ContextService.close)
        doors: tuple[Door, ...] = (
            library,
            Context(),
            Mcp(stack.enter_context(over_stdio(settings.namespace, log))),
            Mcp(stack.enter_context(connected(url, settings.namespace))),
            ShortTerm(http),
            LongTerm(http),
            Gateway(http),
            CommandLine(),
        )
        yield library, dict(zip(DOORS, doors, strict=True))


def _shown(door: Door, session_id: str | None, text: str, question: str) -> set[str]:
    """How a door shows a text. What is recalled must be the best answer, not only one of all there are."""
    shown = set()
    if session_id is not None and text in door.history(session_id):
        shown.add(HISTORY)
    recalled = door.recall(question)
    if text in recalled:
        assert recalled[0] == text
        shown.add(RECALL)
    return shown


def _rows() -> list[re.Match[str]]:
    table = PAGE.read_text().partition(f"{HEADER}\n")[2]
    return list(PAIR.finditer(table))


def _promised() -> dict[tuple[str, str], set[str]]:
    return {(row["writer"], row["reader"]): set(row["shown"].split(", ")) - {"-"} for row in _rows()}


def test_what_is_written_through_a_door_is_shown_by_every_door_as_the_table_says(
    settings: Settings, tmp_path: Path
) -> None:
    log_file = tmp_path / "log"
    with _opened(settings, log_file) as (library, doors):
        sessions = {writer: doors[writer].write(text) for writer, (text, _) in SAID.items()}
        library.flush()

        def read(writer: str, reader: str) -> set[str]:
            return _shown(doors[reader], sessions[writer], *SAID[writer])

        # A command takes about a second to start, so that they run beside the others.
        with ThreadPoolExecutor(2) as beside:
            by_command = {(writer, "CLI"): beside.submit(read, writer, "CLI") for writer in DOORS}
            others = [(writer, reader) for writer, reader in product(DOORS, DOORS) if reader != "CLI"]
            shown = {pair: read(*pair) for pair in others}
            shown |= {pair: reading.result() for pair, reading in by_command.items()}
    assert shown == _promised()
    assert "Traceback" not in log_file.read_text()


def test_the_table_has_a_row_for_each_pair_of_doors_and_a_reason_for_each_that_shows_nothing(pooling: str) -> None:
    page = PAGE.read_text()
    rows = _rows()
    assert [(row["writer"], row["reader"]) for row in rows] == list(product(DOORS, DOORS))
    assert {row["shown"] for row in rows} <= {HISTORY, RECALL, f"{HISTORY}, {RECALL}", "-"}
    assert all(row["why"] for row in rows if row["shown"] == "-")
    assert {row["why"] for row in rows if row["why"]} == set(FOOTNOTE.findall(page))


async def test_what_short_term_memory_adds_to_a_session_of_a_user_is_found_by_that_users_gateway(
    engine: Engine, memory: MemoryManager
) -> None:
    session = await memory.create_session(USER)
    async with rest_servers.serving(engine) as http:
        body = {"messages": [{"role": "user", "content": "My bicycle has a broken chain."}]}
        (await http.post(f"/stm/{session}/messages", json=body)).raise_for_status()
        user = await new_user(http, USER)
        assert await user.texts("bicycle") == ["My bicycle has a broken chain."]
