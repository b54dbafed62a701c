"""What a question was answered, as the page shows it: marked words, bars, and what changed beside another answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from recollect import origin
from recollect.doors.console import links, rendering
from recollect.doors.console.excerpts import fitting
from recollect.doors.console.recalls import scores
from recollect.doors.console.recalls.calls import Calls
from recollect.doors.console.recalls.scores import Bar, Scale
from recollect.doors.recalls import Asked, Inspection, moment
from recollect.flows.kinds.cognitive import NODE
from recollect.flows.kinds.long_term import MEMORY
from recollect.flows.search.ranking import Parts
from recollect.flows.search.recollection import Candidate, Memory

# On both sides together. A page of a hundred results would be too large to read, and to send.
MOST_SHOWN = 30
MOST_CHARACTERS = 1_000
# Of a text as it is sent: what is written out because nobody could see it makes it longer.
MOST_BYTES = 2_500
# Of a question: a longer one would make thirty long links.
MOST_IN_A_LINK = 200
# Of a long passage whose words stand far behind its beginning, so much is shown before the first.
LEAD = 80


@dataclass(frozen=True, slots=True)
class Result:
    """One item of the ranking."""

    rank: int
    memory: Memory
    fate: str
    text: Markup
    metadata: Markup
    bar: Bar
    parts: Parts
    link: str
    """Its page; empty for what another namespace has, which this key cannot open."""
    moved: str
    """Where it is on the other side; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Side:
    """A question and its answer."""

    asked: Asked
    inspection: Inspection
    calls: Calls
    results: list[Result]
    columns: list[str]

    @property
    def as_of(self) -> datetime | None:
        """The time that was asked about; None for now."""
        return moment(self.asked.as_of, "as_of")

    @property
    def shown(self) -> list[Result]:
        """What was answered."""
        return [result for result in self.results if result.fate == "shown"]

    @property
    def left_out(self) -> list[Result]:
        """What was not, in the order of the ranking."""
        return [result for result in self.results if result.fate != "shown"]

    @property
    def not_drawn(self) -> int:
        """Results that the answer has besides those on the page."""
        return len(self.inspection.found.memories) - len(self.shown)

    @property
    def told(self) -> str:
        """The answer in a sentence."""
        count = len(self.inspection.found.memories)
        found = {0: "No results", 1: "1 result"}.get(count, f"{count} results")
        return (
            f"{found}. The memory {'answers' if self.inspection.found.answered else 'does not answer'} this question."
        )


@dataclass(frozen=True, slots=True)
class Other:
    """The other side: the place of each item there, and the time that was asked about."""

    places: Mapping[tuple[str, str], tuple[int, Candidate | None]]
    as_of: datetime | str | None


def sides(asked: Sequence[Asked], inspections: Sequence[Inspection], calls: Sequence[Calls]) -> list[Side]:
    """One answer, or two beside each other, drawn to one scale."""
    drawn = [inspection.candidates[: MOST_SHOWN // len(inspections)] for inspection in inspections]
    scale = Scale.of(parts_of(each.memory) for candidates in drawn for each in candidates)
    places: list[dict[tuple[str, str], tuple[int, Candidate | None]]] = [
        {(each.memory.kind, each.memory.id): (rank, each) for rank, each in enumerate(inspection.candidates, 1)}
        for inspection in inspections
    ]
    found: list[Side] = []
    for number, candidates in enumerate(drawn):
        there = Other(places[1 - number], asked[1 - number].as_of) if len(places) > 1 else None
        results = [result(rank, candidate, asked[number], scale, there) for rank, candidate in enumerate(candidates, 1)]
        shown = scores.columns([each.parts for each in results])
        found.append(Side(asked[number], inspections[number], calls[number], results, shown))
    return found


def result(rank: int, candidate: Candidate, asked: Asked, scale: Scale, there: Other | None) -> Result:
    """An item of the ranking, and where it is in the other one."""
    memory, parts = candidate.memory, parts_of(candidate.memory)
    beside = ""
    if there is not None:
        beside = moved(rank, *there.places.get((memory.kind, memory.id), (0, None)))
        beside += reworded(memory, asked, there)
    reach = origin.current().reach
    # Of another namespace only recall shows anything.
    is_own = memory.namespace is None or reach is None or memory.namespace == reach.own
    link = (
        ""
        if not is_own
        else links.item(
            memory.kind,
            memory.id,
            memory.session_id,
            q=asked.query if len(asked.query) <= MOST_IN_A_LINK and memory.kind != NODE else None,
            as_of=None if asked.as_of is None else str(asked.as_of),
        )
    )
    metadata = bounded(rendering.pretty(memory.metadata)) if memory.metadata else Markup("")
    return Result(rank, memory, candidate.fate, marked(memory), metadata, scores.bar(parts, scale), parts, link, beside)


def moved(rank: int, rank_there: int, there: Candidate | None) -> str:
    """How a place compares with the one on the other side."""
    if there is None or there.fate != "shown":
        return "only here" if there is None else "left out there"
    if rank == rank_there:
        return "same place"
    return f"{abs(rank_there - rank)} {'higher' if rank < rank_there else 'lower'} than there"


def reworded(memory: Memory, asked: Asked, there: Other) -> str:
    """Whether a memory says something else at the other time; two questions may find two passages of one text."""
    _, beside = there.places.get((memory.kind, memory.id), (0, None))
    can_differ = memory.kind in (MEMORY, NODE) and asked.as_of != there.as_of
    return ", says something else there" if can_differ and beside and beside.memory.text != memory.text else ""


def parts_of(memory: Memory) -> Parts:
    """An inspection always explains."""
    assert memory.explanation is not None
    return memory.explanation.parts


def marked(memory: Memory) -> Markup:
    """The passage with the words of the question marked; what is too long is cut."""
    places = memory.explanation.citations if memory.explanation else ()
    begin = max(0, places[0].start - LEAD) if places and places[0].end > MOST_CHARACTERS else 0
    return bounded(memory.text[begin:], [(start - begin, end - begin) for start, end in places], "…" if begin else "")


def bounded(text: str, places: Sequence[tuple[int, int]] = (), before: str = "") -> Markup:
    """The beginning of a text, as much as a page has room for."""
    most = fitting(text[:MOST_CHARACTERS], MOST_BYTES).characters
    shown = rendering.marked(text[:most], [place for place in places if place[0] >= 0 and place[1] <= most])
    return Markup("{}{}{}").format(before, shown, "…" if len(text) > most else "")
