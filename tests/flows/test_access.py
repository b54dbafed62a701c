"""Keys: shown once, stored as hashes, revoked for good."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from recollect.engine import Engine
from recollect.errors import AccessDenied, Conflict, Forbidden, Invalid, NotFound
from recollect.flows.forgetting.prune import not_changed_for
from recollect.flows.kinds.target import USER, Target
from recollect.flows.long_term.memory_requests import Change, Options
from recollect.flows.remember import Turn
from recollect.inference.requests.limits import Limits
from recollect.inference.requests.meter import Purpose, Tokens
from recollect.memory.accounts.access import Key
from recollect.memory.accounts.connections import NewConnection, StoredConnections
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.origin import ROLES, Role, acting, touching

A_DAY = 86_400.0

ONCE = pytest.mark.parametrize("pooling", ["session"], indirect=True)


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


@ONCE
@pytest.mark.parametrize("role", ROLES)
async def test_a_key_has_the_role_it_was_given(engine: Engine, namespace: str, role: Role) -> None:
    found = await engine.access.credential((await engine.access.create_key(namespace, role=role)).secret)
    assert found is not None
    assert found.role == role


@ONCE
@pytest.mark.parametrize("role", ["read", "write"])
async def test_only_an_admin_manages_keys(engine: Engine, namespace: str, role: Role) -> None:
    key = await engine.access.create_key(namespace)
    with acting("rest", "somebody", role):
        for refused in (
            engine.access.create_key(namespace),
            engine.access.create_user_key(namespace, "alice"),
            engine.access.rotate(namespace, key.id, A_DAY),
            engine.access.revoke(namespace, key.id),
            engine.access.remove_user(namespace, "alice"),
        ):
            with pytest.raises(Forbidden, match="needs a key with role"):
                await refused
    assert [each.revoked_at for each in await engine.access.keys(namespace)] == [None]


@ONCE
async def test_an_expired_key_opens_nothing_and_its_namespace_stays_closed(engine: Engine, namespace: str) -> None:
    now = datetime.now(UTC)
    for moment in (now, now - timedelta(days=1)):
        with pytest.raises(Invalid, match="in the future"):
            await engine.access.create_key(namespace, expires_at=moment)
    key = await engine.access.create_key(namespace, expires_at=now + timedelta(days=30))
    assert await engine.access.credential(key.secret)
    async with engine.database.unscoped() as connection:
        await connection.execute("update api_keys set expires_at = now() where namespace = $1", namespace)
    engine.access.clear_cache()
    assert await engine.access.credential(key.secret) is None
    assert not await engine.access.is_open(namespace)
    with pytest.raises(NotFound, match="no active key"):
        await engine.access.rotate(namespace, key.id, A_DAY)


@ONCE
async def test_a_rotated_key_works_beside_the_new_one_until_the_overlap_is_over(engine: Engine, namespace: str) -> None:
    in_a_month = datetime.now(UTC) + timedelta(days=30)
    old = await engine.access.create_key(namespace, "laptop", "write", in_a_month)
    new = await engine.access.rotate(namespace, old.id, A_DAY)
    for key in (old, new):
        found = await engine.access.credential(key.secret)
        assert found is not None
        assert (found.label, found.role) == ("laptop", "write")
    until = {key.id: key.expires_at for key in await engine.access.keys(namespace) if key.expires_at is not None}
    assert until[new.id] >= in_a_month
    assert abs(until[old.id] - datetime.now(UTC) - timedelta(days=1)) < timedelta(hours=1)
    again = await engine.access.rotate(namespace, old.id, 0)
    assert again.expires_at is not None
    assert again.expires_at >= in_a_month, "for as long as the first, though that was to end sooner"
    assert await engine.access.credential(old.secret) is None
    user = await engine.access.create_user_key(namespace, "alice")
    for unknown in (old.id, "ffffffff"):
        with pytest.raises(NotFound, match=f"has no active key {unknown}: see `recollect keys list --namespace"):
            await engine.access.rotate(namespace, unknown, A_DAY)
        with pytest.raises(NotFound, match=f"has no active key {unknown}: see `recollect keys list --namespace"):
            await engine.quotas.change(namespace, unknown, {})
    with pytest.raises(Forbidden, match="belongs to gateway user alice and cannot be rotated"):
        await engine.access.rotate(namespace, user.id, A_DAY)
    with pytest.raises(Forbidden, match="belongs to gateway user alice and its quota is RECOLLECT_USER_QUOTA"):
        await engine.quotas.change(namespace, user.id, {"rows_per_day": 5})
    with pytest.raises(Invalid, match="overlap"):
        await engine.access.rotate(namespace, new.id, 1e10)


@ONCE
async def test_a_key_without_an_end_is_replaced_by_such_keys_however_often(engine: Engine, namespace: str) -> None:
    old = await engine.access.create_key(namespace)
    for _ in range(2):
        assert (await engine.access.rotate(namespace, old.id, A_DAY)).expires_at is None


@ONCE
async def test_a_revocation_is_noted_under_the_id_of_the_key(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace)
    assert await engine.access.sign_in(key.secret) is not None
    async with engine.database.unscoped() as connection:
        # So that the row of the browser comes first.
        await connection.execute(
            "update api_keys set label = 'moved' where namespace = $1 and id = $2", namespace, key.id
        )
    with touching() as touched:
        await engine.access.revoke(namespace, key.id)
    (noted,) = touched.taken()[namespace]
    assert noted["ids"] == [key.id]


@ONCE
async def test_connections_of_a_forgotten_person_go_with_the_key(engine: Engine, namespace: str) -> None:
    key = await engine.access.key_of_person(namespace, "anna")
    stored = StoredConnections()
    new = NewConnection(
        "c1", key.key_id, "oc_1", "Notes", "https://x.example/back", "https://y.example/mcp", "h", "read"
    )
    async with engine.database.transaction(namespace) as tx:
        await stored.add(tx, new)
        await stored.add_token(tx, new.id, b"hash", "refresh", "read", A_DAY)
    await engine.forget.forget(namespace, Target(USER, "anna"))
    async with engine.database.unscoped() as connection:
        for table in ("connections", "connection_tokens"):
            assert await connection.fetchval(f"select count(*) from {table} where namespace = $1", namespace) == 0


@ONCE
async def test_the_last_use_of_a_key_is_noted_once_a_minute(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace, role="read")

    async def used(after: datetime | None) -> Key:
        engine.access.clear_cache()
        with acting("rest", "a reader", "read"):
            assert await engine.access.credential(key.secret)
        async with asyncio.timeout(60):
            while True:
                (held,) = await engine.access.keys(namespace)
                if held.last_used_at != after:
                    return held

    first = (await used(None)).last_used_at
    engine.access.clear_cache()
    assert await engine.access.credential(key.secret)
    async with engine.database.unscoped() as connection:
        earlier = await connection.fetchval(
            "update api_keys set last_used_at = last_used_at - interval '1 hour' where namespace = $1 "
            "returning last_used_at",
            namespace,
        )
    assert first is not None
    assert earlier == first - timedelta(hours=1)
    again = (await used(earlier)).last_used_at
    assert again is not None
    assert again > first


@ONCE
async def test_writers_and_readers_at_once_each_have_their_own_role(engine: Engine, namespace: str) -> None:
    async def says(number: int, role: Role) -> int:
        with acting("rest", f"{role} {number}", role):
            await engine.remember.turn(namespace, Turn(f"s{number}", (NewMessage("user", "hello"),), "anna"))
        return number

    said = await asyncio.gather(
        *(says(number, "read" if number % 2 else "write") for number in range(16)), return_exceptions=True
    )
    assert [number for number in said if isinstance(number, int)] == list(range(0, 16, 2))
    assert all(isinstance(problem, Forbidden) for problem in said if not isinstance(problem, int))


@ONCE
async def test_what_a_readers_question_costs_is_charged(engine: Engine, namespace: str) -> None:
    with acting("rest", "a reader", "read"):
        for used in (Tokens(5, 0), None):
            reserved = await engine.spending.reserve(Purpose(namespace, "tests", "a model"), 10)
            await (engine.spending.release(reserved) if used is None else engine.spending.settle(reserved, used))
        model = f"model of {namespace}"
        turn = await engine.pacing.take(model, Limits(1000, 1), 10)
        assert turn is not None
        await engine.pacing.postpone(model, 0)
        await engine.pacing.end(turn)
    assert await engine.spending.spent_today(namespace) == 5


@ONCE
async def test_a_writer_may_not_delete_even_where_there_is_nothing(engine: Engine, namespace: str) -> None:
    with acting("rest", "a writer", "write"):
        for refused in (
            engine.clearing.clear(namespace, MemoryScope("anna")),
            engine.prune.prune(namespace, not_changed_for(A_DAY)),
            engine.sessions.pop(namespace, "s"),
            engine.sessions.clear(namespace, "s"),
            engine.sessions.delete(namespace, "s"),
            engine.windows.delete(namespace, "s"),
            engine.entities.delete(namespace, ["nothing"]),
        ):
            with pytest.raises(Forbidden, match="role admin"):
                await refused


@ONCE
async def test_a_browser_that_signs_in_elsewhere_is_no_longer_signed_in_here(engine: Engine, namespace: str) -> None:
    here, elsewhere = [await engine.access.create_key(where, None) for where in (namespace, f"{namespace}-2")]
    first = await engine.access.sign_in(here.secret)
    assert first is not None
    assert await engine.access.browser(first) is not None
    second = await engine.access.sign_in(elsewhere.secret, first)
    assert second is not None
    assert await engine.access.browser(first) is None
    signed_in = await engine.access.browser(second)
    assert signed_in is not None
    assert signed_in.namespace == f"{namespace}-2"


@ONCE
async def test_a_writer_may_not_let_a_memory_end_sooner(engine: Engine, namespace: str) -> None:
    """It would erase what somebody has stored, only later."""
    now = datetime.now(UTC)
    sooner, later = now + timedelta(days=1), now + timedelta(days=9)
    added = await engine.memories.add(namespace, "Ann lives in Rome.", "fact", MemoryScope("anna"))
    memory_id = str(added.memory.id)
    with acting("rest", "a writer", "write"), pytest.raises(Forbidden, match="role admin"):
        await engine.memories.update(namespace, memory_id, Change(details={"expires_at": later}))
    await engine.memories.update(namespace, memory_id, Change(details={"expires_at": sooner}))
    with acting("rest", "a writer", "write"):
        changed = await engine.memories.update(namespace, memory_id, Change(details={"expires_at": later}))
        assert changed.memory.expires_at == later
        with pytest.raises(Forbidden, match="role admin"):
            await engine.memories.update(namespace, memory_id, Change(details={"expires_at": sooner}))
        own = await engine.memories.add(
            namespace, "Ann has a cat.", "fact", MemoryScope("anna"), options=Options(expires_at=later)
        )
        assert own.memory.expires_at == later
