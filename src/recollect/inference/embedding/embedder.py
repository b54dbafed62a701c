"""The embedder protocol: what the rest of Recollect needs from a model that turns text into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from recollect.errors import Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A string, so that importing the protocol does not import numpy.
Vector: TypeAlias = "NDArray[np.float32]"


class Closed(Unavailable):
    """An embedder takes no more work: its engine is closed, or the process ends."""


class Embedder(Protocol):
    """Turns text into unit vectors of one space."""

    @property
    def model_id(self) -> str:
        """Names the space: vectors are only ever compared with vectors of the same id."""

    @property
    def dimensions(self) -> int | None:
        """How many numbers a vector has; None if nothing says so before the first one is made."""

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector per text, in the order given."""

    async def embed_query(self, text: str) -> Vector:
        """The vector to compare with those of documents."""


def as_text(vector: Vector) -> str:
    """A vector in the text form that pgvector reads; six digits are more than a halfvec keeps."""
    # One formatting of all takes half as long as one of each.
    return "[" + ",".join(["%.6g"] * len(vector)) % tuple(vector.tolist()) + "]"
