"""Agreement: how much more two judges agree than chance would make them (Cohen's kappa), and what that is called."""

from collections import Counter
from collections.abc import Hashable, Sequence

from recollect.errors import Invalid
from recollect.memory.cognitive.judging import AGREEMENTS, JudgeScore

# A document counts as relevant for a judge who gives it more than this.
RELEVANT_ABOVE = 0.5

# The bands of Landis and Koch (1977), each up to and with its number; below zero agreement is poor.
_POOR, *_NAMES = AGREEMENTS
_BANDS = tuple(zip((0.20, 0.40, 0.60, 0.80, 1.00), _NAMES, strict=True))


def kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Cohen's kappa of two judges who put the same things into classes.

    Counted in whole numbers, so nothing is lost before the one division. That is 0/0 only if both put everything into
    one and the same class: they agree in all they said, and kappa is 1. A judge who has one class for everything while
    the other does not agrees no more than by chance: 0, as the formula has it, also if the two never agree.
    """
    if not first or len(first) != len(second):
        raise Invalid(f"Both judges must score the same documents: there are {len(first)} and {len(second)} scores")
    things = len(first)
    agreed = things * sum(one == other for one, other in zip(first, second, strict=True))
    firsts, seconds = Counter(first), Counter(second)
    by_chance = sum(count * seconds[verdict] for verdict, count in firsts.items())
    if by_chance == things * things:
        return 1.0
    return (agreed - by_chance) / (things * things - by_chance)


def relevant(scores: Sequence[float]) -> list[bool]:
    """The class that each score stands for."""
    return [score > RELEVANT_ABOVE for score in scores]


def is_disputed(score: JudgeScore) -> bool:
    """Whether a document is relevant to one judge only."""
    one, other = relevant([score.judge1_score, score.judge2_score])
    return one != other


def band(value: float) -> str:
    """The name of an agreement."""
    if value < 0:
        return _POOR
    return next(name for limit, name in _BANDS if value <= limit)
