"""`recollect bench retrieval`: store a corpus of conversations, run its questions, write what was recalled."""

import asyncio
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import click

from recollect import checks
from recollect.doors.cli.operating.retrieval_scores import score, table
from recollect.doors.cli.operating.retrieval_targets import TARGETS, Target
from recollect.doors.cli.printing import echo
from recollect.errors import Invalid, Unavailable
from recollect.flows.search.ranking import ASSISTANT
from recollect.memory.log import NewMessage

RANKED = 100
TURN_FIELDS = ("conversation", "session", "turn", "speaker", "time", "text")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a conversation; `gold` are the turns that hold the answer, as far as they are known."""

    conversation: str
    id: str
    text: str
    until: datetime | None
    category: str | None
    gold: tuple[str, ...]

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        """Read a line of the questions, whose optional fields must make sense if they are there."""
        category, gold = row.get("category"), row.get("gold_turns") or []
        if not isinstance(gold, list) or not all(isinstance(turn, str) for turn in gold):
            raise Invalid(f"question {row['id']}: gold_turns must be a list of turn ids, which are strings")
        if not isinstance(category, str | None):
            raise Invalid(f"question {row['id']}: category must be a string")
        until = None if row.get("until") is None else moment(row["until"], f"question {row['id']}: until")
        return cls(row["conversation"], row["id"], row["question"], until, category, tuple(gold))


def run(corpus: Path, questions: Path, out: Path, namespace: str | None, through: str) -> None:
    """Store the corpus in a new namespace, or reuse the named one if it already holds the corpus."""
    try:
        out.touch()  # before the long work, so that a place that cannot be written to is known at once
        asyncio.run(_retrieval(through, corpus, questions, out, namespace))
    except OSError as problem:
        raise Invalid(f"{problem.filename or out} cannot be used: {problem.strerror}") from problem


async def _retrieval(through: str, corpus: Path, questions: Path, out: Path, namespace: str | None) -> None:
    chosen = f"bench-{uuid4()}" if namespace is None else checks.namespace(namespace)
    asked = read_questions(questions)
    scores = []
    async with TARGETS[through](chosen) as target:
        await ensure_stored(target, chosen, corpus)
        with out.open("w", encoding="utf-8") as run_file, click.progressbar(asked, label="Asking  ") as bar:
            for question in bar:
                found = await target.recall(question.conversation, question.text, question.until, RANKED)
                if found.degraded is not None:
                    raise Unavailable(f"Stopped, because the run would measure the outage: {found.degraded}")
                ranked = [memory.metadata["turn"] for memory in found.memories if isinstance(memory.metadata, dict)]
                run_file.write(json.dumps({"id": question.id, "ranked": ranked}) + "\n")
                if question.gold:
                    scores.append(score(question.category, ranked, question.gold))
    echo(f"Ran {len(asked)} questions in namespace {chosen} and wrote {out}.")
    for line in table(scores) if scores else ():
        echo(line)


def read_questions(path: Path) -> list[Question]:
    """All of a file; one without any is refused."""
    asked = [Question.of(row) for row in read_rows(path, ("conversation", "id", "question"))]
    if not asked:
        raise Invalid(f"{path} has no questions")
    return asked


async def ensure_stored(target: Target, namespace: str, corpus: Path) -> None:
    """Store a corpus unless the namespace has it: each conversation with an owner of its own, in the file's order."""
    by_session: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for turn in read_rows(corpus, TURN_FIELDS):
        by_session[turn["conversation"], turn["session"]].append(turn)
    held = [await target.holds(conversation) for conversation in {conversation for conversation, _ in by_session}]
    if not any(held):
        with click.progressbar(by_session.items(), label="Storing ", length=len(by_session)) as sessions:
            for (conversation, session), said in sessions:
                await target.store(conversation, session, [_message(turn) for turn in said])
    elif not all(held):
        raise Invalid(f"Namespace {namespace} holds only a part of {corpus}: give another --namespace")
    await target.index()


def read_rows(path: Path, fields: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file, gzipped or not; one without these string fields is refused."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            place = f"{path} line {number}"
            try:
                row = json.loads(line)
            except ValueError as problem:
                raise Invalid(f"{place} is not JSON: {checks.json_fault(problem)}") from problem
            if not isinstance(row, dict) or not all(isinstance(row.get(field), str) for field in fields):
                raise Invalid(f"{place} must be an object with the string fields {', '.join(fields)}")
            yield row


def role_and_name(speaker: str) -> tuple[str, str | None]:
    """A corpus names people, or says user and assistant, who are no names."""
    named = None if speaker.lower() in (ASSISTANT, "user") else speaker
    return ASSISTANT if speaker.lower() == ASSISTANT else "user", named


def moment(value: Any, name: str) -> datetime:
    """A time of a corpus or a question, in UTC."""
    try:
        return checks.utc(checks.moment(value), name)
    except ValueError as problem:
        raise Invalid(f"{name} is not a date or time of ISO 8601: {problem}") from problem


def _message(turn: dict[str, Any]) -> NewMessage:
    role, named = role_and_name(turn["speaker"])
    at = moment(turn["time"], f"turn {turn['turn']}: time")
    return NewMessage(role, checks.text(turn["text"], "text"), json.dumps({"turn": turn["turn"]}), named, at)
