"""Sessions: what is acknowledged stays, what is torn is mended, and past turns are found by their words."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from recollect.agent.faults import FileFault, Refused
from recollect.agent.tools import Run
from recollect.agent.workspace.session_search import SessionSearch, SessionSearchTool
from recollect.agent.workspace.sessions import SessionEvent, SessionStore


@pytest.fixture
def sessions(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions")


def said(text: str, run: str = "r", at: int = 1) -> SessionEvent:
    return SessionEvent.message(run, "user", text, at)


def talk(sessions: SessionStore, session_id: str, *turns: tuple[str, str], run: str = "r", at: int = 1) -> None:
    for asked, answered in turns:
        answer = SessionEvent.message(run, "assistant", answered, at)
        sessions.append(session_id, [said(asked, run, at), answer])


def test_events_come_back_in_order_and_hidden_ones_stay_out_of_the_history(sessions: SessionStore) -> None:
    hidden = SessionEvent.hidden("r", "tool_called", {"name": "memory"})
    sessions.append("s", [said("Grüße\n\u2028 \ud83d 😀"), hidden])
    sessions.append("s", [said("two")])
    assert list(sessions.events("s")) == [said("Grüße\n\u2028 \ud83d 😀"), hidden, said("two")]
    assert sessions.recent("s", 10) == [said("Grüße\n\u2028 \ud83d 😀"), said("two")]
    assert sessions.recent("s", 1) == [said("two")]
    assert sessions.recent("nobody", 5) == list(sessions.events("nobody")) == []


def test_the_file_is_json_lines_for_its_owner_alone(sessions: SessionStore, tmp_path: Path) -> None:
    sessions.append("s", [said("one"), said("two")])
    path = tmp_path / "sessions" / "s.jsonl"
    assert [json.loads(line)["content"] for line in path.read_text().splitlines()] == ["one", "two"]
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("torn", [b'{"type": "mess', b"\x00\x00\xff", b'{"a": 1}', b"x" * 200_000])
@pytest.mark.parametrize("whole", [0, 1, 3])
def test_a_torn_last_line_is_ignored_and_then_mended(
    sessions: SessionStore, tmp_path: Path, torn: bytes, whole: int
) -> None:
    path = tmp_path / "sessions" / "s.jsonl"
    path.parent.mkdir()
    sessions.append("s", [said(str(number)) for number in range(whole)])
    with path.open("ab") as file:
        file.write(torn)
    assert [event.content for event in sessions.events("s")] == [str(number) for number in range(whole)]
    assert [event.content for event in sessions.recent("s", 9)] == [str(number) for number in range(whole)]
    sessions.append("s", [said("after")])
    assert [event.content for event in sessions.events("s")] == [*(str(number) for number in range(whole)), "after"]
    assert path.read_bytes().count(b"\n") == whole + 1


def test_a_last_line_that_lost_its_line_end_is_kept(sessions: SessionStore, tmp_path: Path) -> None:
    path = tmp_path / "sessions" / "s.jsonl"
    sessions.append("s", [said("one"), said("two")])
    path.write_bytes(path.read_bytes().rstrip())
    assert [event.content for event in sessions.recent("s", 9)] == ["one", "two"]
    sessions.append("s", [said("three")])
    assert [event.content for event in sessions.events("s")] == ["one", "two", "three"]


def test_answers_of_runs_that_overlap_belong_to_their_own_questions(sessions: SessionStore) -> None:
    for run, text in (("r1", "Where is the walrus?"), ("r2", "Where is the whale?")):
        sessions.append("s", [said(text, run)])
    for run, text in (("r1", "In the north."), ("r2", "In the south.")):
        sessions.append("s", [SessionEvent.message(run, "assistant", text, 2)])
    (walrus,) = SessionSearch(sessions).find("walrus")
    (whale,) = SessionSearch(sessions).find("whale")
    assert (walrus.turn.answered, whale.turn.answered) == ("In the north.", "In the south.")


def test_a_line_that_somebody_broke_is_left_out_and_logged(
    sessions: SessionStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sessions.append("s", [said("one")])
    with (tmp_path / "sessions" / "s.jsonl").open("a") as file:
        file.write("oops\n[]\n{}\n" + json.dumps({"type": "x", "run_id": "r", "at_ms": float("inf")}) + "\n\n")
    sessions.append("s", [said("two")])
    assert [event.content for event in sessions.events("s")] == ["one", "two"]
    assert "s.jsonl:2" in caplog.text


@hypothesis(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 70_000), min_size=1, max_size=6), st.integers(1, 7))
def test_the_end_of_a_file_is_read_right_whatever_the_length_of_its_lines(
    sessions: SessionStore, lengths: list[int], count: int
) -> None:
    name = sessions.new_id()
    sessions.append(name, [said(f"{place}" + "x" * length) for place, length in enumerate(lengths)])
    everything = [event.content for event in sessions.events(name)]
    assert [event.content for event in sessions.recent(name, count)] == everything[-count:]
    assert len(everything) == len(lengths)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "a\x00", "a\n", "ü", "x" * 129, "-x"]
)
def test_an_id_that_could_leave_the_folder_is_refused(sessions: SessionStore, tmp_path: Path, name: str) -> None:
    for use in (
        sessions.exists,
        lambda name: sessions.append(name, [said("x")]),
        lambda name: sessions.recent(name, 1),
    ):
        with pytest.raises(Refused, match="A session id must be"):
            use(name)
    assert list(tmp_path.rglob("*.jsonl")) == []


def test_a_new_id_is_one_that_can_be_used(sessions: SessionStore) -> None:
    name = sessions.new_id()
    assert not sessions.exists(name)
    sessions.append(name, [said("x")])
    assert sessions.exists(name)
    assert sessions.ids() == [name]
    assert sessions.new_id() != name


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file")
    with pytest.raises(FileFault, match="sessions"):
        SessionStore(tmp_path / "sessions").append("s", [said("x")])


WRITER = """
import sys
from pathlib import Path
from recollect.agent.workspace.sessions import SessionEvent, SessionStore
sessions = SessionStore(Path(sys.argv[1]))
sys.stdin.readline()
for number in range(30):
    sessions.append("s", [SessionEvent.message(sys.argv[2], "user", f"{number}" + "x" * 5000, number + 1)])
