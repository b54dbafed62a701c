"""One conversation and its questions, from the files that `recollect bench retrieval` reads."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from recollect.doors.cli.operating.bench import TURN_FIELDS, Question, moment, read_questions, read_rows


@dataclass(frozen=True, slots=True)
class Turn:
    """One message; `at` is in UTC."""

    id: str
    session: str
    speaker: str
    at: datetime
    text: str


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
    rows = list(read_rows(corpus, TURN_FIELDS))
    chosen = name or rows[0]["conversation"]
    turns = (
        Turn(row["turn"], row["session"], row["speaker"], moment(row["time"], f"turn {row['turn']}: time"), row["text"])
        for row in rows
        if row["conversation"] == chosen
    )
    asked = (each for each in read_questions(questions) if each.conversation == chosen and each.gold)
    return Conversation(chosen, tuple(turns), tuple(asked))


def invented() -> Conversation:
    """Just large enough to show that a run works."""
    things = ("kettle", "bicycle", "lantern", "violin", "ladder", "compass", "telescope", "hammock")
    turns = tuple(
        Turn(f"turn-{n}", f"session-{n // 4}", "Ann", datetime(2024, 5, 1 + n, tzinfo=UTC), f"I bought a {thing}.")
        for n, thing in enumerate(things)
    )
    asked = (
        Question("invented", f"question-{n}", f"When did Ann buy the {thing}?", None, None, (f"turn-{n}",))
        for n, thing in enumerate(things)
    )
    return Conversation("invented", turns, tuple(asked))
