"""The agent and a real `recollect serve`, each in a process of its own: what one chat said, the next one knows."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from recollect.storage import embedded
from tests.agent.configs import hybrid, written
from tests.agent.servers import serving
from tests.commands import RECOLLECT
from tests.mcp_servers import SECONDS

FACT = "Her sister Marta keeps bees in Coimbra."


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running server and its log."""

    url: str
    log: Path

    def new_user(self) -> dict[str, Any]:
        """The fields of a configuration with which a user of its own reaches this server."""
        answer = httpx.post(f"{self.url}/users", json={"user_id": f"anna-{uuid4()}"}, timeout=60)
        assert answer.status_code == 201, answer.text
        user = answer.json()
        return {"baseUrl": self.url, "userId": user["user_id"], "userKey": user["user_key"], "timeoutSeconds": 60}


@pytest.fixture(scope="module")
def gateway(server: embedded.Lease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    path = tmp_path_factory.mktemp("server") / "server.log"
    with path.open("w") as log, serving(f"test-{uuid4()}", log) as served:
        yield Gateway(served.url, path)


def chat(config: Path, *lines: str) -> str:
    """One `recollect chat` from start to end of its input, with what it printed."""
    result = subprocess.run(
        [RECOLLECT, "chat", "--config", config],
        input="\n".join([*lines, "/quit"]),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def events(folder: Path) -> list[dict[str, Any]]:
    """The hidden and the visible events of all sessions, in the order of the sessions' ids."""
    files = sorted((folder / "sessions").glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def test_a_fact_of_the_first_chat_is_recalled_in_the_next(gateway: Gateway, tmp_path: Path) -> None:
    user = gateway.new_user()
    config = written(tmp_path, hybrid(**user, scope=["all_user_memory"]))
    first = chat(config, FACT)
    second = chat(config, "Who keeps bees?")
    assert "Recalled from the memory gateway" not in first
    assert f"Recalled from the memory gateway:\n- {FACT}" in second
    recorded = events(tmp_path)
    assert [event["type"] for event in recorded if event["type"].startswith("memory_gateway")] == [
        "memory_gateway_recall_succeeded",
        "memory_gateway_add_succeeded",
        "memory_gateway_flush_succeeded",
    ] * 2
    assert len({event["payload"]["session_id"] for event in recorded if event["type"].endswith("add_succeeded")}) == 2
    for shown in (first, second, json.dumps(recorded), gateway.log.read_text()):
        assert user["userKey"] not in shown


def test_what_its_user_has_pinned_is_before_the_agent_in_every_chat(gateway: Gateway, tmp_path: Path) -> None:
    user = gateway.new_user()
    memory = {"messages": "Anna is allergic to nuts.", "category": "fact", "user_id": user["userId"], "pinned": True}
    assert httpx.post(f"{gateway.url}/ltm/memories", json=memory, timeout=60).is_success
    config = written(tmp_path, hybrid(**user))
    assert "Recalled from the memory gateway:\n- Anna is allergic to nuts." in chat(config, "What shall we cook?")
    (recalled,) = (each["payload"] for each in events(tmp_path) if each["type"] == "memory_gateway_recall_succeeded")
    assert (recalled["pinned_count"], recalled["result_count"]) == (1, 0)


def test_a_question_asked_again_and_again_does_not_bury_its_answer(gateway: Gateway, tmp_path: Path) -> None:
    config = written(tmp_path, hybrid(**gateway.new_user(), scope=["all_user_memory"]))
    chat(config, FACT)
    assert chat(config, *["Who keeps bees?"] * 7).count(f"- {FACT}") == 7


def test_the_current_chat_alone_does_not_know_the_chat_before(gateway: Gateway, tmp_path: Path) -> None:
    config = written(tmp_path, hybrid(**gateway.new_user(), scope=["current_chat"]))
    chat(config, FACT)
    answered = chat(config, "Who keeps bees?", "And what does Marta keep?")
    assert FACT not in answered
    assert "- Who keeps bees?" in answered


def test_a_user_with_a_wrong_key_chats_as_if_there_were_no_gateway(gateway: Gateway, tmp_path: Path) -> None:
    with_wrong_key = chat(
        written(tmp_path, hybrid(baseUrl=gateway.url)), "remember that the parrot is Coco", "Who is Coco?"
    )
    alone = tmp_path / "alone"
    alone.mkdir()
    curated = written(alone, {"memory": {"mode": "curated"}})
    without = chat(curated, "remember that the parrot is Coco", "Who is Coco?")
    assert without_sessions(with_wrong_key) == without_sessions(without)
    failures = [event["payload"] for event in events(tmp_path) if event["type"].endswith("_failed")]
    assert {(failure["operation"], failure["status"]) for failure in failures} == {("search", 401), ("add", 401)}


def without_sessions(printed: str) -> list[str]:
    return [line for line in printed.splitlines() if not line.startswith("Session ")]
