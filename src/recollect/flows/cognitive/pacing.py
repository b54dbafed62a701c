"""Pacing: turns to ask a model are handed out by the database, so that limits hold for all processes together."""

from datetime import timedelta

from recollect import origin
from recollect.errors import Unavailable
from recollect.inference.requests.limits import Limits, Turn
from recollect.memory.accounts.turns import ModelTurns
from recollect.storage.database import Database

# The process of a request notes its end. This is for processes that died.
EXPIRY_SECONDS = 10.0


class Pacing:
    """Spaces requests evenly, and counts those under way."""

    def __init__(self, database: Database, turns: ModelTurns) -> None:
        self._database = database
        self._turns = turns

    async def take(self, model: str, limits: Limits, within: float) -> Turn | None:
        """The next turn; None while too many requests are under way, Unavailable if it comes later than `within`."""
        with origin.own_work():
            async with self._database.shared_transaction() as tx:
                state = await self._turns.lock(tx, model)
                if state.under_way >= limits.at_once:
                    return None
                at = max(state.free_at, state.now)
                wait = (at - state.now).total_seconds()
                if wait > within:
                    raise Unavailable(
                        f"{model} accepts the next request in {wait:.0f} s, which is after this request's deadline"
                    )
                next_at = at + timedelta(seconds=1 / limits.per_second)
                expires_at = at + timedelta(seconds=within + EXPIRY_SECONDS)
                return Turn(model, await self._turns.start(tx, model, next_at, expires_at), wait)

    async def end(self, turn: Turn) -> None:
        """The request is over."""
        with origin.own_work():
            async with self._database.shared_transaction() as tx:
                await self._turns.finish(tx, turn.model, turn.id)

    async def postpone(self, model: str, seconds: float) -> None:
        """Let no request start for so many seconds."""
        with origin.own_work():
            async with self._database.shared_transaction() as tx:
                await self._turns.postpone(tx, model, seconds)
