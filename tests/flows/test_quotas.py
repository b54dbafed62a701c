"""Quotas: what a key or a user may ask for and store, counted for all processes together."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

import pytest

from recollect.engine import Engine
from recollect.errors import Forbidden, Invalid, NotFound
from recollect.flows.keyed.operations import PutRecord
from recollect.flows.kinds.target import Target
from recollect.flows.remember import Turn
from recollect.memory.accounts.access import Credential
from recollect.memory.accounts.quotas import Used
from recollect.memory.checkpoints import NewCheckpoint, Packed, Place, TaskWrites
from recollect.memory.documents import NewDocument
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.memory.windows import WindowConfig
from recollect.origin import Limits, acting, own_work
from recollect.quotas import UNLIMITED, Quota, QuotaReached, Subject
from recollect.settings import Settings
from tests.valkey import shared_url, with_redis


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


@asynccontextmanager
async def with_user_quota(settings: Settings, quota: Quota) -> AsyncIterator[Engine]:
    engine = await Engine.open(settings.model_copy(update={"user_quota": quota}))
    try:
        yield engine
    finally:
        await engine.close()


async def key(engine: Engine, namespace: str, quota: Quota, limits: Limits | None = None) -> Credential:
    made = await engine.access.create_key(namespace, "app", "write", limits=limits, quota=quota)
    found = await engine.access.credential(made.secret)
    assert found is not None
    return found


async def spender(engine: Engine, namespace: str, quota: Quota) -> Subject:
    found = await engine.quotas.admit(await key(engine, namespace, quota))
    assert found is not None
    return found


async def used(engine: Engine, namespace: str, subject: Subject) -> Used:
    keys = [each for each in await engine.access.keys(namespace) if each.id == subject.id]
    return (await engine.quotas.used(namespace, keys))[subject.id]


async def say(engine: Engine, namespace: str, session: str, *texts: str, user: str = "anonymous") -> None:
    await engine.remember.turn(namespace, Turn(session, tuple(NewMessage("user", text) for text in texts), user))


async def accepted(*work: Awaitable[object]) -> int:
    """How many of some writes were stored; the others were refused by a quota, and nothing else went wrong."""
    answers = await asyncio.gather(*work, return_exceptions=True)
    wrong = [each for each in answers if isinstance(each, BaseException) and not isinstance(each, QuotaReached)]
    assert not wrong
    return sum(not isinstance(each, BaseException) for each in answers)


async def test_a_key_stores_so_many_rows_a_day_and_a_refused_write_leaves_nothing(
    engine: Engine, namespace: str
) -> None:
    by = await spender(engine, namespace, Quota(rows_per_day=3))
    with acting("rest", "app", spender=by):
        await say(engine, namespace, "s", "One.", "Two.")
        with pytest.raises(
            QuotaReached, match=r"may store 3 rows per day and has used 2; this needs 2 more"
        ) as refused:
            await say(engine, namespace, "s", "Three.", "Four.")
        assert 0 < (refused.value.retry_after or 0) <= 86_400
        await engine.memories.add(namespace, "Three.", "fact", MemoryScope("anna"))
        with pytest.raises(QuotaReached):
            await engine.remember.text(namespace, "Four.")
    assert await used(engine, namespace, by) == Used(rows=3, bytes=len("One.Two.Three."))
    assert len(await engine.conversations.messages(namespace, "s", 10)) == 2
    assert (await engine.remember.text(namespace, "Four.")).what == "created"


async def test_bytes_are_those_of_the_texts_and_metadata_as_utf_8(engine: Engine, namespace: str) -> None:
    by = await spender(engine, namespace, Quota(bytes_per_day=100))
    with acting("rest", "app", spender=by):
        await engine.remember.documents(namespace, [NewDocument("Grüße", None, '{"a": "é"}')])
        assert await used(engine, namespace, by) == Used(rows=1, bytes=7 + 11)
        with pytest.raises(QuotaReached, match=r"may store 100 bytes per day, and this needs 101: send less") as one:
            await engine.remember.text(namespace, "x" * 101)
        assert one.value.retry_after is None
        with pytest.raises(QuotaReached, match=r"has used 18; this needs 90 more"):
            await engine.remember.text(namespace, "x" * 90)


async def test_what_a_record_is_found_by_counts_too(engine: Engine, namespace: str) -> None:
    by = await spender(engine, namespace, Quota(bytes_per_day=1000))
    with acting("rest", "app", spender=by):
        put = PutRecord(("p",), "k", 1, texts=["x" * 200, "y" * 100], vectors=[[0.5] * 10, [1.0] * 10])
        await engine.record_store.batch(namespace, [put, PutRecord(("p",), "l", "said")])
    assert await used(engine, namespace, by) == Used(rows=2, bytes=len('pk1pl"said"') + 300 + 20 * 4)


async def test_a_copied_thread_counts_like_the_first(settings: Settings, namespace: str) -> None:
    async with with_user_quota(settings, Quota(rows_per_day=100)) as engine:
        by = await spender(engine, namespace, Quota(bytes_per_day=10_000))
        place = Place("t", "", "1")
        value = Packed("bytes", b"x" * 1000)
        checkpoint = NewCheckpoint(place, None, value, {"a": "1"}, {"step": 1}, {"a": value}, "anna")
        with acting("rest", "app", spender=by):
            await engine.checkpoint_store.put(namespace, checkpoint)
            written = TaskWrites(place, "task", "", [(0, "a", value)])
            await engine.checkpoint_store.put_writes(namespace, written, replace=False)
            once = await used(engine, namespace, by)
            assert once.bytes == 3000 + len('{"a": "1"}{"step": 1}')
            await engine.checkpoint_store.copy(namespace, "t", "copy")
        assert await used(engine, namespace, by) == Used(rows=2 * once.rows, bytes=2 * once.bytes)
        assert (await engine.quotas.used_by_users(namespace, ["anna"]))["anna"].rows == 2


async def test_a_session_that_begins_with_its_window_counts(settings: Settings, namespace: str) -> None:
    for each in (settings, with_redis(settings, shared_url())):
        engine = await Engine.open(each)
        try:
            by = await spender(engine, namespace, Quota(rows_per_day=1))
            with acting("rest", "app", spender=by):
                await engine.windows.configure(namespace, "s", WindowConfig(max_messages=5))
                with pytest.raises(QuotaReached):
                    await engine.windows.configure(namespace, "t", WindowConfig(max_messages=5))
        finally:
            await engine.close()


async def test_a_refusal_says_what_is_used_by_now(engine: Engine, settings: Settings, namespace: str) -> None:
    by = await spender(engine, namespace, Quota(rows_per_day=10))
    other = await Engine.open(settings)
    try:
        with acting("rest", "app", spender=by):
            await say(engine, namespace, "s", *"abcd")
            await say(engine, namespace, "s", *"efgh")
            await say(other, namespace, "t", "i")
            for work in (
                say(engine, namespace, "s", *"1234567"),
                engine.remember.documents(namespace, [NewDocument(text, None, None) for text in "1234567"]),
            ):
                with pytest.raises(QuotaReached, match="has used 9; this needs 7 more"):
                    await work
    finally:
        await other.close()


async def test_what_is_stored_already_counts_once(engine: Engine, namespace: str) -> None:
    by = await spender(engine, namespace, Quota(rows_per_day=1))
    with acting("rest", "app", spender=by):
        for _ in range(3):
            await engine.remember.text(namespace, "The ferry leaves at nine.")
    assert (await used(engine, namespace, by)).rows == 1


async def test_however_many_write_at_once_no_more_is_stored_than_allowed(
    engine: Engine, settings: Settings, namespace: str
) -> None:
    busy, polite = (
        await spender(engine, namespace, Quota(rows_per_day=25)),
        await spender(engine, namespace, Quota(rows_per_day=1000)),
    )
    other = await Engine.open(settings)
    try:
        work = []
        for number in range(60):
            place = engine if number % 2 else other
            with acting("rest", "busy", spender=busy):
                work.append(asyncio.ensure_future(say(place, namespace, f"s{number % 7}", f"Message {number}.")))
            with acting("rest", "polite", spender=polite):
                work.append(asyncio.ensure_future(say(place, namespace, f"p{number % 7}", f"Message {number}.")))
        assert await accepted(*work[0::2]) == 25
        assert await accepted(*work[1::2]) == 60
    finally:
        await other.close()
    assert (await used(engine, namespace, busy)).rows == 25
    with own_work():
        found = [
            len(await engine.conversations.messages(namespace, f"{letter}{number}", 100))
            for letter in "sp"
            for number in range(7)
        ]
    assert (sum(found[:7]), sum(found[7:])) == (25, 60)


async def test_requests_are_counted_for_all_processes_together(
    engine: Engine, settings: Settings, namespace: str
) -> None:
    busy = await key(engine, namespace, Quota(requests_per_minute=200))
    polite = await key(engine, namespace, Quota(requests_per_minute=200))
    others = [await Engine.open(settings) for _ in range(2)]
    try:
        places = [engine, *others]
        for place in places:
            place.quotas.now = lambda: 6000.0
        assert await accepted(*(places[each % 3].quotas.admit(busy) for each in range(600))) == 200
        assert await accepted(*(places[each % 3].quotas.admit(polite) for each in range(100))) == 100
        with pytest.raises(
            QuotaReached, match=f"The key {busy.key_id} may make 200 requests per minute and has used 200"
        ):
            await engine.quotas.admit(busy)
        for place in places:
            place.quotas.now = lambda: 6060.0
        await engine.quotas.admit(busy)
    finally:
        for other in others:
            await other.close()


async def test_one_server_alone_lets_exactly_as_many_through(engine: Engine, namespace: str) -> None:
    credential = await key(engine, namespace, Quota(requests_per_minute=137))
    engine.quotas.now = lambda: 6000.0
    assert await accepted(*(engine.quotas.admit(credential) for _ in range(300))) == 137


async def test_one_user_cannot_fill_the_memory_of_all(settings: Settings, namespace: str) -> None:
    async with with_user_quota(settings, Quota(rows_per_day=2)) as engine:
        for text in ("One.", "Two."):
            await say(engine, namespace, "s", text, user="anna")
        for work in (
            say(engine, namespace, "s", "Three.", user="anna"),
            engine.memories.add(namespace, "Three.", "fact", MemoryScope("anna")),
            engine.remember.session(namespace, "another", "anna"),
        ):
            with pytest.raises(QuotaReached, match=r"User anna may store 2 rows per day and has used 2"):
                await work
        for _ in range(3):
            await say(engine, namespace, "t", "Nobody's.")
        await engine.memories.add(namespace, "Three.", "fact", MemoryScope("bob"))
        assert await engine.quotas.used_by_users(namespace, ["anna", "bob", "carl"]) == {
            "anna": Used(rows=2, bytes=8),
            "bob": Used(rows=1, bytes=6),
            "carl": Used(),
        }
        await engine.forget.forget(namespace, Target("user", "anna"))
        assert (await engine.quotas.used_by_users(namespace, ["anna"]))["anna"] == Used()


async def test_a_key_for_one_user_counts_for_both(settings: Settings, namespace: str) -> None:
    async with with_user_quota(settings, Quota(requests_per_minute=2, rows_per_day=2)) as engine:
        limits = Limits("anna")
        credential = await key(engine, namespace, Quota(rows_per_day=10), limits)
        engine.quotas.now = lambda: 6000.0
        by = await engine.quotas.admit(credential)
        await engine.quotas.admit(credential)
        with pytest.raises(QuotaReached, match=r"User anna may make 2 requests per minute"):
            await engine.quotas.admit(credential)
        with acting("rest", "app", "write", limits, spender=by):
            await say(engine, namespace, "s", "One.", "Two.")
            with pytest.raises(QuotaReached, match=r"User anna may store 2 rows"):
                await say(engine, namespace, "s", "Three.")


async def test_a_key_sets_what_differs_from_the_default(settings: Settings, namespace: str) -> None:
    engine = await Engine.open(settings.model_copy(update={"key_quota": Quota(None, 5, 1000)}))
    try:
        made = await engine.access.create_key(namespace, quota=Quota(rows_per_day=7))
        (stored,) = await engine.access.keys(namespace)
        assert engine.quotas.effective(stored) == Quota(None, 7, 1000)
        changed = await engine.quotas.change(namespace, made.id, {"requests_per_minute": 60, "rows_per_day": UNLIMITED})
        assert engine.quotas.effective(changed) == Quota(60, None, 1000)
        with pytest.raises(Invalid, match="rows_per_day"):
            await engine.quotas.change(namespace, made.id, {"rows_per_day": -1})
        found = await engine.access.credential((await engine.access.rotate(namespace, made.id, 0)).secret)
        assert found is not None
        assert found.quota == changed.quota
        user = await engine.access.create_user_key(namespace, "anna")
        for key_id, category, said in (
            (user.id, Forbidden, "belongs to gateway user anna and its quota is RECOLLECT_USER_QUOTA"),
            ("none", NotFound, "has no active key none"),
        ):
            with pytest.raises(category, match=said):
                await engine.quotas.change(namespace, key_id, {"rows_per_day": 1})
    finally:
        await engine.close()


async def test_a_raised_quota_holds_though_the_old_one_was_used_up(engine: Engine, namespace: str) -> None:
    by = await spender(engine, namespace, Quota(rows_per_day=1))
    with acting("rest", "app", spender=by):
        await engine.remember.text(namespace, "One.")
        with pytest.raises(QuotaReached):
            await engine.remember.text(namespace, "Two.")
    raised = await engine.quotas.change(namespace, by.id, {"rows_per_day": 2})
    lowered = Used(rows=2).described(Quota(rows_per_day=1))
    assert lowered == ["2 of 1 rows today"]
    assert Used(requests=5).described(Quota(requests_per_minute=0)) == ["0 of 0 requests this minute"]
    with acting("rest", "app", spender=by._replace(quota=raised.quota)):
        await engine.remember.text(namespace, "Two.")


async def test_no_quota_costs_no_statement(engine: Engine, namespace: str) -> None:
    credential = await key(engine, namespace, Quota())
    assert await engine.quotas.admit(credential) is None
    await say(engine, namespace, "s", "One.")
    now = datetime.now(UTC)
    async with engine.database.reading(namespace) as db:
        assert await engine.capabilities.quota_use.used(db, "key", [credential.key_id], now, now) == {}


@pytest.mark.parametrize(
    "text",
    [
        "rows_per_day",
        "rows_per_day=0",
        "rows=5",
        "rows_per_day=1, rows_per_day=2",
        "rows_per_day=1e3",
        "bytes_per_day=-1",
    ],
)
def test_a_quota_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="requests_per_minute=N, rows_per_day=N, bytes_per_day=N"):
        Quota.parse(text)


def test_a_quota_is_read_as_it_is_written() -> None:
    assert Quota.parse("requests_per_minute=600, bytes_per_day=5") == Quota(600, None, 5)
    assert replace(Quota.parse(" rows_per_day = 7 ,"), bytes_per_day=1) == Quota(None, 7, 1)


async def test_windows_in_redis_count_and_what_is_refused_does_not_reach_it(settings: Settings, namespace: str) -> None:
    engine = await Engine.open(with_redis(settings, shared_url()))
    try:
        by = await spender(engine, namespace, Quota(rows_per_day=1))
        with acting("rest", "app", spender=by):
            await engine.windows.add(namespace, "s", [NewMessage("user", "One.")])
            with pytest.raises(QuotaReached):
                await engine.windows.add(namespace, "s", [NewMessage("user", "Two.")])
        assert [message.content for message in await engine.windows.messages(namespace, "s")] == ["One."]
    finally:
        await engine.close()
