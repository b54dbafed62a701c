"""Databases of their own on the test server, for tests that must begin with an empty one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import asyncpg

from recollect.storage.embedded import Address, Lease

if TYPE_CHECKING:
    RawConnection = asyncpg.Connection[asyncpg.Record]
else:
    RawConnection = asyncpg.Connection


async def connect(address: Address, database: str | None = None, user: str | None = None) -> RawConnection:
    chosen = {"user": user or address.user, "database": database or address.database}
    return await asyncpg.connect(**address.target | chosen)


def url(address: Address, database: str, user: str | None = None) -> str:
    return f"postgresql://{user or address.user}@/{database}?host={address.socket_dir}&port={address.port}"


@asynccontextmanager
async def empty_database(server: Lease, *, extension: bool = True) -> AsyncIterator[str]:
    """A fresh database that the ordinary role owns; dropped at the end."""
    name = f"test_{uuid4().hex}"
    admin = await connect(server.superuser)
    try:
        await admin.execute(f"create database {name} owner {server.connection.user}")
        if extension:
            inside = await connect(server.superuser, name)
            await inside.execute("create extension vector")
            await inside.close()
        yield name
    finally:
        await admin.execute(f"drop database {name} with (force)")
        await admin.close()
