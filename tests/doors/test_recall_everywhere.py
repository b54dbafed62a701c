"""One recall at every door: the same question with the same filters has the same answer, and the same refusals."""

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

from recollect import MemoryManager
from recollect.errors import Invalid
from recollect.flows.search import ranking
from recollect.settings import Settings
from recollect.storage import embedded
from tests.commands import recollect
from tests.mcp_servers import McpClient, connected, environment, over_stdio, serving

QUESTION = "What did the doctor advise?"
FLAGS = {
    "user_id": "--user",
    "agent_id": "--agent",
    "session_id": "--session",
    "roles": "--role",
    "kinds": "--kind",
    "categories": "--category",
    "namespaces": "--namespace",
}

# Filters that leave out everything.
NOTHING: list[dict[str, Any]] = [
    {"until": "2000-01-01T00:00:00+00:00"},
    {"as_of": "2000-01-01T00:00:00+00:00"},
    {"kinds": ["memory"], "valid_at": "2019-12-31T00:00:00+00:00"},
    {"min_relevance": 1},
]


class Doors:
    """The doors to one namespace. Each answer as (id, relevance, explanation), and whether it counts as one."""

    def __init__(self, settings: Settings, runner: asyncio.Runner, http: httpx.Client, mcps: list[McpClient]) -> None:
        self.memory = MemoryManager(settings)
        self.run = runner.run
        self.http = http
        self.mcps = mcps
        self.namespace = settings.namespace

    def library(self, **filters: Any) -> Any:
        given = dict(filters)
        if "metadata" in given:
            given["metadata_filters"] = given.pop("metadata")
        for name in {"since", "until", "as_of", "valid_at"} & given.keys():
            given[name] = datetime.fromisoformat(given[name])
        found = self.run(self.memory.recall(QUESTION, **given))
        shown = [
            (f"{each.kind}:{each.id}", each.relevance, each.explanation and each.explanation.parts._asdict())
            for each in found.memories
        ]
        return shown, found.answered

    def rest(self, **filters: Any) -> Any:
        answer = self.http.post("/recall", json={"query": QUESTION} | filters)
        assert answer.status_code == 200, answer.text
        return _shown(answer.json())

    def mcp(self, number: int, **filters: Any) -> Any:
        found = self.mcps[number].ok("recall", query=QUESTION, **filters)
        shown = [
            (each["id"], each["relevance"], each["explanation"] and each["explanation"]["parts"])
            for each in found["memories"]
        ]
        return shown, found["answered"]

    def cli(self, **filters: Any) -> Any:
        result = self.command(**filters)
        assert result.returncode == 0, result.stderr
        return _shown(json.loads(result.stdout))

    def command(self, **filters: Any) -> Any:
        arguments: list[str] = []
        for name, value in filters.items():
            flag = FLAGS.get(name, "--" + name.replace("_", "-"))
            if value is True:
                arguments.append(flag)
            else:
                values = value if isinstance(value, list) else [json.dumps(value) if name == "metadata" else str(value)]
                arguments += [part for each in values for part in (flag, each)]
        env = os.environ | environment(self.namespace)
        return recollect("recall", QUESTION, "--json", *arguments, env=env)


def _shown(found: dict[str, Any]) -> Any:
    shown = [
        (f"{each['kind']}:{each['id']}", each["relevance"], (each.get("explanation") or {}).get("parts"))
        for each in found["memories"]
    ]
    return shown, found["answered"]


