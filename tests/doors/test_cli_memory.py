"""`recollect remember`, `recall` and `index`, run as a user runs them."""

import json
import os
import re
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from recollect.engine import Engine
from recollect.flows.kinds import registry
from recollect.flows.long_term.memory_requests import Options
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.settings import Settings
from recollect.tasks import in_thread
from tests.commands import recollect
from tests.flows.talk import say_all

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return recollect(*arguments)


def test_what_one_command_remembers_another_recalls_by_meaning_at_once(settings: Settings) -> None:
    stored = run("remember", "My physician told me to sleep more.")
    assert stored.returncode == 0, stored.stderr
    run("remember", "The fence is painted green.")
    found = json.loads(run("recall", "What did the doctor say?", "--json").stdout)
    assert found["memories"][0]["id"] == stored.stdout.strip()
    assert found["pending"] == 0
    assert "explanation" not in found["memories"][0]


def test_a_text_that_is_there_is_not_stored_again_and_recall_shows_what_says_the_same(settings: Settings) -> None:
    first = run("remember", "Owls hoot.").stdout.strip()
    again = run("remember", "Owls hoot.")
    assert (again.stdout.strip(), again.stderr.strip()) == (first, "Already stored: nothing was added.")
    twin = run("remember", "owls hoot!").stdout.strip()
    shown = run("recall", "owls").stdout
    assert any(f"Duplicates: document:{other}" in shown for other in (first, twin))


def test_what_is_remembered_for_a_user_is_that_users_and_is_there_once(settings: Settings) -> None:
    stored = run("remember", "My physician told me to sleep more.", "--user", "ann")
    assert stored.returncode == 0, stored.stderr
    again = run("remember", "My physician told me to sleep more.", "--user", "ann")
    assert again.stdout == stored.stdout
    assert "Already stored" in again.stderr
    (found,) = json.loads(run("recall", "What did the doctor say?", "--user", "ann", "--json").stdout)["memories"]
    assert found["id"] == stored.stdout.strip()
    assert run("recall", "What did the doctor say?", "--user", "bob").stdout.startswith("Nothing found.")
    assert stored.stdout.strip() in run("memories", "list", "--user", "ann").stdout


def test_a_text_may_come_from_standard_input(settings: Settings) -> None:
    piped = recollect("remember", "-", given="Piped words about otters.")
    assert piped.returncode == 0
    assert "Piped words about otters." in run("recall", "otters").stdout
    # As `echo` ends a text.
    again = recollect("remember", "-", given="Piped words about otters.\n")
    assert again.stdout == piped.stdout


@pytest.mark.unindexed("it counts what waits")
async def test_a_backlog_is_told_and_worked_off(settings: Settings, engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "Grandmother's recipe needs two eggs.", "The boat was sold in May.")
    shown = (await in_thread(run, "recall", "How many eggs?", "--explain")).stdout
    assert "Grandmother's recipe needs two eggs." in shown
    assert "keyword rank 1" in shown
    assert "2 passage(s) not embedded yet" in shown
    counted = (await in_thread(run, "index")).stdout
    assert counted == f"2 passage(s) waiting to be embedded in namespace '{namespace}'.\n"
    indexed = await in_thread(run, "index", "--wait")
    assert indexed.returncode == 0, indexed.stderr
    assert "Done. 0 passage(s) waiting to be embedded." in indexed.stdout
    found = json.loads((await in_thread(run, "recall", "Which vessel changed hands?", "--json", "--explain")).stdout)
    assert found["memories"][0]["text"] == "The boat was sold in May."
    assert found["memories"][0]["explanation"]["rank_by_meaning"] == 1


def test_a_memory_without_anything_says_so_and_where_it_is(settings: Settings, namespace: str) -> None:
    told = f"Nothing to recall is stored in namespace {namespace} of {settings.data_dir} yet.\n"
    assert run("recall", "submarine").stdout == told
    assert run("recall", "submarine", "--namespace", namespace).stdout == told
    as_json = run("recall", "submarine", "--json")
    assert (json.loads(as_json.stdout)["memories"], as_json.stderr) == ([], told)
    run("remember", "The fence is painted green.", "--user", "ann")
    assert run("recall", "submarine", "--user", "bob").stdout == "Nothing found.\n"


async def test_a_result_below_a_user_says_its_class_of_trust_and_explain_says_every_class(
    settings: Settings, engine: Engine, namespace: str
) -> None:
    lines = (NewMessage("user", "The boat is green."), NewMessage("tool", "The boat is at sea.", speaker="radar"))
    await engine.remember.turn(namespace, Turn("talk", lines, owner_if_new="ann"))
    await engine.remember.text(namespace, "The boat was sold in May.")
    leak = Options(trust="import")
    await engine.memories.add(namespace, "The boat leaks.", "fact", MemoryScope(user_id="ann"), options=leak)

    async def classes(*options: str) -> dict[str, str]:
        shown = (await in_thread(run, "recall", "boat", *options)).stdout
        heads = [line.split("  ") for line in shown.splitlines() if "%" in line]
        return {head[-2] if "trust" in head[-1] else head[-1]: head[-1] for head in heads}

    told = await classes()
    assert sorted(last.partition(":")[0] for last in told.values()) == [
        "document",
        "message",
        "trust import",
        "trust tool",
    ]
    explained = await classes("--explain")
    assert sorted(explained.values()) == ["trust document", "trust import", "trust tool", "trust user"]


