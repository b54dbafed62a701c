"""`recollect chat`, run as a user runs it: the real command, the offline provider, a real gateway at the other end."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.agent.configs import hybrid, written
from tests.agent.leaks import USER_KEY
from tests.agent.wire import Answer, openai_chunks, openai_delta, serving
from tests.commands import INSTALLED, RECOLLECT

GATEWAY_IS_OFF = "The memory gateway is off"


def chat(home: Path, *arguments: str, said: str | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [RECOLLECT, "chat", *arguments],
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"HOME": str(home)},
        check=False,
    )


def test_without_a_configuration_it_remembers_and_says_once_that_the_gateway_is_off(tmp_path: Path) -> None:
    first = chat(tmp_path, "--message", "remember about me that I sail")
    assert first.returncode == 0, first.stderr
    assert first.stdout == "Added to USER.md. It has 9 of 2,000 characters.\n"
    assert first.stderr.count(GATEWAY_IS_OFF) == 1
    workspace = tmp_path / ".recollect" / "agent"
    assert (workspace / "USER.md").read_text() == "- I sail\n"
    assert "Curated in USER.md:\n- I sail" in chat(tmp_path, "--message", "Who am I?").stdout
    assert len(list((workspace / "sessions").iterdir())) == 2


def test_a_conversation_at_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "tea.md").write_text("# Steep it\n\nThree minutes.\n")
    path = written(tmp_path, {"memory": {"mode": "curated"}})
    said = ["remember that tea is hot", "", "/skills", "/new", "/nonsense", "/skill coffee", "/skill tea now"]
    said += ["/help", "/status", "/quit", "lost"]
    result = chat(tmp_path, "--config", str(path), said="\n".join(said) + "\n")
    assert result.returncode == 0, result.stderr
    assert "Added to MEMORY.md" in result.stdout
    assert "tea: Steep it" in result.stdout
    assert "/quit " in result.stdout
    assert '"mode": "curated"' in result.stdout
    assert "Unknown command" in result.stderr
    assert "Unknown skill 'coffee'. Available skills: tea." in result.stderr
    sessions = [path.read_text() for path in (tmp_path / "sessions").iterdir()]
    assert len(sessions) == 2
    assert not any("lost" in text for text in sessions)


def test_a_session_goes_on_by_name(tmp_path: Path) -> None:
    for said in ("Hello", "Hello again"):
        result = chat(tmp_path, "--workspace", str(tmp_path / "w"), "--session", "work", "--message", said)
        assert result.returncode == 0, result.stderr
    text = (tmp_path / "w" / "sessions" / "work.jsonl").read_text()
    assert [json.loads(line).get("content") for line in text.splitlines()][::2] == ["Hello", "Hello again"]
    found = chat(tmp_path, "--workspace", str(tmp_path / "w"), "--message", "search hello")
    assert "session work\n  user: Hello" in found.stdout


def test_the_gateway_is_asked_and_told_and_what_it_recalls_is_shown_without_its_tricks(tmp_path: Path) -> None:
    recalled = {"results": [{"id": "1", "text": "The parrot is \x1b[31mCoco.", "score": 1.0}]}
    answers = [Answer(json.dumps(body), kind="application/json") for body in (recalled, {}, {})]
    with serving(*answers) as wire:
        path = written(tmp_path, hybrid(baseUrl=wire.address))
        result = chat(tmp_path, "--config", str(path), "--session", "s1", "--message", "Who is Coco?")
    assert result.returncode == 0, result.stderr
    assert "Recalled from the memory gateway:\n- The parrot is [31mCoco." in result.stdout
    assert [request["path"] for request in wire.requests] == ["/memories/search", "/memories/add", "/memories/flush"]
    assert wire.requests[0]["body"]["user_key"] == USER_KEY
    assert wire.requests[1]["body"]["messages"][0]["content"] == "Who is Coco?"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--session", "../x", "--message", "hi"], 2, "A session id must be"),
        (["--message", " "], 2, "The prompt is empty"),
        (["--message", "/skill x"], 2, "Unknown skill 'x'"),
        (["--config", "nowhere.json", "--message", "hi"], 1, "nowhere.json cannot be read"),
        (["--workspace", "/dev/null/x", "--message", "hi"], 1, "Cannot create the folder /dev/null/x"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(tmp_path: Path, arguments: list[str], code: int, sentence: str) -> None:
    result = chat(tmp_path, *arguments)
    assert result.returncode == code
    assert result.stdout == ""
    assert f"recollect: {sentence}" in re.sub(r"The configuration .*nowhere", "nowhere", result.stderr)
    assert "Traceback" not in result.stderr


def test_a_session_goes_on_after_its_first_prompt_failed(tmp_path: Path) -> None:
    answers = [
        Answer('{"error": {"message": "no"}}', 400, "application/json"),
        Answer(openai_chunks(openai_delta(content="Back."), openai_delta("length"))),
    ]
    with serving(*answers) as wire:
        provider = {"name": "openai", "model": "m", "baseUrl": wire.address}
        path = written(tmp_path, {"memory": {"mode": "curated"}, "provider": provider})
        result = chat(tmp_path, "--config", str(path), said="Hello\nAgain\n")
    assert result.returncode == 0, result.stderr
    (session,) = (tmp_path / "sessions").iterdir()
    visible = [json.loads(line).get("content") for line in session.read_text().splitlines()]
    assert [text for text in visible if text] == ["Hello", "Again", "Back."]
    assert result.stderr.count(f"Session {session.stem}") == 1
    assert [message["content"] for message in wire.requests[1]["body"]["messages"][1:]] == ["Hello", "Again"]
    assert "The answer was cut off at its length limit" in result.stderr


def test_commands_that_fail_and_prompts_with_a_slash_do_not_end_the_chat(tmp_path: Path) -> None:
    path = written(tmp_path, {"memory": {"mode": "curated"}})
    (tmp_path / "MEMORY.md").write_text("- tea\n")
    process = subprocess.Popen(
        [RECOLLECT, "chat", "--config", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("/etc/hosts, what is it?\n//help\n/nonsense\n")
        process.stdin.flush()
        for _ in range(2):
            assert next(line for line in process.stdout if line.startswith("No model is configured"))
        (tmp_path / "MEMORY.md").write_bytes(b"\xff")
        output, errors = process.communicate("/status\nHello\n/quit\n", timeout=60)
    assert process.returncode == 0
    assert '"fault": ' in output
    assert "is not UTF-8 text: save it as UTF-8" in errors
    assert "To send this as a prompt, start it with two slashes." in errors
    (session,) = (tmp_path / "sessions").iterdir()
    asked = [json.loads(line) for line in session.read_text().splitlines()]
    assert [event["content"] for event in asked if event.get("role") == "user"] == ["/etc/hosts, what is it?", "/help"]


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_message_with_nobody_to_read_the_answer_is_no_traceback(tmp_path: Path, closed: str) -> None:
    command = f"{INSTALLED} chat --workspace {tmp_path / 'w'} --message hi {closed}"
    result = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, "Traceback" in result.stderr) == (0, False)
    assert len(list((tmp_path / "w" / "sessions").iterdir())) == 1


def test_at_a_terminal_the_user_sees_what_is_waited_for_and_may_stop_it(tmp_path: Path) -> None:
    hold = threading.Event()
    answers = [Answer('{"results": []}', kind="application/json"), Answer("{}", kind="application/json", hold=hold)]
    with serving(*answers) as wire:
        path = written(tmp_path, hybrid(baseUrl=wire.address))
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [RECOLLECT, "chat", "--config", path, "--session", "s1"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=os.environ | {"HOME": str(tmp_path), "TERM": "dumb"},
            start_new_session=True,
        ) as process:
            os.close(theirs)
            read_until(ours, "> ")
            os.write(ours, b"Who is Coco?\n")
            seen = read_until(ours, "Storing this turn in the memory gateway ...")
            assert "Searching the memory gateway ..." in seen
            assert "Nothing found in memory." in seen
            process.send_signal(signal.SIGINT)
            assert "The answer is saved, but may not have reached the memory gateway." in read_until(ours, "\n> ")
            os.write(ours, b"/quit\n")
            assert process.wait(timeout=30) == 0
        hold.set()
        os.close(ours)
    last = json.loads((tmp_path / "sessions" / "s1.jsonl").read_text().splitlines()[-1])
    assert (last["type"], last["payload"]["category"]) == ("memory_gateway_add_failed", "stopped")


def test_bytes_that_are_no_text_are_refused_and_the_conversation_goes_on(tmp_path: Path) -> None:
    result = subprocess.run(
        [RECOLLECT, "chat", "--workspace", tmp_path / "w"],
        input=b"h\xffi\nremember that caf\xc3\xa9\n",
        capture_output=True,
        timeout=60,
        env=os.environ | {"HOME": str(tmp_path), "LC_ALL": "C.UTF-8"},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert b"The prompt is not valid UTF-8" in result.stderr
    assert (tmp_path / "w" / "MEMORY.md").read_bytes() == b"- caf\xc3\xa9\n"


@pytest.mark.parametrize("leave", ["Ctrl-C", "Ctrl-D", "/quit"])
def test_at_a_terminal_every_way_out_is_clean(tmp_path: Path, leave: str) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [RECOLLECT, "chat", "--workspace", tmp_path / "w"],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=os.environ | {"HOME": str(tmp_path), "TERM": "dumb"},
        start_new_session=True,
    ) as process:
        os.close(theirs)
        seen = read_until(ours, "> ")
        assert "New session. Model: offline." in seen
        os.write(ours, b"remember that tea is hot\n")
        assert "Added to MEMORY.md" in read_until(ours, "\n> ")
        if leave == "Ctrl-C":
            interrupt_until_it_answers(process, ours)
        else:
            os.write(ours, b"\x04" if leave == "Ctrl-D" else b"/quit\n")
        assert "Bye." in read_until(ours, "Bye.")
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    os.close(ours)


def test_ctrl_c_stops_an_answer_and_not_the_conversation(tmp_path: Path) -> None:
    hold = threading.Event()
    with serving(Answer(openai_chunks(openai_delta(content="Well"), done=False), hold=hold)) as wire:
        provider = {"name": "openai", "model": "m", "baseUrl": wire.address}
        path = written(tmp_path, {"memory": {"mode": "curated"}, "provider": provider})
        with subprocess.Popen(
            [RECOLLECT, "chat", "--config", path, "--session", "s1"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"Tell me all\n")
            process.stdin.flush()
            assert process.stdout.read(4) == b"Well"
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(b"/help\n", timeout=30)
        hold.set()
    assert (process.returncode, b"/quit " in output, errors) == (0, True, b"\nStopped.\n")
    last = json.loads((tmp_path / "sessions" / "s1.jsonl").read_text().splitlines()[-1])
    assert (last["type"], last["context_visible"]) == ("run_failed", False)


def interrupt_until_it_answers(process: "subprocess.Popen[bytes]", terminal: int) -> None:
    """A signal that comes just before Python begins to wait for a key is heard with the next one only."""
    for _ in range(60):
        process.send_signal(signal.SIGINT)
        if select.select([terminal], [], [], 0.5)[0]:
            return
    raise AssertionError("it does not hear Ctrl-C")


def read_until(terminal: int, mark: str) -> str:
    """What the terminal shows, up to a mark. A process that ends before it shows too little."""
    seen = ""
    while mark not in seen:
        assert select.select([terminal], [], [], 60)[0], f"{mark!r} is not shown, only {seen!r}"
        try:
            seen += os.read(terminal, 4096).decode(errors="replace").replace("\r\n", "\n")
        except OSError:
            break
    return seen
