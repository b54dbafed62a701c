"""Scale: how a model's cosines compare with those of the bundled model, on which ranking was fitted.

Unrelated texts have a cosine near 0 in some models and near .5 in others; ranking adds cosines to other signals.
"""

import asyncio
from typing import Final, NamedTuple

from recollect.inference.embedding.embedder import Embedder

# Questions and what answers them; no answer fits another question.
PAIRS: Final = (
    ("Where does Anna work?", "I am a nurse at the children's hospital now, said Anna."),
    ("What did we eat on Sunday?", "Last Sunday we had lentil soup and fresh bread."),
    ("Which book did he like?", "The novel about the lighthouse keeper is my favourite, Tom told me."),
    ("When is the flight to Oslo?", "The plane to Oslo leaves on Friday at nine in the morning."),
    ("How is the garden doing?", "The tomatoes are growing well since I water the beds every evening."),
    ("What is wrong with the car?", "The engine makes a strange noise and the garage has no time before May."),
    ("Does she play an instrument?", "My daughter practises the violin for an hour a day."),
    ("How much is the rent?", "They want nine hundred a month for the flat near the station."),
)

# A model for which related texts are hardly nearer than others tells nothing; stretching that would make it shout.
_LEAST_SPREAD: Final = 0.05


class Scale(NamedTuple):
    """The mean cosine of the pairs, and of questions with answers of others."""

    related: float
    unrelated: float

    def as_bundled(self, cosine: float) -> float:
        """What the bundled model would have said."""
        spread = max(self.related - self.unrelated, _LEAST_SPREAD)
        nearness = (cosine - self.unrelated) / spread
        return BUNDLED.unrelated + nearness * (BUNDLED.related - BUNDLED.unrelated)


BUNDLED: Final = Scale(related=0.514, unrelated=0.064)
"""Of the bundled model; `measured` gives the same."""


async def measured(embedder: Embedder) -> Scale:
    """Embed the pairs, and compare."""
    answers = await embedder.embed_documents([answer for _, answer in PAIRS])
    asked = await asyncio.gather(*(embedder.embed_query(question) for question, _ in PAIRS))
    cosines = [[float(question @ answer) for answer in answers] for question in asked]
    related = sum(cosines[number][number] for number in range(len(PAIRS)))
    others = sum(map(sum, cosines)) - related
    return Scale(related / len(PAIRS), others / (len(PAIRS) * (len(PAIRS) - 1)))