"""


def test_several_processes_append_to_one_session_without_loss(sessions: SessionStore, tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, tmp_path / "sessions", name], stdin=subprocess.PIPE)
        for name in "abc"
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    assert [writer.communicate(timeout=60) and writer.returncode for writer in writers] == [0, 0, 0]
    events = list(sessions.events("s"))
    for name in "abc":
        assert [event.at_ms for event in events if event.run_id == name] == list(range(1, 31))


KILLED = """
import os, sys
from pathlib import Path
from recollect.agent.workspace.sessions import SessionEvent, SessionStore
sessions = SessionStore(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    sessions.append("s", [SessionEvent.message("r", "user", "x" * 3000, number)])
    print(number, flush=True)
"""


def test_what_was_acknowledged_before_a_kill_is_there(sessions: SessionStore, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, tmp_path / "sessions"], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        for _ in range(20):
            writer.stdout.readline()
        writer.kill()
        acknowledged = 20 + len(writer.stdout.read().splitlines())
    numbers = [event.at_ms for event in sessions.events("s")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= acknowledged
    sessions.append("s", [said("after")])
    assert [event.content for event in sessions.events("s")][-1] == "after"


def test_turns_are_found_over_all_sessions_the_best_first(sessions: SessionStore) -> None:
    talk(sessions, "garden", ("How do I prune roses?", "In March, above a bud."), ("And tulips?", "You do not."))
    talk(sessions, "travel", ("When is the train?", "At nine."), ("Do roses travel well?", "Hardly."))
    found = SessionSearch(sessions).find("pruning the rose")
    assert [(match.turn.session_id, match.turn.asked) for match in found] == [
        ("garden", "How do I prune roses?"),
        ("travel", "Do roses travel well?"),
    ]
    assert found[0].turn.answered == "In March, above a bud."
    assert SessionSearch(sessions).find("submarine") == []
    assert SessionSearch(sessions).find("...") == []


def test_hidden_events_and_the_run_that_asks_are_not_found(sessions: SessionStore) -> None:
    talk(sessions, "s", ("about whales", "yes"))
    sessions.append("s", [SessionEvent.hidden("r", "tool_called", {"result": "whales"}), said("find whales", "now")])
    found = SessionSearch(sessions).find("whales", without_run="now")
    assert [match.turn.asked for match in found] == ["about whales"]


def test_a_turn_without_an_answer_is_found(sessions: SessionStore) -> None:
    sessions.append("s", [said("the first walrus")])
    sessions.append("s", [said("another walrus, at length, with many more words")])
    assert [match.turn.asked[:9] for match in SessionSearch(sessions).find("walrus")] == ["the first", "another w"]


def test_words_without_spaces_are_found(sessions: SessionStore) -> None:
    talk(sessions, "s", ("東京の天気はどうですか", "晴れです"), ("大阪は", "雨です"))
    assert [match.turn.asked for match in SessionSearch(sessions).find("天気")] == ["東京の天気はどうですか"]


async def test_the_tool_shows_day_session_and_both_sides(sessions: SessionStore) -> None:
    tool = SessionSearchTool(SessionSearch(sessions))
    talk(sessions, "s1", ("Where is the  key?", "Under the mat. " + "x" * 500), at=1_780_000_000_000)
    told = await tool.call({"query": "key", "limit": 99}, Run("s2", "now"))
    assert told.startswith("2026-05-28 session s1\n  user: Where is the key?\n  assistant: Under the mat. xxx")
    assert told.endswith("…")
    assert "No earlier conversation" in await tool.call({"query": "lock"}, Run("s2", "now"))
