"""Long-term memories at every door: what one changes is what all show, now and as of each moment before."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy.exc import DatabaseError

from recollect import Conflict, Invalid, MemoryManager, NotFound
from recollect.settings import Settings
from recollect.storage import embedded
from tests.commands import recollect
from tests.mcp_servers import McpClient, connected, environment, over_stdio, serving

Row = tuple[str, str]


class Doors:
    """The doors to one namespace. A list of memories is (id, text), newest first."""

    def __init__(self, settings: Settings, runner: asyncio.Runner, http: httpx.Client, mcps: list[McpClient]) -> None:
        self.memory = MemoryManager(settings)
        self.run = runner.run
        self.http = http
        self.mcps = mcps
        self.mcp = mcps[0]
        self._env = os.environ | environment(settings.namespace)

    def command(self, *arguments: str) -> Any:
        return recollect(*arguments, env=self._env)

    def cli(self, *arguments: str) -> str:
        done = self.command(*arguments)
        assert done.returncode == 0, done.stderr
        printed: str = done.stdout
        return printed

    def listed(self, user: str, **filters: str) -> list[Row]:
        """What every door lists, which is the same."""
        times = {name: datetime.fromisoformat(value) for name, value in filters.items() if name != "key"}
        key = {name: value for name, value in filters.items() if name == "key"}
        found = self.run(self.memory.list_memories(user_id=user, **key, **times))  # type: ignore[arg-type]
        rows = [(str(each.id), each.text) for each in found]
        answer = self.http.get("/ltm/memories", params={"user_id": user} | filters).raise_for_status().json()
        assert [(each["id"], each["memory"]) for each in answer["results"]] == rows
        for mcp in self.mcps:
            assert [(each["id"], each["text"]) for each in mcp.ok("list_memories", user_id=user, **filters)] == rows
        flags = [part for name, value in filters.items() for part in ("--" + name.replace("_", "-"), value)]
        printed = json.loads(self.cli("memories", "list", "--user", user, "--json", *flags))
        assert [(each["id"], each["text"]) for each in printed] == rows
        return rows

    def shown(self, memory_id: str, as_of: str | None = None) -> str:
        """The text that every door has for a memory."""
        then = {} if as_of is None else {"as_of": as_of}
        moment = None if as_of is None else datetime.fromisoformat(as_of)
        text: str = self.run(self.memory.get_memory(memory_id, as_of=moment)).text
        assert self.http.get(f"/ltm/memories/{memory_id}", params=then).json()["memory"] == text
        assert self.mcp.ok("get_memory", id=memory_id, **then)["text"] == text
        flags = [] if as_of is None else ["--as-of", as_of]
        assert json.loads(self.cli("memories", "show", memory_id, "--json", *flags))["text"] == text
        return text


@pytest.fixture(scope="module")
def doors(server: embedded.Lease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    namespace = f"test-{uuid4()}"
    settings = Settings(namespace=namespace, data_dir=Path(os.environ["RECOLLECT_TEST_HOME"]))
    with ExitStack() as stack:
        log = stack.enter_context((tmp_path_factory.mktemp("doors") / "log").open("w"))
        url = stack.enter_context(serving(namespace, log))
        http = stack.enter_context(httpx.Client(base_url=url.removesuffix("/mcp"), timeout=60))
        mcps = [stack.enter_context(over_stdio(namespace, log)), stack.enter_context(connected(url, namespace))]
        opened = Doors(settings, stack.enter_context(asyncio.Runner()), http, mcps)
        stack.callback(lambda: opened.run(opened.memory.close()))
        yield opened


def test_one_fact_changed_through_every_door_is_the_same_at_every_door_and_time(doors: Doors) -> None:
    berlin = doors.mcp.ok("add_memory", text="Ann lives in Berlin.", user_id="ann", key="home city")
    assert berlin["outcome"] == "created"
    first = berlin["since"]
    district = doors.http.patch(f"/ltm/memories/{berlin['id']}", json={"data": "Ann lives in Berlin-Mitte."})
    second = district.raise_for_status().json()["updated_at"]
    lisbon = doors.cli("remember", "Ann lives in Lisbon.", "--user", "ann", "--key", "home city").strip()
    third = doors.run(doors.memory.get_memory(lisbon)).since.isoformat()
    undone = doors.run(doors.memory.undo_memory(berlin["id"]))
    assert undone.superseded_by is None
    assert doors.listed("ann") == [(berlin["id"], "Ann lives in Berlin-Mitte.")]
    assert doors.listed("ann", as_of=third) == [(lisbon, "Ann lives in Lisbon.")]
    assert doors.listed("ann", as_of=second) == [(berlin["id"], "Ann lives in Berlin-Mitte.")]
    assert doors.listed("ann", as_of=first, key="home city") == [(berlin["id"], "Ann lives in Berlin.")]
    assert doors.listed("ann", key="employer") == []
    assert doors.shown(berlin["id"], first) == "Ann lives in Berlin."
    assert doors.shown(berlin["id"]) == "Ann lives in Berlin-Mitte."
    events = [each["event"] for each in doors.mcp.ok("memory_history", id=berlin["id"])]
    assert events == ["create", "update", "supersede", "undo"]
    assert [each.event for each in doors.run(doors.memory.memory_history(berlin["id"]))] == events
    told = doors.cli("memories", "history", berlin["id"])
    assert f"supersede  by {lisbon}  because of: key\n" in told


def test_a_memory_goes_by_the_name_that_recall_shows_at_every_door(doors: Doors) -> None:
    doors.mcp.ok("add_memory", text="Xenia collects sundials.", user_id="xenia")
    (found, *_) = doors.mcp.ok("recall", query="Who collects sundials?")["memories"]
    assert found["id"].startswith("memory:")
    assert doors.shown(found["id"]) == "Xenia collects sundials."
    doors.mcp.ok("add_memory", text="Xenia collects clocks.", user_id="xenia", supersedes=[found["id"]])
    assert doors.cli("memories", "undo", found["id"]) == "Restored: Xenia collects sundials.\n"
    told = doors.http.get(f"/ltm/memories/{found['id']}/lineage").raise_for_status().json()
    assert told["name"] == found["id"]
    assert [each["event"] for each in doors.mcp.ok("memory_history", id=found["id"])] == ["create", "supersede", "undo"]
    doors.http.delete(f"/ltm/memories/{found['id']}").raise_for_status()
    assert [text for _, text in doors.listed("xenia")] == ["Xenia collects clocks."]


def test_what_is_true_at_a_time_is_the_same_at_every_door(doors: Doors) -> None:
    doors.cli("remember", "--user", "ben", "--valid-until", "2026-01-01T00:00Z", "Ben works at the harbour.")
    body = {"category": "fact", "user_id": "ben", "valid_from": "2026-01-01T00:00:00Z"}
    doors.http.post("/ltm/memories", json=body | {"messages": "Ben works at the zoo."}).raise_for_status()
    assert [text for _, text in doors.listed("ben")] == ["Ben works at the zoo.", "Ben works at the harbour."]
    assert [text for _, text in doors.listed("ben", valid_at="2025-12-31T00:00:00+00:00")] == [
        "Ben works at the harbour."
    ]
    assert [text for _, text in doors.listed("ben", valid_at="2026-01-01T00:00:00+00:00")] == ["Ben works at the zoo."]


def test_a_deleted_memory_gives_back_what_it_had_superseded_and_is_gone_at_every_time(doors: Doors) -> None:
    old = doors.mcp.ok("add_memory", text="Cid drinks tea.", user_id="cid")["id"]
    new = doors.run(doors.memory.add_memory("Cid drinks coffee.", user_id="cid", supersedes=[old], pinned=True))
    assert [str(each) for each in new.superseded] == [old]
    then = new.since.isoformat()
    assert doors.listed("cid", as_of=then) == [(str(new.id), "Cid drinks coffee.")]
    assert doors.cli("memories", "delete", str(new.id), "--restore") == f"Deleted: {new.id}\nRestored: {old}\n"
    assert doors.listed("cid") == [(old, "Cid drinks tea.")]
    assert doors.listed("cid", as_of=then) == []
    assert "was known at" in doors.mcp.refused("get_memory", id=str(new.id), as_of=then)
    history = doors.mcp.ok("memory_history", id=str(new.id))
    assert [each["event"] for each in history] == ["create", "delete"]
    assert "coffee" not in json.dumps(history)


def test_every_field_of_a_memory_can_be_set_changed_and_cleared(doors: Doors) -> None:
    soon = datetime.now(UTC) + timedelta(days=1)
    added = doors.run(
        doors.memory.add_memory(
            "Dan has a boat.",
            "preference",
            user_id="dan",
            metadata={"a": 1, "b": 2},
            valid_from=datetime(2026, 1, 1, tzinfo=UTC),
            expires_at=soon,
        )
    )
    change = {"metadata": {"a": None}, "key": "boat", "clear": ["expires_at"], "pinned": True}
    doors.mcp.ok("update_memory", id=str(added.id), **change)
    changed = doors.mcp.ok("get_memory", id=str(added.id))
    assert (changed["metadata"], changed["key"], changed["pinned"]) == ({"b": 2}, "boat", True)
    assert "expires_at" not in changed
    cleared = doors.run(doors.memory.update_memory(added.id, clear=["key", "valid_from"], pinned=False))
    assert (cleared.key, cleared.valid_from, cleared.pinned, cleared.category) == (None, None, False, "preference")
    printed = doors.cli("memories", "show", str(added.id), "--as-of", added.since.isoformat())
    assert "valid_from: 2026-01-01T00:00:00Z" in printed


def test_seconds_from_now_are_stored_as_a_time_at_every_door(doors: Doors) -> None:
    before = datetime.now(UTC)
    body = {"messages": "Kim fasts over REST.", "category": "fact", "user_id": "kim", "expires_in": 86_400}
    ids = [
        doors.http.post("/ltm/memories", json=body).raise_for_status().json()["id"],
        str(doors.run(doors.memory.add_memory("Kim fasts in the library.", user_id="kim", expires_in=86_400.5)).id),
        doors.mcp.ok("add_memory", text="Kim fasts over MCP.", user_id="kim", expires_in=86_400)["id"],
        *(
            doors.cli("remember", f"Kim fasts for {given}.", "--user", "kim", "--expires-in", given).strip()
            for given in ("86400", "24h", "1d")
        ),
    ]

    def expiry(memory_id: str) -> datetime:
        stored = doors.run(doors.memory.get_memory(memory_id)).expires_at
        assert stored is not None
        return stored

    for memory_id in ids:
        assert before < expiry(memory_id) - timedelta(days=1) < datetime.now(UTC) + timedelta(seconds=1)
    ways: list[Callable[[int], object]] = [
        lambda days: doors.run(doors.memory.update_memory(ids[0], expires_in=days * 86_400)),
        lambda days: doors.mcp.ok("update_memory", id=ids[0], expires_in=days * 86_400),
        lambda days: doors.http.patch(f"/ltm/memories/{ids[0]}", json={"expires_in": days * 86_400}).raise_for_status(),
    ]
    for days, change in enumerate(ways, 2):
        change(days)
        assert before < expiry(ids[0]) - timedelta(days=days) < datetime.now(UTC)
    # Null is no number of seconds, so that it leaves the time alone; expires_at is the field to remove.
    last = expiry(ids[0])
    told = doors.http.patch(f"/ltm/memories/{ids[0]}", json={"expires_in": None, "pinned": True}).json()
    assert datetime.fromisoformat(told["expires_at"]) == last
    assert "expires_in" not in told
    with pytest.raises(Invalid, match="pass only one of them"):
        doors.run(doors.memory.update_memory(ids[0], expires_in=60, clear=["expires_at"]))
    assert (
        "pass only one"
        in doors.http.patch(f"/ltm/memories/{ids[0]}", json={"expires_in": 60, "expires_at": None}).json()["detail"]
    )
    assert expiry(ids[0]) == last


@pytest.mark.parametrize("given", [0, -1, float("nan"), True, "60"], ids=str)
def test_seconds_from_now_are_a_positive_number(doors: Doors, given: Any) -> None:
    with pytest.raises(Invalid, match="expires_in must be a number of seconds greater than 0, not"):
        doors.run(doors.memory.add_memory("Lea sings.", user_id="lea", expires_in=given))
    if given == given:  # NaN is no JSON
        body = {"messages": "Lea sings.", "category": "fact", "user_id": "lea", "expires_in": given}
        refused = doors.http.post("/ltm/memories", json=body)
        assert (refused.status_code, "expires_in" in refused.text) == (422, True)
        assert "expires_in" in doors.mcp.refused("add_memory", text="Lea sings.", user_id="lea", expires_in=given)
    assert doors.listed("lea") == []


@pytest.mark.parametrize("given", ["soon", "3m", "-1d", "1d2h", "d"])
def test_a_length_of_time_on_the_command_line_says_its_units(doors: Doors, given: str) -> None:
    command = doors.command("remember", "Lou sings.", "--user", "lou", f"--expires-in={given}")
    assert (command.returncode, command.stdout) == (2, "")
    assert "--expires-in must be a number of seconds, or a number of hours, days or weeks such as 12h" in command.stderr


def test_a_memory_is_listed_page_by_page(doors: Doors) -> None:
    ids = [doors.run(doors.memory.add_memory(f"Fact {number}.", user_id="eve")).id for number in range(3)]
    first = doors.run(doors.memory.list_memories(user_id="eve", limit=2))
    rest = doors.run(doors.memory.list_memories(user_id="eve", limit=2, after=first[-1].id))
    assert [each.id for each in first + rest] == ids[::-1]


def test_the_gateway_answers_as_of_a_time(doors: Doors) -> None:
    key = doors.http.post("/users", json={"user_id": "fay"}).json()["user_key"]
    old = doors.mcp.ok("add_memory", text="Fay rides a red bicycle.", user_id="fay", key="bicycle")
    doors.mcp.ok("add_memory", text="Fay rides a green bicycle.", user_id="fay", key="bicycle")
    asked = {"user_id": "fay", "user_key": key, "query": "bicycle", "scope": ["all_user_memory"]}

    def texts(**more: str) -> list[str]:
        answer = doors.http.post("/memories/search", json=asked | more).raise_for_status()
        return [each["text"] for each in answer.json()["results"]]

    assert texts() == ["Fay rides a green bicycle."]
    assert texts(as_of=old["since"]) == ["Fay rides a red bicycle."]
    refused = doors.http.post("/memories/search", json=asked | {"as_of": "2999-01-01T00:00:00Z"})
    assert refused.status_code == 422
    assert "is in the future" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"user_id": "gus", "expires_at": "2020-01-01T00:00:00+00:00"}, "is in the past: pass a time in the future"),
        (
            {"user_id": "gus", "valid_from": "2026-01-02T00:00:00+00:00", "valid_until": "2026-01-01T00:00:00+00:00"},
            "valid_until must be later than valid_from",
        ),
        ({"user_id": "gus", "supersedes": ["no-such-id"]}, "Unknown memory no-such-id"),
        ({"user_id": "gus", "key": " "}, "key is empty"),
        (
            {"user_id": "gus", "expires_at": "2999-01-01T00:00:00+00:00", "expires_in": 60},
            "expires_at and expires_in both say when the memory expires: pass only one of them",
        ),
        ({"user_id": "gus", "expires_in": 10**12}, "expires_in is beyond the years that can be stored"),
    ],
    ids=str,
)
def test_what_cannot_be_stored_is_refused_in_the_same_words(doors: Doors, given: dict[str, Any], sentence: str) -> None:
    times = {name: datetime.fromisoformat(value) for name, value in given.items() if name[-3:] in ("_at", "rom", "til")}
    with pytest.raises((Invalid, NotFound), match=sentence):
        doors.run(doors.memory.add_memory("Gus sings.", **given | times))
    assert sentence in doors.mcp.refused("add_memory", text="Gus sings.", **given)
    body = {"messages": "Gus sings.", "category": "fact"} | given
    assert sentence in doors.http.post("/ltm/memories", json=body).json()["detail"]
    flags = []
    for name, value in given.items():
        flag = "--user" if name == "user_id" else "--" + name.replace("_", "-")
        flags += [flag, str(value[0] if isinstance(value, list) else value)]
    command = doors.command("remember", "Gus sings.", *flags)
    assert command.returncode != 0
    assert sentence in command.stderr
    assert doors.listed("gus") == []


def test_a_memory_of_another_scope_is_not_superseded(doors: Doors) -> None:
    other = doors.mcp.ok("add_memory", text="Hal has a cat.", user_id="hal")["id"]
    sentence = "belongs to another scope and cannot be superseded from this one"
    assert sentence in doors.mcp.refused("add_memory", text="Ida has a cat.", user_id="ida", supersedes=[other])
    command = doors.command("remember", "Ida has a cat.", "--user", "ida", "--supersedes", other)
    assert (command.returncode, command.stdout) == (2, "")
    assert sentence in command.stderr


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"supersedes": "an-id"}, "supersedes must be a list, not str"),
        ({"sources": "message:1"}, "sources must be a list, not str"),
        ({"supersedes": [7]}, "supersedes must be a UUID or a string, not int"),
        ({"pinned": "yes"}, "pinned must be true or false, not 'yes'"),
        ({"session_id": 7}, "session_id must be a UUID or a string, not int"),
        ({"text": " "}, "text is empty"),
        ({"category": "opinion"}, "category must be one of"),
        ({"user_id": None}, "At least one of user_id, agent_id, or session_id"),
        ({"valid_from": "2026-01-01"}, "valid_from must be a datetime"),
    ],
    ids=str,
)
def test_the_library_refuses_what_has_another_type(doors: Doors, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        doors.run(doors.memory.add_memory(**{"text": "Jo sings.", "user_id": "jo"} | given))
    assert doors.run(doors.memory.list_memories(user_id="jo")) == []


def test_the_library_raises_what_its_contract_says(doors: Doors) -> None:
    old = doors.run(doors.memory.add_memory("Kim has a dog.", user_id="kim", key="pet"))
    doors.run(doors.memory.add_memory("Kim has a cat.", user_id="kim", key="pet"))
    with pytest.raises(DatabaseError, match="is superseded by") as caught:
        doors.run(doors.memory.update_memory(old.id, text="Kim has two dogs."))
    assert isinstance(caught.value.__cause__, Conflict)
    with pytest.raises(NotFound, match="Unknown memory"):
        doors.run(doors.memory.get_memory(uuid4()))
    with pytest.raises(NotFound, match="was known at"):
        doors.run(doors.memory.get_memory(old.id, as_of=old.since - timedelta(seconds=1)))
    with pytest.raises(Invalid, match="Nothing to change"):
        doors.run(doors.memory.update_memory(old.id))
    with pytest.raises(Invalid, match="key cannot be set and cleared at once"):
        doors.run(doors.memory.update_memory(old.id, key="x", clear=["key"]))
    with pytest.raises(Invalid, match="pinned must be true or false"):
        doors.run(doors.memory.list_memories(pinned=1))  # type: ignore[arg-type]


def test_a_text_of_nobody_has_no_options_of_memories(doors: Doors) -> None:
    command = doors.command("remember", "The ferry leaves at nine.", "--key", "ferry", "--pinned")
    assert (command.returncode, command.stdout) == (2, "")
    assert "--key, --pinned: only a memory of a user has this. Name the user with --user." in command.stderr


def test_what_is_pinned_is_the_same_at_every_door(doors: Doors) -> None:
    first = doors.mcp.ok("add_memory", text="Uma is allergic to nuts.", user_id="uma", pinned=True)
    doors.cli("remember", "Uma rows.", "--user", "uma")
    second = doors.run(doors.memory.add_memory("Uma is deaf in one ear.", user_id="uma", pinned=True))
    cases: list[tuple[dict[str, Any], list[str], int]] = [
        ({}, [str(second.id), first["id"]], 0),
        ({"token_budget": 1}, [], 2),
        ({"as_of": first["since"]}, [first["id"]], 0),
    ]
    for options, ids, omitted in cases:
        answer = doors.http.get("/ltm/memories/pinned", params={"user_id": "uma"} | options).raise_for_status().json()
        assert ([each["id"] for each in answer["results"]], answer["omitted"]) == (ids, omitted)
        for mcp in doors.mcps:
            shown = mcp.ok("pinned_memories", user_id="uma", **options)
            assert ([each["id"] for each in shown["memories"]], shown["omitted"]) == (ids, omitted)
        then = {"as_of": datetime.fromisoformat(options["as_of"])} if "as_of" in options else options
        found = doors.run(doors.memory.pinned_memories(user_id="uma", **then))
        assert ([str(each.id) for each in found.memories], found.omitted) == (ids, omitted)
    refused = doors.http.get("/ltm/memories/pinned")
    assert refused.status_code == 422
    assert "At least one of user_id, agent_id, or session_id" in refused.text
    assert "At least one of user_id" in doors.mcp.refused("pinned_memories")
