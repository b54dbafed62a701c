"""Results as they are drawn: scores as bars, what is said to somebody who cannot see them, and texts cut to size."""

import pytest

from recollect.doors.console.recalls import answer, scores
from recollect.doors.console.recalls.scores import LABELS, Scale
from recollect.flows.search.ranking import Parts

NOTHING = Parts(*[0.0] * len(Parts._fields))
GOOD = NOTHING._replace(cosine=0.6, words=0.3, length=0.001)
DOUBTFUL = NOTHING._replace(cosine=0.5, words=0.5, asking=-0.15, echo=-0.45)


def drawn(parts: Parts, scale: Scale) -> list[tuple[str, float, float]]:
    """The colour and both ends of each piece."""
    pieces = scores.bar(parts, scale).pieces
    ends = [(piece.colour, float(piece.left), float(piece.width)) for piece in pieces]
    return [(colour, round(left), round(left + width)) for colour, left, width in ends]


def test_parts_stand_beside_each_other_and_what_is_taken_off_stands_left_of_zero() -> None:
    scale = Scale.of([GOOD, DOUBTFUL])
    assert scale == pytest.approx((-0.6, 1.0))
    assert drawn(GOOD, scale) == [("s1", 375, 750), ("s2", 750, 938)]
    assert drawn(DOUBTFUL, scale) == [("s1", 375, 688), ("s2", 688, 1000), ("minus", 281, 375), ("minus", 0, 281)]


def test_a_negative_meaning_is_taken_off_too() -> None:
    odd = NOTHING._replace(cosine=-0.5, words=0.5)
    assert drawn(odd, Scale.of([odd])) == [("minus", 0, 500), ("s2", 500, 1000)]
    assert scores.legend([odd]) == [("s2", "Words"), ("minus", "Taken off")]


def test_a_bar_says_its_score_and_its_parts() -> None:
    assert (
        scores.bar(DOUBTFUL, Scale.of([DOUBTFUL])).said
        == "Score 0.40: meaning +0.50, words +0.50, asks -0.15, echo -0.45"
    )


def test_every_part_has_a_name_and_those_that_count_are_columns() -> None:
    assert tuple(LABELS) == Parts._fields
    assert scores.columns([GOOD, DOUBTFUL]) == ["cosine", "words", "asking", "echo"]
    assert scores.bar(NOTHING, Scale.of([])).pieces == []


def test_a_text_that_nobody_could_see_is_cut_before_it_fills_the_page() -> None:
    shown = answer.bounded("\u202e" * 5_000)
    assert len(shown) <= answer.MOST_BYTES + 1
    assert shown.count("U+202E") > 10
    assert shown.endswith("…")
    assert answer.bounded("short <b>", [(0, 5)]) == "<mark>short</mark> &lt;b&gt;"
