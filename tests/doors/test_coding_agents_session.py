"""Sessions of coding agents with real hooks: the second knows what the first learned, and no failure stops an agent."""

import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect import tasks
from recollect.engine import Engine
from recollect.settings import Settings
from tests.coding_agent import HOOKS, FakeAgent
from tests.commands import recollect
from tests.mcp_servers import serving
from tests.rest_servers import listening
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.parametrize("pooling", ["session"], indirect=True),
    pytest.mark.embedded("hooks of a database elsewhere ask a server"),
]

FACTS = {
    "claude-code": ("We deploy the shop with make ship, never from main.", "How do we deploy the shop?", "make ship"),
    "codex": ("The staging database is called heron.", "What is the name of the staging database?", "heron"),
    "cursor": (
        "Invoices are rounded half to even, as the tax office wants.",
        "How are invoices rounded?",
        "half to even",
    ),
    "gemini-cli": (
        "The mobile app talks to the API version seven.",
        "Which API version does the mobile app use?",
        "seven",
    ),
}


@pytest.fixture
def home(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose background process ends with the test."""
    for name in ("XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    yield tmp_path / "home"
    for socket in state(tmp_path / "home").glob("*.sock"):
        os.kill(int(socket.with_suffix(".lock").read_text()), signal.SIGTERM)
    ended(tmp_path / "home")


def state(home: Path) -> Path:
    return home / ".local/state/recollect/coding-agents"


def install(home: Path, name: str, *options: str, **changed: Any) -> None:
    """Connect an agent, and change what its hooks know."""
    done = recollect("install", name, "--yes", "--user", "anna", *options, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    file = state(home) / name / "record.json"
    record = json.loads(file.read_text())
    record["hook"] |= changed
    file.write_text(json.dumps(record))


def agent(home: Path, name: str, session: str) -> FakeAgent:
    return FakeAgent(name, home, home.parent / "project", session)


def started(home: Path) -> None:
    wait_until(lambda: list(state(home).glob("*.sock")), "the background process is there")


def ended(home: Path) -> None:
    wait_until(lambda: not list(state(home).glob("*.sock")), "the background process is gone")


async def test_the_second_session_knows_what_the_first_learned(home: Path, engine: Engine, namespace: str) -> None:
    for name in HOOKS:
        install(home, name)
    first = {name: agent(home, name, f"{name}-1") for name in HOOKS}
    # Nobody waits long for the background process, which begins to start now.
    assert first["claude-code"].start() == ""
    started(home)
    for name, (fact, _, _) in FACTS.items():
        assert fact not in first[name].prompt(fact)
        first[name].answer(f"I will keep in mind: {fact}", fact)
        first[name].answer(f"I will keep in mind: {fact}", fact)
        first[name].end()
    await engine.indexer.flush(namespace)
    for name, (fact, question, word) in FACTS.items():
        second = agent(home, name, f"{name}-2")
        assert second.prompt("ok, continue") == ""
        known = second.prompt(question)
        assert word in known, second.stderr
        assert f"session {name}:{name}-1" in known
        # It has been shown: tokens are not spent on it again.
        assert fact not in second.prompt(question)
        stored = await engine.conversations.messages(namespace, f"{name}:{name}-1", 100)
        assert [(message.role, message.speaker) for message in stored] == [("user", "anna"), ("assistant", name)]
        assert stored[0].content == fact
        assert stored[0].metadata == {"agent": name, "project": str(home.parent / "project")}
        assert second.stderr == ""
    fresh = agent(home, "codex", "codex-3")
    assert all(FACTS[name][0] in known for known in [fresh.start()] for name in ("codex", "cursor", "gemini-cli"))
    assert fresh.start("resume") == ""


async def test_a_turn_waits_on_disk_until_the_memory_is_there(home: Path, engine: Engine, namespace: str) -> None:
    install(home, "claude-code")
    one = agent(home, "claude-code", "one")
    one.prompt("The build needs Python 3.14.")
    # An older version of the agent, which sends no answer with the event.
    lines: list[dict[str, Any]] = [
        {"type": "user", "message": {"role": "user", "content": "The build needs Python 3.14."}},
        {"type": "user", "isMeta": True, "message": {"content": "a reminder"}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "Noted: Python 3.14."}]}},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash"}]}},
    ]
    (one.project / "transcript.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    one.fire("Stop", {})
    # And a session of which the prompts were not seen.
    two = agent(home, "claude-code", "two")
    two.fire("Stop", {})
    lines += [{"type": "user", "message": {"content": [{"type": "text", "text": "And ruff."}]}}, {"type": "summary"}]
    (one.project / "transcript.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    two.fire("Stop", {"last_assistant_message": "Noted: ruff."})
    started(home)
    agent(home, "claude-code", "three").start()
    said = ["The build needs Python 3.14.", "Noted: Python 3.14."]
    for session, expected in (("one", said), ("two", [*said, "And ruff.", "Noted: ruff."])):
        stored = await engine.conversations.messages(namespace, f"claude-code:{session}", 100)
        assert [message.content for message in stored] == expected
    assert list((state(home) / "claude-code/turns").iterdir()) == []


async def test_a_turn_with_two_hooks_is_stored_once(
    home: Path, engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(home, "claude-code")
    one = agent(home, "claude-code", "one")
    monkeypatch.chdir(one.project)
    assert recollect("install", "claude-code", "--yes", "--project", env=dict(os.environ)).returncode == 0
    settings = json.loads((one.project / ".claude/settings.local.json").read_text())
    started_at_first = one.start()
    started(home)
    for event, fields in (
        ("UserPromptSubmit", {"prompt": "The logo is blue."}),
        ("Stop", {"last_assistant_message": "It is blue now."}),
        ("UserPromptSubmit", {"prompt": "Never mind.", "agent_id": "a subagent"}),
        ("UserPromptSubmit", {"prompt": "The logo is green."}),
        ("SessionEnd", {"reason": "exit"}),
    ):
        one.fire(event, fields)
        (of_project,) = [handler["command"] for group in settings["hooks"][event] for handler in group["hooks"]]
        one.run(
            of_project, json.dumps({"hook_event_name": event, "session_id": "one", "cwd": str(one.project)} | fields)
        )
    stored = await engine.conversations.messages(namespace, "claude-code:one", 100)
    assert [message.content for message in stored] == ["The logo is blue.", "It is blue now.", "The logo is green."]
    assert (started_at_first, list((state(home) / "sessions").iterdir())) == ("", [])


async def test_hooks_can_ask_a_server(home: Path, engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace)
    async with listening(engine) as url:
        await tasks.in_thread(install, home, "gemini-cli", "--url", url, "--key", key.secret)
        one = agent(home, "gemini-cli", "one")
        await tasks.in_thread(one.prompt, "Releases are tagged on Thursdays.")
        await tasks.in_thread(one.answer, "Noted.", "Releases are tagged on Thursdays.")
        await engine.indexer.flush(namespace)
        known = await tasks.in_thread(agent(home, "gemini-cli", "two").prompt, "When are releases tagged?")
        assert "Thursdays" in known, one.stderr
    assert not list(state(home).glob("*.sock"))


async def test_a_turn_with_what_no_database_takes_is_stored_without_that(
    home: Path, engine: Engine, namespace: str
) -> None:
    async with listening(engine) as url:
        key = await engine.access.create_key(namespace)
        await tasks.in_thread(install, home, "claude-code", "--url", url, "--key", key.secret)
        one = agent(home, "claude-code", "one")
        await tasks.in_thread(one.prompt, "The log says\x00 ready.")
        await tasks.in_thread(one.answer, "A cut emoji: \ud83d")
        stored = await engine.conversations.messages(namespace, "claude-code:one", 100)
        assert [message.content for message in stored] == ["The log says ready.", "A cut emoji: ?"], one.stderr


async def test_a_server_of_the_same_memory_answers_the_hooks(
    home: Path, engine: Engine, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So there is no second process; a key of the namespace does not matter to who can read the data anyway."""
    await engine.access.create_key(namespace)
    with tempfile.TemporaryDirectory(prefix="rc-") as short, (tmp_path / "log").open("w") as log:
        # The path of a socket may have a hundred characters.
        monkeypatch.setenv("XDG_STATE_HOME", short)
        assert recollect("install", "codex", "--yes", env=dict(os.environ)).returncode == 0
        kept = Path(short, "recollect/coding-agents")
        with serving(namespace, log):
            wait_until(lambda: list(kept.glob("*.sock")), "the server answers hooks")
            one = agent(home, "codex", "one")
            one.prompt("The router is called otter.")
            one.answer("Noted.")
        assert list(kept.glob("*.sock")) + list(kept.glob("*.started")) == []
    stored = await engine.conversations.messages(namespace, "codex:one", 100)
    assert [message.content for message in stored] == ["The router is called otter.", "Noted."]


@pytest.mark.parametrize("fault", ["a broken record", "no record", "no JSON", "no process", "another agent's event"])
def test_no_failure_stops_the_agent(home: Path, fault: str) -> None:
    install(home, "claude-code", python="/nowhere/python" if fault == "no process" else sys.executable)
    one = agent(home, "claude-code", "one")
    (command,) = one.commands("UserPromptSubmit")
    given = '{"hook_event_name": "UserPromptSubmit", "session_id": "one", "cwd": "/", "prompt": "What is new?"}'
    record = state(home) / "claude-code" / "record.json"
    if fault == "a broken record":
        record.write_text("{")
    elif fault == "no record":
        assert recollect("uninstall", "claude-code", "--yes", env=dict(os.environ)).returncode == 0
    elif fault == "no JSON":
        given = "not JSON"
    elif fault == "another agent's event":
        given = given.replace("{", '{"cursor_version": "3", ', 1)
    assert one.run(command, given) == {}
    assert one.run(command, given) == {}
    assert not (one.project / "hooks.log").exists()
    if fault == "another agent's event":
        assert one.stderr == ""
    elif fault != "no record":
        assert "claude-code prompt: " in (state(home) / "hooks.log").read_text()
    if fault in ("no JSON", "no process"):
        told = recollect("install", "claude-code", "--check", env=dict(os.environ)).stdout
        assert "Last failures" in told
        assert "claude-code prompt: " in told


def test_the_background_process_ends_when_nobody_asks_and_starts_again(home: Path) -> None:
    install(home, "claude-code", idle_seconds=1)
    one = agent(home, "claude-code", "one")
    one.start()
    started(home)
    ended(home)
    install(home, "claude-code")
    for stamp in state(home).glob("*.started"):
        stamp.unlink()
    one.start()
    started(home)
    told = recollect("install", "claude-code", "--check", env=dict(os.environ)).stdout
    assert "running, with the process id" in told


def test_what_the_hooks_keep_is_for_their_user_alone(home: Path) -> None:
    install(home, "claude-code")
    one = agent(home, "claude-code", "one")
    one.prompt("Something private.")
    started(home)
    (socket,) = state(home).glob("*.sock")
    modes = {oct(path.stat().st_mode)[-3:] for path in [socket, *state(home).rglob("*.json")]}
    assert modes == {"600"}
    assert oct(state(home).stat().st_mode)[-3:] == "700"
    one.end()
