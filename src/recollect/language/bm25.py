"""BM25 as numbers PostgreSQL can keep: saturated weights, inverse document frequency, and terms as hashes."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final

K1: Final = 1.2
B: Final = 0.75
AVERAGE_LENGTH: Final = 100  # fixed: stored weights stay true, and recall measured better than with the live one

DIMENSIONS: Final = 1_000_000_000  # of the sparse vectors; pgvector allows no more
ALL_PASSAGES: Final = 0  # no term's dimension: in term statistics it counts the passages themselves
_CACHED_TERMS: Final = 1 << 16
_CACHED_SCOPES: Final = 1 << 12

# Each hash has a domain of its own: an owner called like a namespace, or not called at all, is still another scope.
_OWNER_DOMAIN: Final = b"owner"
_NAMESPACE_DOMAIN: Final = b"namespace"
_TERM_DOMAIN: Final = b"term"


def saturated_weights(terms: Sequence[str]) -> dict[str, float]:
    """What each term of a passage adds to its score, still to be multiplied by the term's idf."""
    norm = K1 * (1 - B + B * len(terms) / AVERAGE_LENGTH)
    counts = Counter(terms)
    weight_of = {count: count * (K1 + 1) / (count + norm) for count in set(counts.values())}
    return {term: weight_of[count] for term, count in counts.items()}


def idf(df: int, total: int) -> float:
    """How telling a term is that `df` of `total` passages hold; one never seen counts as seen once."""
    df = max(df, 1)
    # Counts may lag behind each other: a term is never in more passages than there are.
    return math.log(1 + (max(total, df) - df + 0.5) / (df + 0.5))


@lru_cache(_CACHED_TERMS)
def dimension(term: str) -> int:
    """The dimension, from 1, that stands for a term; the same in every process and version."""
    return _term(term) % DIMENSIONS + 1


def key(namespace: str, owner: str | None, term: str) -> int:
    """The signed 64-bit key of a term among an owner's passages ("" is one), or with None in the whole namespace."""
    return _scope(namespace, owner) ^ _term(term)


def keys(namespace: str, owner: str | None, terms: Iterable[str]) -> list[int]:
    """The keys of many terms in one scope."""
    scope = _scope(namespace, owner)
    return [scope ^ _term(term) for term in terms]


def sparse_text(weights: Mapping[str, float]) -> str:
    """Weights by term as pgvector's `sparsevec` reads them; terms that share a dimension are summed."""
    values = dict(zip(map(dimension, weights), weights.values(), strict=True))
    if len(values) < len(weights):
        values = dict.fromkeys(values, 0.0)
        for term, weight in weights.items():
            values[dimension(term)] += weight
    # Most terms stand once in a passage and weigh the same: each distinct weight is written out once.
    written = {value: f"{value:.8g}" for value in set(values.values())}
    elements = ",".join([f"{index}:{written[values[index]]}" for index in sorted(values)])
    return f"{{{elements}}}/{DIMENSIONS}"


@lru_cache(_CACHED_TERMS)
def _term(term: str) -> int:
    return _hash(_TERM_DOMAIN, term)


@lru_cache(_CACHED_SCOPES)
def _scope(namespace: str, owner: str | None) -> int:
    if owner is None:
        return _hash(_NAMESPACE_DOMAIN, namespace)
    return _hash(_OWNER_DOMAIN, f"{len(namespace)}:{namespace}{owner}")


def _hash(domain: bytes, text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=domain).digest()
    return int.from_bytes(digest, "big", signed=True)
