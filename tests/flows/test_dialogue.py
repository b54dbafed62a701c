"""Raw dialogue: logged as it was said, and read back by session, time and speaker."""

from datetime import UTC, datetime, timedelta

import pytest

from recollect.engine import Engine
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from recollect.storage.sql import Query

DAY = datetime(2025, 1, 10, tzinfo=UTC)

SET_TIME = Query.named(
    "test.set_time", "update sessions set updated_at = :at where namespace = :namespace and id = :session_id"
)


async def test_dialogue_is_logged_with_its_speaker_and_opens_its_session(engine: Engine, namespace: str) -> None:
    message = await engine.cognition.store_dialogue(namespace, "conv", "user", "What is memory?", {"context": "x"})
    assert message.seq > 0
    assert (message.session_id, message.role, message.speaker) == ("conv", "user", "user")
    assert message.metadata == {"context": "x"}
    session = await engine.conversations.get(namespace, "conv")
    assert session.user_id == "anonymous"
    assert (await engine.conversations.history(namespace, "conv", 10)).messages == [message]


@pytest.mark.parametrize(
    ("speaker", "role"),
    [("assistant", "assistant"), ("System", "system"), ("Caroline", "user"), ("tool", "user"), ("ethr", "user")],
)
async def test_a_speaker_who_is_no_role_speaks_as_a_user(
    engine: Engine, namespace: str, speaker: str, role: str
) -> None:
    message = await engine.cognition.store_dialogue(namespace, "conv", speaker, "Hello.")
    assert (message.speaker, message.role) == (speaker, role)


async def test_dialogue_in_an_existing_session_leaves_its_owner(engine: Engine, namespace: str) -> None:
    session = await engine.conversations.create(namespace, "ann", None)
    await engine.cognition.store_dialogue(namespace, session.id, "user", "Hello.")
    assert (await engine.conversations.get(namespace, session.id)).user_id == "ann"


async def test_time_never_goes_backwards_inside_a_session(engine: Engine, namespace: str) -> None:
    await engine.cognition.store_dialogue(namespace, "conv", "user", "First.")
    ahead = datetime.now(UTC) + timedelta(hours=1)
    async with engine.database.transaction(namespace) as tx:
        await tx.all(SET_TIME, at=ahead, session_id="conv")
    message = await engine.cognition.store_dialogue(namespace, "conv", "user", "Second, by a clock that was put back.")
    assert message.created_at == ahead


async def three_days(engine: Engine, namespace: str) -> None:
    """A message a day: by a user, by an assistant who has a name, and by one who has none."""
    lines = [
        NewMessage("user", "first", speaker="user"),
        NewMessage("assistant", "second", speaker="Ada"),
        NewMessage("user", "third"),
    ]
    for number, line in enumerate(lines):
        dated = NewMessage(line.role, line.content, None, line.speaker, DAY + timedelta(days=number))
        session = "a" if number < 2 else "b"
        await engine.remember.turn(namespace, Turn(session, (dated,), owner_if_new="ann"))


async def test_raw_dialogue_is_read_by_every_filter(engine: Engine, namespace: str) -> None:
    await three_days(engine, namespace)

    async def read(**filters: object) -> list[str]:
        return [message.content for message in await engine.cognition.raw(namespace, **filters)]  # type: ignore[arg-type]

    assert await read() == ["third", "second", "first"]
    assert await read(order="asc") == ["first", "second", "third"]
    assert await read(limit=2) == ["third", "second"]
    assert await read(session_id="a") == ["second", "first"]
    assert await read(session_id="nowhere") == []
    assert await read(start=DAY, end=DAY + timedelta(days=1)) == ["second", "first"]
    assert await read(start=DAY + timedelta(microseconds=1)) == ["third", "second"]
    assert await read(end=DAY) == ["first"]
    assert await read(speaker="user") == ["third", "first"]
    assert await read(speaker="Ada") == ["second"]
    assert await read(speaker="assistant") == []
    assert await read(session_id="a", speaker="user", order="asc", limit=1) == ["first"]


async def test_messages_of_the_same_moment_keep_their_order(engine: Engine, namespace: str) -> None:
    lines = tuple(NewMessage("user", str(number), at=DAY) for number in range(5))
    await engine.remember.turn(namespace, Turn("talk", lines, owner_if_new="ann"))
    assert [message.content for message in await engine.cognition.raw(namespace, order="asc")] == list("01234")
    assert [message.content for message in await engine.cognition.raw(namespace)] == list("43210")
