"""Scores as stacked bars: what each part adds to the right of zero, and takes off to the left."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from recollect.doors.console.charts import WIDTH
from recollect.flows.search.ranking import Parts


class Label(NamedTuple):
    """A part of the score in plain words, and the colour of its group."""

    colour: str
    name: str
    meaning: str


LABELS = {
    "cosine": Label("s1", "Meaning", "How close it is to the question in meaning (semantic search)"),
    "words": Label("s2", "Words", "How many of the question's words it has, rare ones counting more (keyword search)"),
    "neighbour": Label("s3", "Beside it", "How well the message before or after it matches"),
    "answer": Label("s3", "Answers", "It follows a question that matches"),
    "session": Label(
        "s5", "Session", "The best match in the same session; an item outside any session counts as one of its own"
    ),
    "company": Label("s5", "Company", "How many other results are of the same session"),
    "opening": Label("s5", "Opening", "It opens its session, or stands alone"),
    "speaker": Label("s4", "Speaker", "Said by somebody whom the question names"),
    "role": Label(
        "s4", "Role", "Said by a person rather than the assistant, or the other way round if that is asked for"
    ),
    "date": Label("s4", "Date", "Said on a date that the question names"),
    "recency": Label("s4", "Recency", "It is new, and the question asks for the latest or continues work"),
    "length": Label("s7", "Length", "Long enough to say something"),
    "asking": Label("minus", "Asks", "It asks another person: the answer tells more"),
    "echo": Label("minus", "Echo", "It is the question itself, asked before, or what the assistant answered then"),
    "decay": Label("minus", "Age", "What age takes off, if a half-life is asked for"),
}
GROUPS = {
    "s1": "Meaning",
    "s2": "Words",
    "s3": "Messages around it",
    "s5": "Session (an item without one counts as its own)",
    "s4": "Who and when",
    "s7": "Length",
    "minus": "Taken off",
}


class Piece(NamedTuple):
    """A part of a bar: where it begins, how long it is, and what pointing at it says."""

    colour: str
    left: str
    width: str
    said: str


class Scale(NamedTuple):
    """The lowest and the highest end of all bars that are compared."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Where a value lies in the drawing."""
        return (value - self.low) / (self.high - self.low) * WIDTH

    @classmethod
    def of(cls, scores: Iterable[Parts]) -> "Scale":
        """One that has room for each."""
        ends = [(sum(part for part in parts if part < 0), sum(part for part in parts if part > 0)) for parts in scores]
        low, high = min((low for low, _ in ends), default=0.0), max((high for _, high in ends), default=0.0)
        return cls(low, max(high, low + 1e-9))


class Bar(NamedTuple):
    """The parts of one score as they are drawn, where zero is, and what a screen reader says."""

    said: str
    pieces: list[Piece]
    zero: str


def bar(parts: Parts, scale: Scale) -> Bar:
    """The parts of one score beside each other, in the units of the drawing."""
    counted = drawn(parts)
    pieces: list[Piece] = []
    below, above = 0.0, 0.0
    for name, value in counted:
        start = above if value > 0 else below + value
        above, below = (above + value, below) if value > 0 else (above, below + value)
        left, right = scale.place(start), scale.place(start + abs(value))
        colour = LABELS[name].colour if value > 0 else "minus"
        pieces.append(Piece(colour, f"{left:.4g}", f"{right - left:.4g}", f"{LABELS[name].name} {value:+.3f}"))
    listed = ", ".join(f"{LABELS[name].name.lower()} {value:+.2f}" for name, value in counted)
    return Bar(f"Score {parts.total:.2f}: {listed}", pieces, f"{scale.place(0):.4g}")


def drawn(parts: Parts) -> list[tuple[str, float]]:
    """The parts that count, in their order."""
    return [(name, value) for name, value in parts._asdict().items() if abs(value) >= 0.005]


def legend(scores: Iterable[Parts]) -> list[tuple[str, str]]:
    """The colours of some bars, and what they stand for."""
    shown = {LABELS[name].colour if value > 0 else "minus" for parts in scores for name, value in drawn(parts)}
    return [(colour, name) for colour, name in GROUPS.items() if colour in shown]


def columns(scores: Sequence[Parts]) -> list[str]:
    """The parts that count in any of some scores, as the columns of a table."""
    shown = {name for parts in scores for name, _ in drawn(parts)}
    return [name for name in LABELS if name in shown]