@pytest.fixture(scope="module")
def doors(server: embedded.Lease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    namespace = f"test-{uuid4()}"
    settings = Settings(namespace=namespace, data_dir=Path(os.environ["RECOLLECT_TEST_HOME"]))
    with ExitStack() as stack:
        log = stack.enter_context((tmp_path_factory.mktemp("doors") / "log").open("w"))
        url = stack.enter_context(serving(namespace, log))
        http = stack.enter_context(httpx.Client(base_url=url.removesuffix("/mcp"), timeout=60))
        mcps = [
            stack.enter_context(over_stdio(namespace, log)),
            stack.enter_context(connected(url, namespace)),
        ]
        opened = Doors(settings, stack.enter_context(asyncio.Runner()), http, mcps)
        stack.callback(lambda: opened.run(opened.memory.close()))
        _fill(opened)
        yield opened


def _fill(doors: Doors) -> None:
    for session, role, text in (
        ("monday", "user", "My physician told me to sleep more."),
        ("monday", "assistant", "The doctor is right, sleep helps."),
        ("tuesday", "user", "The doctor advised me to swim twice a week."),
    ):
        said = {"messages": [{"role": role, "content": text}]}
        doors.http.post(f"/stm/{session}/messages", json=said).raise_for_status()
    memory = {"messages": "Her doctor advised less coffee.", "category": "fact", "user_id": "ann"}
    more = {"metadata": {"source": "visit"}, "valid_from": "2020-01-01T00:00:00Z"}
    doors.http.post("/ltm/memories", json=memory | more).raise_for_status()
    doors.mcps[0].ok("remember", text="The doctor's number is 555.", metadata={"source": "card", "page": 3})
    doors.run(doors.memory.flush())


@pytest.mark.parametrize(
    "filters",
    [
        {"explain": True},
        {"user_id": "ann"},
        {"session_id": "monday", "explain": True},
        {"exclude_session": "monday"},
        {"roles": ["assistant"]},
        {"kinds": ["memory", "document"]},
        {"categories": ["fact"]},
        {"metadata": {"source": "card"}},
        {"since": "2000-01-01T00:00:00+00:00", "until": "2099-01-01T00:00:00+00:00", "top_k": 2},
        {"min_relevance": 0},
        {"valid_at": "2020-01-01T00:00:00+00:00"},
        {"min_trust": "user"},
        *NOTHING,
    ],
    ids=str,
)
def test_the_same_question_has_the_same_answer_at_every_door(doors: Doors, filters: dict[str, Any]) -> None:
    expected, answered = doors.library(**filters)
    assert bool(expected) == (filters not in NOTHING)
    asked: list[Callable[..., Any]] = [
        doors.rest,
        doors.cli,
        lambda **given: doors.mcp(0, **given),
        lambda **given: doors.mcp(1, **given),
    ]
    for door in asked:
        found, counts = door(**filters)
        assert [each[0] for each in found] == [each[0] for each in expected]
        assert [each[1] for each in found] == pytest.approx([each[1] for each in expected], abs=1e-3)
        for (_, _, parts), (_, _, wanted) in zip(found, expected, strict=True):
            assert (parts is None) == (wanted is None) == ("explain" not in filters)
            assert parts is None or parts == pytest.approx(wanted, abs=1e-3)
        assert counts == answered


def test_who_names_namespaces_is_told_the_one_of_each_result(doors: Doors) -> None:
    named: dict[str, Any] = {"namespaces": [doors.namespace]}
    expected = doors.library(**named)
    assert expected == doors.library()
    assert {each.namespace for each in doors.run(doors.memory.recall(QUESTION, **named)).memories} == {doors.namespace}
    for found in (
        doors.http.post("/recall", json={"query": QUESTION} | named).json(),
        json.loads(doors.command(**named).stdout),
        *(mcp.ok("recall", query=QUESTION, **named) for mcp in doors.mcps),
    ):
        assert [each["namespace"] for each in found["memories"]] == [doors.namespace] * len(expected[0])
    elsewhere = doors.command(namespaces=[doors.namespace, "nothing-here"])
    assert elsewhere.returncode == 1
    assert "Namespace nothing-here has nothing stored: check its name" in elsewhere.stderr
    assert "Namespace nothing-here has nothing stored" in doors.mcps[0].refused(
        "recall", query=QUESTION, namespaces=["nothing-here"]
    )


def test_each_filter_leaves_out_what_it_says(doors: Doors) -> None:
    def texts(**filters: Any) -> set[str]:
        body = {"query": QUESTION} | filters
        return {memory["text"] for memory in doors.http.post("/recall", json=body).json()["memories"]}

    assert texts(session_id="tuesday") == {"The doctor advised me to swim twice a week."}
    assert not any("sleep" in text for text in texts(exclude_session="monday"))
    assert texts(roles=["assistant"]) == {"The doctor is right, sleep helps."}
    assert texts(user_id="ann", categories=["fact"]) == {"Her doctor advised less coffee."}
    assert texts(metadata={"source": "card"}) == {"The doctor's number is 555."}


def test_nothing_reaches_a_relevance_of_one_and_the_answer_says_so(doors: Doors) -> None:
    assert doors.library(min_relevance=1) == ([], False)
    answer = doors.http.post("/recall", json={"query": QUESTION, "min_relevance": 1}).json()
    assert (answer["memories"], answer["answered"], answer["degraded"]) == ([], False, None)
    found, answered = doors.library(min_relevance=0)
    assert found
    assert answered


@pytest.mark.parametrize(
    ("filters", "sentence"),
    [
        ({"min_relevance": 1.5}, 'min_relevance must be a number between 0 and 1, or "default", not 1.5'),
        ({"kinds": ["dream"]}, "kind must be one of"),
        ({"categories": ["opinion"]}, "category must be one of"),
        ({"roles": [" "]}, "roles is empty: it needs at least one"),
        ({"exclude_session": ""}, "exclude_session is empty: pass the id of the session"),
        ({"since": "2024-02-01T00:00:00+00:00", "until": "2024-01-01T00:00:00+00:00"}, "is before since"),
        ({"as_of": "2999-01-01T00:00:00+00:00"}, "is in the future: pass a time in the past, or omit it for now"),
        ({"top_k": 0}, "top_k"),
    ],
    ids=str,
)
def test_bad_values_are_refused_in_the_same_words(doors: Doors, filters: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence.replace("(", r"\(")):
        doors.library(**filters)
    refused = doors.http.post("/recall", json={"query": QUESTION} | filters)
    assert refused.status_code == 422
    assert sentence in refused.json()["detail"]
    assert sentence in doors.mcps[0].refused("recall", query=QUESTION, **filters)
    command = doors.command(**filters)
    assert command.returncode != 0
    assert sentence in command.stderr


@pytest.mark.parametrize("name", ["roles", "kinds", "categories"])
def test_an_empty_list_is_refused_in_the_same_words(doors: Doors, name: str) -> None:
    sentence = f"{name} is empty and would match nothing: omit it to match all"
    with pytest.raises(Invalid, match=sentence):
        doors.library(**{name: []})
    assert sentence in doors.http.post("/recall", json={"query": QUESTION, name: []}).json()["detail"]
    assert sentence in doors.mcps[0].refused("recall", query=QUESTION, **{name: []})


def test_a_budget_of_nothing_is_refused_in_the_same_words(doors: Doors) -> None:
    sentence = "token_budget must be a whole number greater than 0"
    with pytest.raises(Invalid, match=sentence):
        doors.library(token_budget=0)
    assert sentence in doors.http.post("/recall", json={"query": QUESTION, "token_budget": 0}).json()["detail"]
    assert sentence in doors.command(token_budget=0).stderr


@pytest.mark.parametrize("name", ["since", "until", "as_of", "valid_at", "now"])
def test_a_time_that_is_none_is_refused(doors: Doors, name: str) -> None:
    sentence = f"{name} must be a date and time such as 2026-02-14T12:00:00Z, not 'soon'"
    assert sentence in doors.http.post("/recall", json={"query": QUESTION, name: "soon"}).json()["detail"]
    assert sentence in doors.command(**{name: "soon"}).stderr


def test_an_unknown_field_is_refused(doors: Doors) -> None:
    refused = doors.http.post("/recall", json={"query": QUESTION, "user": "ann"})
    assert refused.status_code == 422
    assert "Unknown field 'user'" in refused.text


def test_mcp_recalls_the_metadata_that_remember_took(doors: Doors) -> None:
    (found,) = doors.mcps[0].ok("recall", query=QUESTION, kinds=["document"])["memories"]
    assert found["metadata"] == {"source": "card", "page": 3}


def test_a_contract_door_says_in_a_header_whether_it_answered_only_if_asked_for_a_floor(doors: Doors) -> None:
    body = {"query": QUESTION, "user_id": "ann"}
    plain = doors.http.post("/ltm/memories/search", json=body)
    kept = doors.http.post("/ltm/memories/search", json=body | {"min_relevance": 0})
    cut = doors.http.post("/ltm/memories/search", json=body | {"min_relevance": 1})
    assert "X-Recollect-Answered" not in plain.headers
    assert plain.json() == kept.json()
    assert kept.headers["X-Recollect-Answered"] == "true"
    assert (cut.json(), cut.headers["X-Recollect-Answered"]) == ({"results": []}, "false")


def test_the_gateway_takes_the_floor_from_its_body_or_from_a_header(doors: Doors) -> None:
    key = doors.http.post("/users", json={"user_id": "ann"}).json()["user_key"]
    body = {"query": QUESTION, "scope": ["all_user_memory"], "user_id": "ann", "user_key": key}

    def searched(more: dict[str, Any], headers: dict[str, str]) -> tuple[int, str | None]:
        answer = doors.http.post("/memories/search", json=body | more, headers=headers).raise_for_status()
        return len(answer.json()["results"]), answer.headers.get("X-Recollect-Answered")

    header = "X-Recollect-Min-Relevance"
    assert searched({}, {}) == (1, None)
    assert searched({"min_relevance": 1}, {}) == (0, "false")
    assert searched({}, {header: "1"}) == (0, "false")
    assert searched({"min_relevance": 0}, {header: "1"}) == (1, "true")
    assert searched({}, {header: "default"})[1] is not None
    wrong = doors.http.post("/memories/search", json=body, headers={header: "much"})
    assert wrong.status_code == 422
    assert "min_relevance must be a number between 0 and 1" in wrong.text


HALF_LIFE = "half_life_days must be a number greater than 0 and at most 36,500, not "


def test_a_half_life_has_the_same_answer_at_every_door_that_takes_it(doors: Doors) -> None:
    asked: dict[str, Any] = {"half_life_days": 0.5, "explain": True}
    later = datetime.now(UTC) + timedelta(days=1)
    expected, answered = doors.library(**asked, now=later)
    plain, _ = doors.library(explain=True, now=later)
    assert all(parts["decay"] < 0 for _, _, parts in expected)
    assert all(parts["decay"] == 0 for _, _, parts in plain)
    assert {each[0]: each[1] for each in expected} == {each[0]: each[1] for each in plain}
    for door in (doors.rest, doors.cli):
        found, counts = door(**asked, now=later.isoformat())
        assert [each[0] for each in found] == [each[0] for each in expected]
        for (_, _, parts), (_, _, wanted) in zip(found, expected, strict=True):
            assert parts == pytest.approx(wanted, abs=1e-3)
        assert counts == answered


def test_long_term_search_ranks_by_age_and_keeps_what_is_pinned(doors: Doors) -> None:
    def add(text: str, at: str, **more: Any) -> None:
        body = {"messages": text, "category": "fact", "user_id": "ben", "at": at}
        doors.http.post("/ltm/memories", json=body | more).raise_for_status()

    add("Ben's doctor advised walks.", "2020-01-01T00:00:00Z")
    add("Ben's doctor advised swims.", "2026-01-01T00:00:00Z")
    add("Ben's doctor advised rest.", "2019-01-01T00:00:00Z", pinned=True)
    doors.run(doors.memory.flush())
    body = {"query": QUESTION, "user_id": "ben", "until": "2026-01-02T00:00:00Z", "half_life_days": 1}
    found = doors.http.post("/ltm/memories/search", json=body).raise_for_status().json()["results"]
    doors.run(doors.memory.forget(user_id="ben"))
    assert [each["memory"].split()[-1] for each in found] == ["rest.", "swims.", "walks."]


@pytest.mark.parametrize("days", [0, -1.5, 36501])
def test_a_half_life_that_is_none_is_refused_in_the_same_words(doors: Doors, days: float) -> None:
    sentence = HALF_LIFE + str(float(days))
    with pytest.raises(Invalid, match=HALF_LIFE + str(days)):
        doors.library(half_life_days=days)
    for path in ("/recall", "/ltm/memories/search"):
        refused = doors.http.post(path, json={"query": QUESTION, "user_id": "ann", "half_life_days": days})
        assert refused.status_code == 422
        assert sentence in refused.json()["detail"]
    assert sentence in doors.command(half_life_days=days).stderr


@pytest.mark.parametrize("days", ["nan", "inf"])
def test_a_half_life_without_a_number_is_refused_on_the_command_line(doors: Doors, days: str) -> None:
    assert HALF_LIFE + days in doors.command(half_life_days=days).stderr
    assert "is not a valid float" in doors.command(half_life_days="soon").stderr


@pytest.mark.parametrize("days", ["30", True, []])
@pytest.mark.parametrize("path", ["/recall", "/ltm/memories/search"])
def test_a_half_life_of_another_type_is_refused_over_rest(doors: Doors, path: str, days: Any) -> None:
    refused = doors.http.post(path, json={"query": QUESTION, "user_id": "ann", "half_life_days": days})
    assert refused.status_code == 422
    assert "half_life_days" in refused.text


def test_the_small_tools_of_mcp_take_no_half_life(doors: Doors) -> None:
    assert "half_life_days" in doors.mcps[0].refused("recall", query=QUESTION, half_life_days=30)


def test_yesterday_counts_from_the_given_now(doors: Doors) -> None:
    today = datetime.now(UTC)
    body = {"query": "What did the doctor advise yesterday?", "explain": True, "kinds": ["message"]}
    later = doors.http.post("/recall", json=body | {"now": today.replace(year=today.year + 1, day=1).isoformat()})
    same = doors.http.post("/recall", json=body | {"query": "What did the doctor advise today?"})

    def dates(answer: httpx.Response) -> list[float]:
        return [memory["explanation"]["parts"]["date"] for memory in answer.json()["memories"]]

    assert dates(later) == [0, 0, 0]
    assert dates(same) == [ranking.QUESTION.date] * 3
