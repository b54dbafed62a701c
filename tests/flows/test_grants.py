"""Grants: a key of one namespace may read another, for as long as that is granted, and change nothing there."""

from datetime import UTC, datetime, timedelta

import pytest

from recollect import origin
from recollect.engine import Engine
from recollect.errors import Forbidden, Invalid, NotFound
from recollect.flows.kinds.target import NAMESPACE, Target
from recollect.origin import Limits, Reach

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


async def reads(engine: Engine, secret: str) -> frozenset[str]:
    """What a key may read besides its namespace."""
    credential = await engine.access.credential(secret)
    assert credential is not None
    return credential.reach.granted


async def test_a_key_reads_what_it_is_granted_until_that_is_ended(engine: Engine, namespace: str) -> None:
    team = f"{namespace}-team"
    key = await engine.access.create_key(namespace, "assistant", "write")
    assert await reads(engine, key.secret) == frozenset()
    await engine.grants.grant(team, namespace, key.id)
    assert await reads(engine, key.secret) == {team}
    (reader,) = await engine.grants.readers(team, 10)
    assert (reader.key_namespace, reader.key_id, reader.label) == (namespace, key.id, "assistant")
    assert [each.namespace for each in (await engine.grants.held(namespace, [key.id]))[key.id]] == [team]
    await engine.grants.end(team, namespace, key.id)
    assert await reads(engine, key.secret) == frozenset()
    assert await engine.grants.readers(team, 10) == []
    with pytest.raises(NotFound, match="no grant to read"):
        await engine.grants.end(team, namespace, key.id)


async def test_the_audit_log_of_both_namespaces_names_the_key(engine: Engine, namespace: str) -> None:
    team = f"{namespace}-team"
    key = await engine.access.create_key(namespace)
    for change in (engine.grants.grant, engine.grants.end):
        with origin.touching() as touched:
            await change(team, namespace, key.id)
        one = {"event": "change" if change == engine.grants.grant else "delete", "kind": "grant"}
        assert touched.taken() == {
            team: [one | {"count": 1, "ids": [key.id]}],
            namespace: [{"event": "change", "kind": "key", "count": 1, "ids": [key.id]}],
        }


async def test_a_grant_that_has_expired_grants_nothing(engine: Engine, namespace: str) -> None:
    team = f"{namespace}-team"
    key = await engine.access.create_key(namespace)
    with pytest.raises(Invalid, match="must be in the future"):
        await engine.grants.grant(team, namespace, key.id, datetime(2020, 1, 1, tzinfo=UTC))
    await engine.grants.grant(team, namespace, key.id, datetime.now(UTC) + timedelta(days=1))
    assert await reads(engine, key.secret) == {team}
    async with engine.database.unscoped() as connection:
        await connection.execute("update key_grants set expires_at = now() where namespace = $1", team)
    engine.access.clear_cache()
    assert await reads(engine, key.secret) == frozenset()
    assert await engine.grants.readers(team, 10) == []
    assert await engine.grants.held(namespace, [key.id]) == {}


async def test_keys_of_users_limited_keys_and_keys_that_do_not_work_get_no_grant(
    engine: Engine, namespace: str
) -> None:
    team = f"{namespace}-team"
    own = await engine.access.create_key(namespace)
    user = await engine.access.create_user_key(namespace, "anna")
    limited = await engine.access.create_key(namespace, limits=Limits(user="anna"))
    revoked = await engine.access.create_key(namespace)
    await engine.access.revoke(namespace, revoked.id)
    for key_id, opened, category, said in (
        (user.id, team, Forbidden, "belongs to gateway user anna"),
        (limited.id, team, Forbidden, "is limited to one user or agent"),
        (revoked.id, team, NotFound, "no active key"),
        ("unknown", team, NotFound, "no active key unknown"),
        (own.id, namespace, Invalid, "reads it already"),
        (own.id, "not a namespace", Invalid, "namespace"),
    ):
        with pytest.raises(category, match=said):
            await engine.grants.grant(opened, namespace, key_id)
    assert await engine.grants.readers(team, 10) == []


