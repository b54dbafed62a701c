"""Puts ours in the place of the sessions that the SDK's own tests build, each file of theirs being a namespace."""

from typing import Any
from uuid import uuid4

import agents
import agents.extensions.memory

from recollect.adapters.connection import Connection
from recollect.adapters.openai_agents import RecollectSession

_connections: dict[str, Connection] = {}

# Each is an engine with connections to the database of its own.
MOST = 5


def _connection(db_path: object) -> Connection:
    place = str(uuid4()) if str(db_path) == ":memory:" else str(db_path)
    if place not in _connections:
        if len(_connections) > MOST:
            # It opens again if it is called once more.
            _connections[list(_connections)[-MOST]].close()
        _connections[place] = Connection(namespace=f"suite-{uuid4()}")
    return _connections[place]


class SQLiteSession(RecollectSession):
    """Named and built as the SDK's session over SQLite; the connection outlives it, as a file does."""

    def __init__(self, session_id: str, db_path: object = ":memory:", **options: Any) -> None:
        super().__init__(session_id, connection=_connection(db_path), **options)


class AsyncSQLiteSession(SQLiteSession):
    """The same, closed as the asynchronous one is."""

    async def close(self) -> None:  # type: ignore[override]
        super().close()


agents.SQLiteSession = SQLiteSession  # type: ignore[misc, assignment]
agents.extensions.memory.AsyncSQLiteSession = AsyncSQLiteSession
