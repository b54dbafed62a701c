"""What `recollect bench retrieval` reads of a question, and the fraction of gold turns that it prints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.doors.cli.operating.bench import Question
from recollect.doors.cli.operating.retrieval_scores import CUTS, Score, score, table
from recollect.errors import Invalid

TURNS = st.sampled_from([f"t{number}" for number in range(40)])


def found_among_the_first(cut: int, ranked: list[str], gold: set[str]) -> float:
    """By the definition, one turn after the other."""
    seen: list[str] = []
    for turn in ranked:
        if turn not in seen and len(seen) < cut:
            seen.append(turn)
    return sum(turn in gold for turn in seen) / len(gold)


@given(st.lists(TURNS), st.sets(TURNS, min_size=1))
def test_a_score_is_the_fraction_of_gold_turns_among_the_first_distinct_ones(ranked: list[str], gold: set[str]) -> None:
    expected = tuple(found_among_the_first(cut, ranked, gold) for cut in CUTS)
    assert score("any", ranked, sorted(gold)).fractions == pytest.approx(expected)


def test_the_table_has_the_mean_of_all_and_of_each_category_in_aligned_columns() -> None:
    scores = [
        Score("temporal", (0.0, 0.5, 1.0)),
        Score("multi-hop", (1.0, 1.0, 1.0)),
        Score("temporal", (0.5, 0.5, 0.5)),
        Score(None, (0.0, 0.0, 0.0)),
    ]
    assert table(scores) == [
        "           questions  frac@5  frac@10  frac@25",
        "all                4   0.375    0.500    0.625",
        "multi-hop          1   1.000    1.000    1.000",
        "temporal           2   0.250    0.500    0.750",
    ]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"until": "soon"}, "question q: until is not a date or time of ISO 8601"),
        ({"until": 5}, "question q: until is not a date or time of ISO 8601"),
        ({"gold_turns": "t1"}, "question q: gold_turns must be a list of turn ids"),
        ({"gold_turns": [1]}, "question q: gold_turns must be a list of turn ids"),
        ({"category": 4}, "question q: category must be a string"),
    ],
)
def test_a_benchmark_refuses_questions_that_it_would_misread(wrong: dict[str, object], sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        Question.of({"conversation": "c", "id": "q", "question": "?"} | wrong)
