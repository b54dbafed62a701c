"""Check relevance: how well it tells right from wrong, and whether it is the chance that it claims to be.

Every question is asked of its own conversation and of the next one of the set, which cannot answer it. What a client
sees is looked at: the first ten results, and the default floor. The fit itself is checked, not made anew; the slope and
the offset of a logistic regression say how far the sets have moved away from it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.fitting.observations import Floats, Observed, Source, observe

TOP = 10
BINS = 10
KINDS = {False: "questions", True: "prompts"}


class Bin(NamedTuple):
    """Results of about the same relevance."""

    results: int
    relevance: float
    """Their mean: what was claimed."""
    gold: float
    """The share of gold turns: what is true."""


async def run(sources: Sequence[Source]) -> None:
    """Ask all questions twice, then print what came of it."""
    sets = await observe(sources, wrong=True)
    for one in sets:
        claimed, gold = first_results([*one.right, *one.wrong])
        bins = reliability(claimed, gold)
        print(
            f"\n{one.name}: {len(one.right):,} questions, {len(one.wrong):,} asked of a conversation without the answer"
        )
        print(f"  answered at the default floor        {answered(one.right):7.1%}")
        print(f"  frac@{TOP} lost by the floor            {lost_by_floor(one.right):7.1%}")
        print(f"  wrong questions that are rejected    {1 - answered(one.wrong):7.1%}")
        print(f"  expected calibration error           {calibration_error(bins):7.3f}")
        print("  results  relevance  gold")
        for each in bins:
            print(f"  {each.results:7,}  {each.relevance:9.3f}  {each.gold:.3f}")
    print("\nLogistic regression of gold on the log-odds of relevance; slope 1 and offset 0 say that the fit stands")
    for is_prompt, name in KINDS.items():
        asked = [each for one in sets for each in (*one.right, *one.wrong) if each.is_prompt == is_prompt]
        if asked:
            slope, offset = recalibrated(*first_results(asked))
            print(f"  {name:9}  slope {slope:.2f}  offset {offset:+.2f}")


def first_results(asked: Iterable[Observed]) -> tuple[Floats, Floats]:
    """The relevance of the first ten results of all questions, and 1 for those that are gold."""
    found = [(each.relevance[:TOP], each.is_gold[:TOP]) for each in asked]
    return np.concatenate([claimed for claimed, _ in found]), np.concatenate([gold for _, gold in found]).astype(float)


def answered(asked: Sequence[Observed]) -> float:
    """The share of questions that the memory answers, as it says."""
    return float(np.mean([each.is_answered for each in asked]))


def lost_by_floor(asked: Iterable[Observed]) -> float:
    """The part of frac@10 that the default floor takes away: that of questions said to have no answer."""
    shown = reached = 0.0
    for each in asked:
        found = each.is_gold[:TOP].sum() / each.gold
        shown += found
        reached += found if each.is_answered else 0.0
    return 1 - reached / shown if shown else 0.0


def reliability(claimed: Floats, gold: Floats) -> list[Bin]:
    """Results in bins of equal count, the least relevant first."""
    order = np.argsort(claimed, kind="stable")
    parts = (part for part in np.array_split(order, BINS) if len(part))
    return [Bin(len(part), float(claimed[part].mean()), float(gold[part].mean())) for part in parts]


def calibration_error(bins: Sequence[Bin]) -> float:
    """How far apart claim and truth are in a bin, on average over the results."""
    return sum(each.results * abs(each.relevance - each.gold) for each in bins) / sum(each.results for each in bins)


def recalibrated(claimed: Floats, gold: Floats) -> tuple[float, float]:
    """The slope and the offset on the log-odds of relevance that explain best which results are gold."""
    chance = np.clip(claimed, 1e-6, 1 - 1e-6)
    inputs = np.column_stack([np.log(chance / (1 - chance)), np.ones_like(chance)])
    numbers = np.array([1.0, 0.0])
    for _ in range(25):  # Newton's method, from the fit as it stands
        expected = 1 / (1 + np.exp(-inputs @ numbers))
        curvature = inputs.T @ (inputs * (expected * (1 - expected))[:, None]) + 1e-6 * np.eye(2)
        numbers = numbers + np.linalg.solve(curvature, inputs.T @ (gold - expected))
    return float(numbers[0]), float(numbers[1])
