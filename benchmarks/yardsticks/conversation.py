"""One conversation and its questions, from the files that `recollect bench retrieval` reads."""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Turn:
    """One message; `at` is in UTC."""

    id: str
    session: str
    speaker: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, until when a turn may have been said, and the turns that hold the answer."""

    text: str
    until: datetime | None
    gold: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What every store is given."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]

    def sessions(self) -> list[list[Turn]]:
        """The turns of each session, in their order."""
        found = defaultdict(list)
        for turn in self.turns:
            found[turn.session].append(turn)
        return list(found.values())


def read(corpus: Path, questions: Path, name: str | None) -> Conversation:
    """The named conversation, or the first of the corpus; questions without gold turns cannot be scored."""
    rows = list(_rows(corpus))
    chosen = name or rows[0]["conversation"]
    turns = (
        Turn(row["turn"], row["session"], row["speaker"], _utc(row["time"]), row["text"])
        for row in rows
        if row["conversation"] == chosen
    )
    asked = (
        Question(row["question"], _utc(row["until"]) if row.get("until") else None, tuple(row["gold_turns"]))
        for row in _rows(questions)
        if row["conversation"] == chosen and row.get("gold_turns")
    )
    return Conversation(chosen, tuple(turns), tuple(asked))


def invented() -> Conversation:
    """Just large enough to show that a run works."""
    things = ("kettle", "bicycle", "lantern", "violin", "ladder", "compass", "telescope", "hammock")
    turns = tuple(
        Turn(f"turn-{n}", f"session-{n // 4}", "Ann", datetime(2024, 5, 1 + n, tzinfo=UTC), f"I bought a {thing}.")
        for n, thing in enumerate(things)
    )
    asked = (Question(f"When did Ann buy the {thing}?", None, (f"turn-{n}",)) for n, thing in enumerate(things))
    return Conversation("invented", turns, tuple(asked))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def _utc(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
