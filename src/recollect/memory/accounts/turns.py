"""Turns: when each model may be called next, and how many requests to it are under way, across all processes."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.identifiers import uuid7
from recollect.storage.database import Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="turns.sql"):
    lock: Query
    under_way: Query
    advance: Query
    postpone: Query
    start: Query
    finish: Query


@dataclass(frozen=True, slots=True)
class ModelState:
    """Where a model stands, by the database's clock, because those of machines differ."""

    now: datetime
    free_at: datetime
    under_way: int


class ModelTurns:
    """Keeps the time of each model's next request, and its requests under way; the limits are the flow's to know."""

    async def lock(self, tx: Transaction, model: str) -> ModelState:
        """Lock a model until the transaction ends, and say where it stands."""
        free_at = (await tx.one(_Sql.lock, model=model))["free_at"]
        row = await tx.one(_Sql.under_way, model=model)
        return ModelState(row["now"], free_at, row["requests"])

    async def start(self, tx: Transaction, model: str, next_at: datetime, expires_at: datetime) -> UUID:
        """Note a request, and when the next one may start."""
        request_id = uuid7()
        await tx.all(_Sql.advance, model=model, next_at=next_at)
        await tx.all(_Sql.start, model=model, request_id=request_id, expires_at=expires_at)
        return request_id

    async def finish(self, tx: Transaction, model: str, request_id: UUID) -> None:
        """Note that a request is over."""
        await tx.all(_Sql.finish, model=model, request_id=request_id)

    async def postpone(self, tx: Transaction, model: str, seconds: float) -> None:
        """Let no request start for so many seconds."""
        await tx.all(_Sql.postpone, model=model, seconds=seconds)
