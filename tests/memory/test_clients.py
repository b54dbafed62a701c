"""Clients that registered: those that nobody connects do not stay, however many there are."""

import pytest

from recollect.engine import Engine
from recollect.memory.accounts.clients import OAuthClients
from recollect.storage.sql import Query

CLIENTS = OAuthClients()
URIS = ["https://app.example.org/callback"]
AGE = Query.named(
    "test.age",
    "update oauth_clients set created_at = created_at - make_interval(days => :days), "
    "last_used_at = last_used_at - make_interval(days => :days) where namespace = :namespace and id = :id",
)


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_clients_that_nobody_connects_go_by_age_and_number(engine: Engine, namespace: str) -> None:
    # Here they are a namespace's: those of the deployment belong to other tests, too.
    async with engine.database.transaction(namespace) as tx:
        for name, days, used in (
            ("old", 31, False),
            ("older of two", 2, False),
            ("newer of two", 1, False),
            ("connected", 100, True),
            ("left long ago", 181, True),
        ):
            await CLIENTS.add(tx, name, name, URIS, None)
            if used:
                await CLIENTS.note_use(tx, name)
            await tx.all(AGE, id=name, days=days)
        await CLIENTS.remove_unused(tx, most=2, kept_seconds=3600, unused_days=30, idle_days=180)
        left = [
            name
            for name in ("old", "older of two", "newer of two", "connected", "left long ago")
            if await CLIENTS.find(tx, name)
        ]
        assert left == ["older of two", "newer of two", "connected"]
        await CLIENTS.remove_unused(tx, most=1, kept_seconds=3600, unused_days=30, idle_days=180)
        assert await CLIENTS.find(tx, "older of two") is None
        assert await CLIENTS.find(tx, "newer of two") is not None


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_new_client_is_kept_however_many_register_after_it(engine: Engine, namespace: str) -> None:
    names = ("an hour old", "new", "newer", "newest")
    async with engine.database.transaction(namespace) as tx:
        for name in names:
            await CLIENTS.add(tx, name, name, URIS, None)
        await tx.all(AGE, id="an hour old", days=1)
        assert await CLIENTS.count_unused(tx, 3600, most=5) == 3
        assert await CLIENTS.count_unused(tx, 3600, most=2) == 2
        await CLIENTS.remove_unused(tx, most=1, kept_seconds=3600, unused_days=30, idle_days=180)
        assert [name for name in names if await CLIENTS.find(tx, name)] == ["new", "newer", "newest"]
