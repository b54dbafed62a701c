"""Fit the weights of the ranking, and print what the fit and each signal are worth.

Weights for questions and for prompts are fitted apart, each on every set. Only what recall finds today is ranked anew,
without merging duplicates. The fits that leave a set or a conversation out are pulled towards today's weights, too: if
those were fitted on the same sets, they know a little of what is left out.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from benchmarks.fitting.observations import Floats, Observed, Set, Source, observe, weights_of
from benchmarks.fitting.utility import Batch, fit
from recollect.doors.cli.operating.retrieval_scores import CUTS
from recollect.flows.search.ranking import Parts

KINDS = {False: "question", True: "prompt"}

Weights = Mapping[bool, Floats]
"""By whether they are for prompts."""


async def run(sources: Sequence[Source]) -> None:
    """Ask all questions, then print the tables."""
    sets = await observe(sources)
    present = {kind: weights_of(kind) for kind in KINDS}
    print_ablations(sets, present)
    fitted = fit_all([one.right for one in sets])
    print("\nfrac@5, frac@10 and frac@25")
    for one in sets:
        print(
            f"{one.name}: {len(one.right):,} questions, {sum(each.is_prompt for each in one.right):,} of them prompts"
        )
        print(f"  present weights             {_shown(fractions(one.right, present))}")
        print(f"  fitted                      {_shown(fractions(one.right, fitted))}")
        print(f"  fitted on the other sets    {_shown(without_set(sets, one))}")
        print(f"  on other conversations      {_shown(without_each_conversation(sets, one))}")
    print_weights(present, fitted)


def fit_all(sets: Sequence[Sequence[Observed]]) -> Weights:
    """Fit each kind to the questions of the sets."""
    return {
        kind: fit(Batch.of([[each for each in asked if each.is_prompt == kind] for asked in sets]), weights_of(kind))
        for kind in KINDS
    }


def fractions(asked: Iterable[Observed], weights: Weights) -> Floats:
    """The mean fraction of gold turns among the first 5, 10 and 25."""
    found = []
    for each in asked:
        order = np.argsort(-(each.signals @ weights[each.is_prompt]), kind="stable")
        found.append([each.is_gold[order[:cut]].sum() / each.gold for cut in CUTS])
    means: Floats = np.array(found, dtype=np.float64).mean(axis=0)
    return means


def without_set(sets: Sequence[Set], left_out: Set) -> Floats | None:
    """The fractions of a set with weights from the others; None if there are no others."""
    if len(sets) == 1:
        return None
    return fractions(left_out.right, fit_all([one.right for one in sets if one is not left_out]))


def without_each_conversation(sets: Sequence[Set], of: Set) -> Floats | None:
    """The fractions of a set, each conversation with weights from all others; None if there are no others."""
    names = list(dict.fromkeys(each.conversation for each in of.right))
    if len(sets) == len(names) == 1:
        return None
    total = np.zeros(len(CUTS))
    for name in names:
        own = [each for each in of.right if each.conversation == name]
        rest = [each for each in of.right if each.conversation != name]
        weights = fit_all([rest if one is of else one.right for one in sets])
        total += fractions(own, weights) * len(own)
    return total / len(of.right)


def print_ablations(sets: Sequence[Set], present: Weights) -> None:
    """How much lower or higher the fractions are if a signal counts nothing."""
    print("\nfrac@5, frac@10 and frac@25 without a signal, less those with it")
    print("             " + "".join(one.name.ljust(24) for one in sets))
    whole = [fractions(one.right, present) for one in sets]
    for index, signal in enumerate(Parts._fields):
        if not any(weights[index] for weights in present.values()):
            continue
        without = {kind: np.where(np.arange(len(weights)) == index, 0.0, weights) for kind, weights in present.items()}
        lost = (fractions(one.right, without) - before for one, before in zip(sets, whole, strict=True))
        print(f"  {signal:9}  " + "".join(" ".join(f"{each:+.3f}" for each in row).ljust(24) for row in lost))


def print_weights(present: Weights, fitted: Weights) -> None:
    """Today's beside the new ones. A weight of 0 stays: recall does not tell what it would multiply."""
    print("\nweight     " + "".join(f"{kind:>10}    fitted" for kind in KINDS.values()))
    for index, signal in enumerate(Parts._fields):
        pairs = (f"{present[kind][index]:10.2f}{fitted[kind][index]:10.2f}" for kind in KINDS)
        print(f"{signal:11}" + "".join(pairs))


def _shown(found: Floats | None) -> str:
    return "nothing to fit to" if found is None else "  ".join(f"{each:.3f}" for each in found)
