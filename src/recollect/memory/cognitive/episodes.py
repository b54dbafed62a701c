"""Episodes: what was tried, how well it went, and the lesson."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect.storage.database import Statements, Transaction
from recollect.storage.record import Record
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="episodes.sql"):
    add: Query
    find: Query
    similar: Query
    remove: Query
    page_episodes: Query
    restore_episodes: Query
    compare_episodes: Query
    size_episodes: Query
    shown_episodes: Query


RECORD = Record(
    "episode",
    "episodes",
    ("id",),
    _Sql.page_episodes,
    _Sql.restore_episodes,
    _Sql.compare_episodes,
    size=_Sql.size_episodes,
    shown=_Sql.shown_episodes,
)


@dataclass(frozen=True, slots=True)
class Episode:
    """A lesson and the query that led to it."""

    id: int
    query: str
    reward: float
    reflection: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SimilarEpisode:
    """An episode and how near its query is to the one asked, up to 1."""

    episode: Episode
    similarity: float


class Episodes:
    """Stores lessons and finds those whose query was like another."""

    async def add(self, tx: Transaction, query: str, reward: float, reflection: str) -> Episode:
        """Store one lesson."""
        row = await tx.one(_Sql.add, query=query, reward=reward, reflection=reflection)
        tx.tally.add(None, query, reflection)
        return Episode(row["id"], query, reward, reflection, row["created_at"])

    async def find(
        self, db: Statements, ids: Sequence[int], since: datetime, until: datetime | None, reward_min: float | None
    ) -> list[Episode]:
        """Those of some episodes that are of some time and have enough reward."""
        rows = await db.all(_Sql.find, ids=list(ids), since=since, until=until, reward_min=reward_min)
        return [Episode(*row) for row in rows]

    async def similar(
        self,
        db: Statements,
        vector: str,
        model: str,
        *,
        since: datetime,
        until: datetime | None,
        reward_min: float | None,
        min_similarity: float,
        limit: int,
    ) -> list[SimilarEpisode]:
        """Episodes near a vector in the model's space, the nearest first."""
        rows = await db.all(
            _Sql.similar,
            vector=vector,
            model=model,
            since=since,
            until=until,
            reward_min=reward_min,
            min_similarity=min_similarity,
            limit=limit,
        )
        return [SimilarEpisode(Episode(*fields), min(similarity, 1.0)) for *fields, similarity in rows]

    async def remove(self, tx: Transaction, episode_id: int) -> bool:
        """Delete one episode; False if there is none."""
        return await tx.first(_Sql.remove, episode_id=episode_id) is not None
