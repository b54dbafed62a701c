"""Ranking: what a nominee is worth, as a sum of signals with one named weight each.

The weights were fitted on conversations between people and with assistants; docs/recall.md has the ablations.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from recollect.language import names
from recollect.language.dates import NamedDate
from recollect.memory.index.search import Around, Nominee

WORDS = 0.80
"""BM25 as a part of the best possible, beside the cosine, which weighs 1."""
NEIGHBOUR = 0.20
"""The better match of the messages before and after: a turn is explained by what surrounds it."""
ANSWER = 0.20
"""The match of the question that a person's message answers."""
SESSION = 0.40
"""The best match in the same session: the talk was about it."""
SPEAKER = 0.15
"""Said by a person whom the question names."""
ROLE = 0.15
"""Said by a person rather than an assistant; the other way round when the question asks what the assistant said."""
DATE = 0.20
"""Said on a date that the question names."""

ASSISTANT = "assistant"

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Signals:
    """What the question says besides its words and its vector."""

    people: frozenset[str] = frozenset()
    dates: tuple[NamedDate, ...] = ()
    asks_assistant: bool = False


@dataclass(frozen=True, slots=True)
class Parts:
    """The score of one item, part by part; they add up to it."""

    cosine: float
    words: float
    neighbour: float
    answer: float
    session: float
    speaker: float
    role: float
    date: float

    @property
    def total(self) -> float:
        return (
            self.cosine
            + self.words
            + self.neighbour
            + self.answer
            + self.session
            + self.speaker
            + self.role
            + self.date
        )


@dataclass(frozen=True, slots=True)
class Ranked:
    """An item by its best passage, and why it stands where it stands."""

    best: Nominee
    parts: Parts


@dataclass(frozen=True, slots=True)
class _Candidate:
    best: Nominee
    cosine: float
    words: float

    @property
    def match(self) -> float:
        return self.cosine + self.words


def cosine_if_unknown(nominees: Iterable[Nominee]) -> float:
    """What a passage counts whose vector is not there yet: as much as the nominee in the middle."""
    known = [nominee.cosine for nominee in nominees if nominee.cosine is not None]
    return median(known) if known else 0.0


def places_around(nominees: Iterable[Nominee]) -> list[Place]:
    """Where the messages before and after the nominees stand."""
    places = set()
    for nominee in nominees:
        if nominee.session_id is not None and nominee.position is not None:
            places |= {(nominee.session_id, nominee.position - 1), (nominee.session_id, nominee.position + 1)}
    return sorted(places)


def rank(nominees: Sequence[Nominee], bound: float, around: Mapping[Place, Around], signals: Signals) -> list[Ranked]:
    """Items, the best first; ties in the order they were written."""
    candidates = _candidates(nominees, bound)
    best_in_session: dict[str, float] = {}
    for candidate in candidates:
        session = _talk(candidate.best)
        if session is not None:
            best_in_session[session] = max(candidate.match, best_in_session.get(session, candidate.match))
    prefer_assistant = signals.asks_assistant and any(c.best.role == ASSISTANT for c in candidates)
    ranked = [
        Ranked(candidate.best, _parts(candidate, best_in_session, around, signals, prefer_assistant))
        for candidate in candidates
    ]
    return sorted(ranked, key=lambda item: (-item.parts.total, item.best.id))


def _candidates(nominees: Sequence[Nominee], bound: float) -> list[_Candidate]:
    """Each item once, by the passage of it that matches best."""
    unknown = cosine_if_unknown(nominees)
    best: dict[tuple[str, str], _Candidate] = {}
    for nominee in nominees:
        cosine = unknown if nominee.cosine is None else nominee.cosine
        candidate = _Candidate(nominee, cosine, WORDS * nominee.lexical / bound if bound else 0.0)
        item = (nominee.kind, nominee.item_id)
        if item not in best or (candidate.match, -nominee.part) > (best[item].match, -best[item].best.part):
            best[item] = candidate
    return list(best.values())


def _parts(
    candidate: _Candidate,
    best_in_session: Mapping[str, float],
    around: Mapping[Place, Around],
    signals: Signals,
    prefer_assistant: bool,
) -> Parts:
    passage = candidate.best
    before = after = None
    if passage.session_id is not None and passage.position is not None:
        before = around.get((passage.session_id, passage.position - 1))
        after = around.get((passage.session_id, passage.position + 1))
    by_assistant = passage.role == ASSISTANT
    answers = before is not None and not by_assistant and names.asks(before.ending)
    return Parts(
        cosine=candidate.cosine,
        words=candidate.words,
        neighbour=NEIGHBOUR * max(_match(before), _match(after)),
        answer=ANSWER * _match(before) if answers else 0.0,
        # What was not said in a session is its own: it must not lose to messages for that alone.
        session=SESSION * best_in_session.get(_talk(passage) or "", candidate.match),
        speaker=SPEAKER if passage.speaker in signals.people else 0.0,
        role=ROLE if by_assistant == prefer_assistant else 0.0,
        date=DATE if any(date.matches(passage.at) for date in signals.dates) else 0.0,
    )


def _talk(passage: Nominee) -> str | None:
    """The session that a passage was said in; one that has a session only for its scope was not said there."""
    return passage.session_id if passage.position is not None else None


def _match(message: Around | None) -> float:
    return 0.0 if message is None else max(message.match, 0.0)
