"""The yardstick of the REST benchmark: FastAPI and asyncpg running our SQL, with nothing around it."""

import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from benchmarks.spine import raw_append
from recollect.memory.memories import _Sql as memories_sql
from recollect.storage import embedded


class Message(BaseModel):
    role: str
    content: str
    metadata: dict[str, Any] | None = None


class Messages(BaseModel):
    messages: list[Message]


class Added(BaseModel):
    session_id: str
    added: int
    messages: list[Message]


class Memory(BaseModel):
    id: str
    memory: str
    metadata: dict[str, Any]
    created_at: Any
    updated_at: Any


def bare_app(target: dict[str, Any]) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with asyncpg.create_pool(
            **target, min_size=10, max_size=10, init=_prepare, reset=_keep
        ) as app.state.pool:
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/stm/{session_id}/messages")
    async def add(session_id: str, body: Messages) -> Added:
        async with app.state.pool.acquire() as connection:
            await raw_append(connection, session_id, [(message.role, message.content) for message in body.messages])
        return Added(session_id=session_id, added=len(body.messages), messages=body.messages)

    @app.get("/ltm/memories/{memory_id}")
    async def get(memory_id: str) -> Memory:
        async with app.state.pool.acquire() as connection:
            row = await connection.fetchrow(memories_sql.find.text, "default", [UUID(memory_id)])
        return Memory(
            id=str(row["id"]),
            memory=row["text"],
            metadata={"category": row["category"]},
            created_at=row["created_at"],
            updated_at=row["updated_at"],
        )

    return app


async def _prepare(connection: Any) -> None:
    await connection.execute("select set_config('recollect.namespace', 'default', false)")


async def _keep(connection: Any) -> None:
    """The namespace must stay set, as it does with us."""


def main(home: str) -> None:
    with embedded.start(Path(home)) as lease, socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(512)
        print(listener.getsockname()[1], flush=True)
        config = uvicorn.Config(bare_app(dict(lease.connection.target)), log_config=None, access_log=False)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])
