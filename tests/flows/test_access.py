"""Keys: shown once, stored as hashes, revoked for good."""

import asyncio

import pytest

from recollect.engine import Engine
from recollect.errors import AccessDenied, Conflict, NotFound


async def test_a_key_opens_its_namespace_and_no_other(engine: Engine, namespace: str) -> None:
    one = await engine.access.create_key(namespace, "laptop")
    two = await engine.access.create_key(f"{namespace}-other")
    for key, place in ((one, namespace), (two, f"{namespace}-other")):
        found = await engine.access.credential(key.secret)
        assert found is not None
        assert (found.namespace, found.key_id, found.user_id) == (place, key.id, None)


async def test_a_secret_is_stored_nowhere_and_printed_nowhere(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace)
    async with engine.database.unscoped() as connection:
        rows = await connection.fetch("select k::text as all_of_it from api_keys k where namespace = $1", namespace)
    assert len(rows) == 1
    assert key.secret not in rows[0]["all_of_it"]
    assert key.secret.rpartition("_")[2] not in repr(key)
    assert (await engine.access.keys(namespace))[0].id == key.id


@pytest.mark.parametrize("change", ["", "first", "last", "case", "longer", "shorter"])
async def test_a_secret_that_differs_anywhere_is_nobodys(engine: Engine, namespace: str, change: str) -> None:
    secret = (await engine.access.create_key(namespace)).secret
    forged = {
        "": "",
        "first": "x" + secret[1:],
        "last": secret[:-1] + ("a" if secret[-1] != "a" else "b"),
        "case": secret.swapcase(),
        "longer": secret + "a",
        "shorter": secret[:-1],
    }[change]
    assert await engine.access.credential(forged) is None


async def test_a_revoked_key_opens_nothing_and_cannot_be_revoked_again(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace)
    assert await engine.access.credential(key.secret)
    assert not await engine.access.is_open(namespace)
    await engine.access.revoke(namespace, key.id)
    assert await engine.access.credential(key.secret) is None
    assert await engine.access.is_open(namespace)
    with pytest.raises(NotFound, match=key.id):
        await engine.access.revoke(namespace, key.id)


async def test_a_key_of_another_namespace_cannot_be_revoked(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace)
    with pytest.raises(NotFound):
        await engine.access.revoke(f"{namespace}-other", key.id)
    assert await engine.access.credential(key.secret)


async def test_a_user_has_one_key_however_many_ask_at_once(engine: Engine, namespace: str) -> None:
    made = await asyncio.gather(
        *(engine.access.create_user_key(namespace, "alice") for _ in range(16)), return_exceptions=True
    )
    (key,) = [result for result in made if not isinstance(result, BaseException)]
    assert all(isinstance(result, Conflict) for result in made if isinstance(result, BaseException))
    holder = await engine.access.user_of("alice", key.secret)
    assert (holder.namespace, holder.user_id) == (namespace, "alice")
    # A user's key opens the gateway for that user, and does not guard the namespace.
    assert await engine.access.is_open(namespace)


async def test_a_user_is_admitted_only_by_both_halves_and_is_told_the_same_of_each(
    engine: Engine, namespace: str
) -> None:
    alice = await engine.access.create_user_key(namespace, "alice")
    bob = await engine.access.create_user_key(namespace, "bob")
    whole = await engine.access.create_key(namespace)
    said = set()
    for user_id, secret in (
        ("alice", bob.secret),
        ("bob", alice.secret),
        ("nobody", alice.secret),
        ("alice", "wrong"),
        ("", ""),
        ("", whole.secret),
        ("alice", whole.secret),
        ("\ud800", alice.secret),
        ("alice", "\ud800"),
    ):
        with pytest.raises(AccessDenied) as refusal:
            await engine.access.user_of(user_id, secret)
        said.add(str(refusal.value))
    assert len(said) == 1
    await engine.access.revoke(namespace, alice.id)
    with pytest.raises(AccessDenied):
        await engine.access.user_of("alice", alice.secret)
    again = await engine.access.create_user_key(namespace, "alice")
    assert await engine.access.user_of("alice", again.secret)
