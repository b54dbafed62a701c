"""The comparison with other stores, as far as it goes without them, and the costs that benchmarks count."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from benchmarks.__main__ import new_home
from benchmarks.costs import Server, cost
from benchmarks.report import Report
from benchmarks.yardsticks import comparison, conversation
from benchmarks.yardsticks.comparison import Measured

from recollect.doors.cli.operating.bench import Question
from recollect.engine import Engine

OURS = Measured((0.8, 400.0, 5.0, 60.0, 10.0, 12.0), "text")
THEIRS = Measured((0.4, 100.0, 10.0, 30.0, 20.0, 24.0), "speaker: text")


def test_a_conversation_is_read_with_those_of_its_questions_that_can_be_scored(tmp_path: Path) -> None:
    corpus, questions = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl"
    turn = {"session": "s", "speaker": "Ann", "time": "2024-05-01T10:00", "text": "I am here."}
    corpus.write_text("".join(json.dumps(turn | {"conversation": c, "turn": f"{c}-1"}) + "\n" for c in ("a", "b")))
    asked = {"conversation": "b", "id": "q", "question": "Who?"}
    scored = asked | {"gold_turns": ["b-1"], "until": "2024-05-02"}
    other = scored | {"conversation": "a"}
    questions.write_text("".join(json.dumps(row) + "\n" for row in (asked, scored, other)))
    talk = conversation.read(corpus, questions, "b")
    assert [one.id for one in talk.turns] == ["b-1"]
    assert talk.questions == (Question("b", "q", "Who?", datetime(2024, 5, 2, tzinfo=UTC), None, ("b-1",)),)
    assert conversation.read(corpus, questions, None).name == "a"


def test_the_table_divides_our_figures_by_theirs() -> None:
    lines = comparison.table({"Recollect": OURS, "Other": THEIRS}).splitlines()
    assert lines[1] == "|  | Recollect | Other (speaker: text) | Recollect / Other |"
    assert lines[3] == "| frac@10 (more is better) | 0.800 | 0.400 | 2.00 |"
    assert lines[8].endswith("(less is better) | 12.0 | 24.0 | 0.50 |")


async def test_stores_that_are_not_installed_are_left_out() -> None:
    report = Report()
    async with new_home() as home:
        await comparison.run(report, home, conversation.invented())
    assert [what for what, _, _ in report.rows] == [f"invented: {what}" for what, _, _ in comparison.ROWS]
    assert report.rows[0][1].startswith("Recollect 1.000")


@pytest.mark.unindexed("what an indexer sends meanwhile would count")
async def test_a_call_costs_what_it_sends(engine: Engine) -> None:
    async def one_statement() -> None:
        async with engine.database.alone() as connection:
            await connection.execute("select 1")

    spent = await cost(await Server.of(engine), one_statement, 20)
    assert spent.sends == 1
    assert spent.ours > 0
    assert str(spent).endswith("; 1.0 socket sends")