def test_what_was_masked_is_said_beside_the_answer(settings: Settings, tmp_path: Path) -> None:
    masking = os.environ | {"RECOLLECT_MASKING": "true"}
    stored = recollect("remember", "My card is 4111 1111 1111 1111.", env=masking)
    assert len(stored.stdout.splitlines()) == 1
    assert stored.stderr == "Masked: card number=1\n"
    assert recollect("remember", "My boat is green.", env=masking).stderr == ""
    note = tmp_path / "note.md"
    note.write_text("Card 4111 1111 1111 1111, or 5555 5555 5555 4444.")
    imported = recollect("import", "--from", "markdown", note, env=masking)
    assert "1 imported" in imported.stdout
    assert "Masked: card number=2\n" in imported.stderr


def test_the_help_of_recall_names_every_kind(settings: Settings) -> None:
    assert set(registry.recalled()) <= set(re.findall(r"\w+", run("recall", "--help").stdout.partition("--kind")[2]))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("remember", "  "), "text is empty"),
        (("recall", ""), "query is empty"),
        (("recall", "tea", "--top-k", "1001"), "top_k must be between 1 and 1000"),
        (("recall", "tea", "--kind", "dream"), "kind must be one of"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(
    settings: Settings, arguments: tuple[str, ...], sentence: str
) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def test_a_benchmark_names_the_line_that_is_wrong_and_the_file_it_cannot_write(
    settings: Settings, tmp_path: Path
) -> None:
    questions, corpus = tmp_path / "questions.jsonl", tmp_path / "corpus.jsonl"
    corpus.write_text('{"conversation": "c1"}')
    questions.write_text('{"conversation": "c1", "id": "q"}')
    result = run("bench", "retrieval", str(corpus), str(questions), "--out", str(tmp_path / "run.jsonl"))
    assert result.returncode == 2
    assert "line 1 must be an object with the string fields conversation, id, question" in result.stderr
    result = run("bench", "retrieval", str(corpus), str(questions), "--out", str(tmp_path / "none" / "run.jsonl"))
    assert result.returncode == 2
    assert "No such file" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("through", ["engine", "library"])
def test_a_benchmark_stores_asks_and_writes_a_run(settings: Settings, tmp_path: Path, through: str) -> None:
    turns = [
        {"speaker": "Caroline", "text": "I adopted a puppy called Bruno."},
        {"speaker": "Melanie", "text": "My sister moved to Norway."},
    ]
    common = {"conversation": "c1", "session": "s1", "time": "2023-05-08T13:56"}
    corpus, questions, out = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl", tmp_path / "run.jsonl"
    corpus.write_text("\n".join(json.dumps(common | turn | {"turn": f"t{n}"}) for n, turn in enumerate(turns)))
    questions.write_text(json.dumps({"conversation": "c1", "id": "q1", "question": "Which dog did Caroline adopt?"}))
    result = run("bench", "retrieval", str(corpus), str(questions), "--out", str(out), "--through", through)
    assert result.returncode == 0, result.stderr
    assert json.loads(out.read_text()) == {"id": "q1", "ranked": ["t0", "t1"]}
    assert "frac@" not in result.stdout


def test_a_benchmark_refuses_a_namespace_that_holds_only_a_part_of_the_corpus(
    settings: Settings, tmp_path: Path
) -> None:
    turn = {"session": "s1", "time": "2023-05-08T13:56", "speaker": "Ann", "text": "I adopted a puppy.", "turn": "t1"}
    corpus, questions, out = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl", tmp_path / "run.jsonl"
    questions.write_text(json.dumps({"conversation": "c1", "id": "q1", "question": "Which animal?"}))
    arguments = (str(corpus), str(questions), "--out", str(out), "--namespace", f"bench-{uuid4()}")
    for conversations, code in ((("c1",), 0), (("c1",), 0), (("c1", "c2"), 2)):
        corpus.write_text("\n".join(json.dumps(turn | {"conversation": each}) for each in conversations))
        result = run("bench", "retrieval", *arguments)
        assert result.returncode == code, result.stderr
    assert f"holds only a part of {corpus}: give another --namespace" in result.stderr


def test_a_benchmark_recalls_only_what_was_said_until_then_and_scores_what_it_recalled(
    settings: Settings, tmp_path: Path
) -> None:
    corpus, questions, out = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl", tmp_path / "run.jsonl"
    turn = {"conversation": "c1", "session": "s1", "speaker": "Ann"}
    said = {"t1": ("2023-05-01", "My first dog was Bruno."), "t2": ("2023-05-02", "My second dog is Rex.")}
    corpus.write_text("\n".join(json.dumps(turn | {"turn": t, "time": at, "text": x}) for t, (at, x) in said.items()))
    asked = {"conversation": "c1", "question": "What is the second dog of Ann called?", "gold_turns": ["t2"]}
    before = asked | {"id": "before", "category": "too early", "until": "2023-05-01T12:00"}
    after = asked | {"id": "after", "category": "in time", "until": "2023-05-02"}
    questions.write_text(f"{json.dumps(before)}\n{json.dumps(after)}\n")
    result = run("bench", "retrieval", str(corpus), str(questions), "--out", str(out))
    assert result.returncode == 0, result.stderr
    ranked = {line["id"]: line["ranked"] for line in map(json.loads, out.read_text().splitlines())}
    assert ranked == {"before": ["t1"], "after": ["t2", "t1"]}
    assert [line.split()[-3:] for line in result.stdout.splitlines()[-4:]] == [
        ["frac@5", "frac@10", "frac@25"],
        ["0.500", "0.500", "0.500"],
        ["1.000", "1.000", "1.000"],
        ["0.000", "0.000", "0.000"],
    ]


def test_with_the_defence_off_screening_says_only_that(settings: Settings) -> None:
    refused = run("review", "screen")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("recollect: Nothing is screened: set RECOLLECT_DEFENCE")