async def test_a_rotated_key_keeps_its_grants_and_a_revoked_one_is_no_reader(engine: Engine, namespace: str) -> None:
    team = f"{namespace}-team"
    old = await engine.access.create_key(namespace)
    await engine.grants.grant(team, namespace, old.id)
    new = await engine.access.rotate(namespace, old.id, 3600)
    assert await reads(engine, new.secret) == await reads(engine, old.secret) == {team}
    await engine.access.revoke(namespace, old.id)
    assert [each.key_id for each in await engine.grants.readers(team, 10)] == [new.id]


async def test_over_http_nobody_gets_the_grants_of_another_key(engine: Engine, namespace: str) -> None:
    team = f"{namespace}-team"
    bot, admin = [await engine.access.create_key(namespace, label) for label in ("bot", "admin")]
    await engine.grants.grant(team, namespace, bot.id)
    with (
        origin.acting("rest", "admin", "admin", reach=Reach(namespace), key_id=admin.id),
        pytest.raises(Forbidden, match="only its holder can rotate it"),
    ):
        await engine.access.rotate(namespace, bot.id, 3600)
    with (
        origin.touching() as touched,
        origin.acting("rest", "bot", "admin", reach=Reach(namespace, frozenset({team})), key_id=bot.id),
    ):
        new = await engine.access.rotate(namespace, bot.id, 3600)
    assert touched.taken()[team] == [{"event": "change", "kind": "grant", "count": 1, "ids": [new.id]}]
    assert await reads(engine, new.secret) == {team}


async def test_grants_go_with_either_namespace(engine: Engine, namespace: str) -> None:
    team, other = f"{namespace}-team", f"{namespace}-other"
    keys = {place: await engine.access.create_key(place) for place in (namespace, other)}
    for place, key in keys.items():
        await engine.grants.grant(team, place, key.id)
    await engine.forget.forget(other, Target(NAMESPACE, other))
    assert [each.key_namespace for each in await engine.grants.readers(team, 10)] == [namespace]
    await engine.forget.forget(team, Target(NAMESPACE, team))
    assert await reads(engine, keys[namespace].secret) == frozenset()
    async with engine.database.unscoped() as connection:
        count = "select count(*) from key_grants where namespace = $1 or key_namespace = $2"
        assert await connection.fetchval(count, team, other) == 0


async def test_below_the_doors_a_caller_reaches_its_namespace_reads_what_is_granted_and_nothing_else(
    engine: Engine, namespace: str
) -> None:
    team, other = f"{namespace}-team", f"{namespace}-other"
    await engine.remember.text(team, "The office moves to Hamburg in May.")
    with origin.acting("rest", reach=Reach(namespace, frozenset({team}))):
        await engine.remember.text(namespace, "I like tea.")
        assert (await engine.recall.recall(team, "Where does the office move?")).memories
        with pytest.raises(Forbidden, match=f"may only read namespace {team}"):
            await engine.remember.text(team, "It moves to Bremen.")
        with pytest.raises(Forbidden, match=f"may only read namespace {team}"):
            await engine.grants.end(team, namespace, "any")
        with pytest.raises(Forbidden, match=f"Namespace {other} is not open to this key"):
            await engine.recall.recall(other, "Where does the office move?")
        with pytest.raises(Forbidden, match="is not open to this key"):
            await engine.remember.text(other, "It moves to Bremen.")
        with pytest.raises(Forbidden, match="is not open to this key"):
            await engine.grants.grant(other, namespace, "any")
    limited = origin.acting("rest", limits=Limits("anna"), reach=Reach(namespace))
    with limited, pytest.raises(Forbidden, match="limited to user anna, so use a key without limits"):
        await engine.recall.recall(namespace, "Where does the office move?", namespaces=[team])


async def test_only_an_admin_of_the_opened_namespace_ends_a_grant(engine: Engine, namespace: str) -> None:
    team = f"{namespace}-team"
    key = await engine.access.create_key(namespace)
    await engine.grants.grant(team, namespace, key.id)
    with origin.acting("console", role="write", reach=Reach(team)), pytest.raises(Forbidden, match="role admin"):
        await engine.grants.end(team, namespace, key.id)
    with origin.acting("console", role="admin", reach=Reach(team)):
        await engine.grants.end(team, namespace, key.id)
    assert await reads(engine, key.secret) == frozenset()
