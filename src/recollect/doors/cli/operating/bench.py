"""`recollect bench retrieval`: store a corpus of conversations, run its questions, write what was recalled."""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from recollect import checks
from recollect.doors.cli.one_command import with_engine
from recollect.doors.cli.printing import echo, indexed
from recollect.engine import Engine
from recollect.errors import Invalid, Unavailable
from recollect.flows.remember import Turn
from recollect.flows.search.ranking import ASSISTANT
from recollect.memory.index.search import Scope
from recollect.memory.log import NewMessage

RANKED = 100
TURN_FIELDS = ("conversation", "session", "turn", "speaker", "time", "text")


def run(corpus: Path, questions: Path, out: Path, namespace: str | None) -> None:
    """Store the corpus in a new namespace, or reuse the named one if it already holds the corpus."""
    try:
        out.touch()  # before the long work, so that a place that cannot be written to is known at once
        with_engine(lambda engine: _retrieval(engine, corpus, questions, out, namespace))
    except OSError as problem:
        raise Invalid(f"{problem.filename or out} cannot be used: {problem.strerror}") from problem


async def _retrieval(engine: Engine, corpus: Path, questions: Path, out: Path, namespace: str | None) -> None:
    chosen = f"bench-{uuid4()}" if namespace is None else checks.namespace(namespace)
    asked = list(_rows(questions, ("conversation", "id", "question")))
    if not asked:
        raise Invalid(f"{questions} has no questions")
    if not await engine.conversations.of_user(chosen, asked[0]["conversation"], 1):
        by_session: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for turn in _rows(corpus, TURN_FIELDS):
            by_session[turn["conversation"], turn["session"]].append(turn)
        with click.progressbar(by_session.items(), label="Storing ", length=len(by_session)) as sessions:
            # Each conversation is its own owner; the order of the file is the order of the talk.
            for (conversation, session), said in sessions:
                messages = tuple(_message(turn) for turn in said)
                await engine.remember.turn(
                    chosen, Turn(f"{conversation}/{session}", messages, owner_if_new=conversation)
                )
    await indexed(engine.indexer, chosen)
    with out.open("w", encoding="utf-8") as run_file, click.progressbar(asked, label="Asking  ") as bar:
        for question in bar:
            scope = Scope(owner=question["conversation"])
            found = await engine.recall.recall(chosen, question["question"], scope, top_k=RANKED)
            if found.degraded is not None:
                raise Unavailable(f"Stopped, because the run would measure the outage: {found.degraded}")
            ranked = [memory.metadata["turn"] for memory in found.memories if isinstance(memory.metadata, dict)]
            run_file.write(json.dumps({"id": question["id"], "ranked": ranked}) + "\n")
    echo(f"Ran {len(asked)} questions in namespace {chosen} and wrote {out}.")


def _rows(path: Path, fields: Sequence[str]) -> Iterator[dict[str, Any]]:
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


def _message(turn: dict[str, Any]) -> NewMessage:
    speaker = turn["speaker"]
    role = ASSISTANT if speaker.lower() == ASSISTANT else "user"
    named = None if speaker.lower() in (ASSISTANT, "user") else speaker
    try:
        at = checks.utc(datetime.fromisoformat(turn["time"]), "time")
    except ValueError as problem:
        raise Invalid(f"turn {turn['turn']} has an invalid time: {problem}") from problem
    return NewMessage(role, checks.text(turn["text"], "text"), json.dumps({"turn": turn["turn"]}), named, at)
