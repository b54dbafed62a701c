"""A cursor for tests that look at rows of the makers' table `store`, or move its times: the same rows of ours."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from recollect.background import Background
from recollect.engine import Engine
from recollect.settings import load
from recollect.storage.sql import Query


@asynccontextmanager
async def _engine() -> AsyncIterator[Engine]:
    engine = await Engine.open(load().model_copy(update={"indexer": False}))
    yield engine
    await engine.close()


_background = Background(_engine)


class Cursor:
    """Runs the makers' statements on our table, in one namespace."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._rows: list[Any] = []

    def execute(self, sql: str, values: Sequence[Any]) -> None:
        names = iter(f":value_{number}" for number in range(len(values)))
        ours = re.sub("%s", lambda _: next(names), sql.replace(" store ", " records "))
        ours = ours.replace("WHERE prefix =", "WHERE namespace = :namespace and array_to_string(path, '.') =")
        ours = ours.replace("(:value_0 *", "(:value_0::integer *")
        query = Query.named("makers.statement", ours)
        given = {f"value_{number}": value for number, value in enumerate(values)}

        async def run(engine: Engine) -> list[Any]:
            async with engine.database.transaction(self._namespace) as tx:
                return await tx.all(query, **given)

        self._rows = _background.call(run)

    def fetchone(self) -> Any:
        return self._rows[0]


class AsyncCursor:
    """The same for asynchronous tests."""

    def __init__(self, namespace: str) -> None:
        self._cursor = Cursor(namespace)

    async def execute(self, sql: str, values: Sequence[Any]) -> None:
        self._cursor.execute(sql, values)

    async def fetchone(self) -> Any:
        return self._cursor.fetchone()
