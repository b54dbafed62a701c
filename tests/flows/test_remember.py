"""Messages are written in one call, to sessions that others may begin, delete or take over meanwhile."""

from collections.abc import Awaitable, Callable, Collection
from typing import Any

import pytest

from recollect import origin
from recollect.engine import Engine
from recollect.flows import remember
from recollect.flows.remember import SessionNotFound, Turn
from recollect.flows.turns import AnalysedTurn
from recollect.memory.index.search import Scope
from recollect.memory.log import NewMessage
from recollect.memory.sessions import SessionOwner, Sessions
from recollect.settings import Settings
from recollect.storage.database import Statements

# The columns that say where a row is, when it was written, and not what it holds.
OF_THE_MOMENT = ("namespace", "id", "item_id", "head", "at", "queued_at", "seq", "created_at")

ORDERS = {"messages": "position", "passages": "id", "passage_words": "id", "passage_queue": "id"}


def said(session: str, *texts: str, by: str | None = "ann") -> Turn:
    return Turn(session, tuple(NewMessage("user", text) for text in texts), owner_if_new=by)


async def history(engine: Engine, namespace: str, session: str) -> list[tuple[int, str]]:
    async with engine.database.reading(namespace) as db:
        return [(each.position, each.content) for each in await engine.capabilities.log.recent(db, session, 100)]


async def owner_of(engine: Engine, namespace: str, session: str) -> str:
    async with engine.database.reading(namespace) as db:
        return (await engine.capabilities.sessions.owners_of(db, [session]))[session].user_id


async def found_by(engine: Engine, namespace: str, user: str, question: str) -> list[str]:
    found = await engine.recall.recall(namespace, question, Scope(owner=user))
    return [memory.text for memory in found.memories]


class Overtaken(Sessions):
    """Lets somebody else go first, just after a batch has looked whose its sessions are."""

    def __init__(self, overtake: Callable[[], Awaitable[object]]) -> None:
        self._overtake: Callable[[], Awaitable[object]] | None = overtake

    async def owners_of(self, db: Statements, session_ids: Collection[str]) -> dict[str, SessionOwner]:
        owners = await super().owners_of(db, session_ids)
        if self._overtake is not None:
            overtake, self._overtake = self._overtake, None
            await overtake()
        return owners


async def test_a_session_that_another_user_begins_meanwhile_is_that_users(engine: Engine, namespace: str) -> None:
    async def bob_begins() -> None:
        other = await Engine.open(engine.settings)
        await other.remember.turn(namespace, said("talk", "Bob keeps bees.", by="bob"))
        await other.close()

    engine.remember._sessions = Overtaken(bob_begins)
    await engine.remember.turn(namespace, said("talk", "The honey is dark.", by="ann"))
    assert await owner_of(engine, namespace, "talk") == "bob"
    assert await history(engine, namespace, "talk") == [(0, "Bob keeps bees."), (1, "The honey is dark.")]
    assert "The honey is dark." in await found_by(engine, namespace, "bob", "Is the honey dark?")


async def test_a_session_that_another_process_deleted_begins_anew(
    engine: Engine, namespace: str, settings: Settings
) -> None:
    await engine.remember.turn(namespace, said("talk", "Before."))
    other = await Engine.open(settings)
    await other.windows.delete(namespace, "talk")
    await engine.remember.turn(namespace, said("talk", "After."))
    assert await history(engine, namespace, "talk") == [(0, "After.")]
    await other.windows.delete(namespace, "talk")
    with pytest.raises(SessionNotFound, match="talk"):
        await engine.remember.turn(namespace, said("talk", "To nobody.", by=None))
    await other.close()


async def test_a_session_that_changed_hands_in_another_process_is_written_for_its_new_owner(
    engine: Engine, namespace: str, settings: Settings
) -> None:
    await engine.remember.turn(namespace, said("talk", "Ann has a cat.", by="ann"))
    other = await Engine.open(settings)
    await other.windows.delete(namespace, "talk")
    await other.remember.turn(namespace, said("talk", "Bob has a dog.", by="bob"))
    await other.close()
    await engine.remember.turn(namespace, said("talk", "The dog is called Rex.", by="ann"))
    assert "The dog is called Rex." in await found_by(engine, namespace, "bob", "What is the dog called?")
    assert await found_by(engine, namespace, "ann", "What is the dog called?") == []


async def test_a_turn_without_a_session_fails_alone(engine: Engine, namespace: str) -> None:
    turns = [said("here", "One."), said("nowhere", "Lost.", by=None), said("here", "Two.")]
    answers = await engine.remember._write_turns(
        namespace, [AnalysedTurn(turn, tuple(((),) * len(turn.messages)), origin.current()) for turn in turns]
    )
    assert [type(answer) for answer in answers] == [list, SessionNotFound, list]
    assert await history(engine, namespace, "here") == [(0, "One."), (1, "Two.")]


@pytest.mark.unindexed("it compares rows that an indexer would change")
async def test_messages_of_many_passages_are_written_like_others(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = " ".join(f"Sentence {number} tells of a day in the garden." for number in range(200))
    lines = (
        NewMessage("user", long, '{"a": [1, 2]}', "Anna"),
        NewMessage("assistant", "Short."),
        NewMessage("user", "…"),
    )
    apart = f"{namespace}-in-parts"
    await engine.remember.turn(namespace, Turn("talk", lines, owner_if_new="ann"))
    monkeypatch.setattr(remember, "_WRITTEN_AT_ONCE", 1)
    await engine.remember.turn(apart, Turn("talk", lines, owner_if_new="ann"))
    for table, order in ORDERS.items():
        at_once, in_parts = await rows(engine, namespace, table, order), await rows(engine, apart, table, order)
        assert at_once == in_parts, table
        assert len(at_once) >= len(lines), table


async def rows(engine: Engine, namespace: str, table: str, order: str) -> list[dict[str, Any]]:
    """What a table holds of a namespace; keys differ with the namespace, so they are counted."""
    async with engine.database.transaction(namespace) as tx:
        query = f"select t.* from {table} t where namespace = $1 order by {order}"
        found = await tx._connection.fetch(query, namespace)
    kept = [{name: value for name, value in row.items() if name not in OF_THE_MOMENT} for row in found]
    return [row | {"keys": len(row["keys"])} if "keys" in row else row for row in kept]
