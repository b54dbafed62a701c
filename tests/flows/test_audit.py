"""The audit log: a line for each operation, chained so that whatever happens to one is found."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recollect import origin
from recollect.engine import Engine
from recollect.errors import Forbidden, Invalid, NotFound, Unavailable
from recollect.flows.accounts.audit_trail import Verified
from recollect.flows.remember import Turn
from recollect.memory.accounts.audit import AuditFilter, Line
from recollect.memory.log import NewMessage
from recollect.origin import Limits
from recollect.settings import Settings

pytestmark = [
    pytest.mark.parametrize("pooling", ["session"], indirect=True),
    pytest.mark.unindexed("what is embedded does not matter here"),
]

# As a person at a prompt of psql would change it, who owns the tables.
CHANGED = "update audit_lines set author = 'somebody else' where namespace = $1 and number = 3"
TOUCHED = "update audit_lines set touched = '[]' where namespace = $1 and number = 3"
REMOVED = "delete from audit_lines where namespace = $1 and number = 3"
CUT = "delete from audit_lines where namespace = $1 and number > 4"
SWAPPED = """
update audit_lines l set action = o.action, touched = o.touched, hash = o.hash
from audit_lines o
where l.namespace = $1 and o.namespace = $1 and (l.number, o.number) in ((2, 3), (3, 2))
"""
INSERTED = """
insert into audit_lines select namespace, 6, at, key_id, author, door, action, outcome, request_id, touched, hash
from audit_lines where namespace = $1 and number = 5
"""
RENUMBERED = """
with moved as (delete from audit_lines where namespace = $1 and number = 5 returning *)
insert into audit_lines
select namespace, 6, at, key_id, author, door, action, outcome, request_id, touched, hash from moved
"""
BEGUN_LATER = "delete from audit_lines where namespace = $1 and number <= 2"
HEAD_SET_BACK = """
update audit_heads h set number = l.number, hash = l.hash
from audit_lines l
where h.namespace = $1 and l.namespace = $1 and l.number = 4
"""
ANCHOR_MOVED = """
update audit_heads h set anchor = l.number, anchor_hash = l.hash
from audit_lines l
where h.namespace = $1 and l.namespace = $1 and l.number = 2
"""


@pytest.fixture
async def audited(settings: Settings) -> AsyncIterator[Engine]:
    engine = await Engine.open(settings.model_copy(update={"audit": "all"}))
    yield engine
    await engine.close()


async def say(engine: Engine, namespace: str, text: str, session: str = "talk") -> UUID:
    turn = Turn(session, (NewMessage("user", text),), owner_if_new="ann")
    (message,) = await engine.remember.turn(namespace, turn)
    return message.id


async def operate(engine: Engine, namespace: str, times: int = 5) -> None:
    for number in range(times):
        async with engine.audit.operation(namespace, f"operation {number}"):
            await say(engine, namespace, f"It is {number} o'clock.")


async def lines(engine: Engine, namespace: str) -> list[Line]:
    """The oldest first."""
    return (await engine.audit_trail.page(namespace)).lines[::-1]


async def by_hand(engine: Engine, namespace: str, *statements: str) -> Verified:
    """The verdict after somebody with the right to do so has changed rows."""
    async with engine.database.transaction(namespace) as tx:
        for statement in statements:
            await tx._connection.execute(statement, namespace)
    return await engine.audit_trail.verify(namespace)


async def exported(engine: Engine, namespace: str) -> list[str]:
    return [line async for line in engine.audit_trail.exported(namespace)]


async def test_a_line_tells_who_did_what_to_which_items_and_never_their_content(
    audited: Engine, namespace: str
) -> None:
    with origin.acting("rest", "assistant", key_id="k1"):
        async with audited.audit.operation(namespace, "POST /stm"):
            message_id = await say(audited, namespace, "My password is swordfish.")
        async with audited.audit.operation(namespace, "POST /recall"):
            found = await audited.recall.recall(namespace, "What is the password?")
    wrote, read = await lines(audited, namespace)
    entry = wrote.entry
    assert (entry.key_id, entry.author, entry.door) == ("k1", "assistant", "rest")
    assert (entry.action, entry.outcome) == ("POST /stm", "done")
    added = [{"event": "add", "kind": "message", "count": 1, "ids": [str(message_id)]}]
    assert [each for each in entry.touched if each["kind"] == "message"] == added
    assert read.entry.touched == [{"event": "read", "kind": "message", "count": 1, "ids": [str(message_id)]}]
    assert len(found.memories) == 1
    assert not {"swordfish", "password"} & set("".join(await exported(audited, namespace)).lower().split())


async def test_lines_that_share_a_commit_keep_to_their_own_operations(audited: Engine, namespace: str) -> None:
    ids = {}

    async def one(number: int) -> None:
        with origin.acting("rest", f"key {number}"):
            async with audited.audit.operation(namespace, "store"):
                ids[f"key {number}"] = str(await say(audited, namespace, f"Text {number}", f"session {number}"))

    await asyncio.gather(*map(one, range(40)))
    kept = await lines(audited, namespace)
    assert [line.number for line in kept] == list(range(1, 41))
    told = {
        line.entry.author: [each["ids"] for each in line.entry.touched if each["kind"] == "message"] for line in kept
    }
    assert told == {author: [[message_id]] for author, message_id in ids.items()}
    assert (await audited.audit_trail.verify(namespace)).fault is None


async def test_a_refused_operation_has_a_line_and_nothing_is_written_while_the_log_is_off(
    audited: Engine, engine: Engine, namespace: str
) -> None:
    with pytest.raises(NotFound):
        async with audited.audit.operation(namespace, "get"):
            await audited.memories.get(namespace, "00000000-0000-7000-8000-000000000000")
    async with engine.audit.operation(namespace, "unaudited"):
        await say(engine, namespace, "Nobody notes this.")
    (line,) = await lines(audited, namespace)
    assert (line.entry.action, line.entry.outcome) == ("get", "refused")


async def test_who_gave_a_wrong_value_was_refused_whatever_noticed_it(audited: Engine, namespace: str) -> None:
    with pytest.raises(Invalid):
        async with audited.audit.operation(namespace, "ask"):
            raise Invalid("at must be a time") from ValueError("month must be in 1..12")
    with pytest.raises(ValueError, match="of the library"):
        async with audited.audit.operation(namespace, "get"):
            raise ValueError("of the library") from NotFound("There is no such item")
    with pytest.raises(RuntimeError):
        async with audited.audit.operation(namespace, "fall"):
            raise RuntimeError
    told = [(line.entry.action, line.entry.outcome) for line in await lines(audited, namespace)]
    assert told == [("ask", "refused"), ("get", "refused"), ("fall", "failed")]


async def test_of_changes_alone_reading_has_no_line(settings: Settings, namespace: str) -> None:
    engine = await Engine.open(settings.model_copy(update={"audit": "changes"}))
    try:
        async with engine.audit.operation(namespace, "write"):
            await say(engine, namespace, "Tea at four.")
        async with engine.audit.operation(namespace, "read"):
            await engine.recall.recall(namespace, "When is tea?")
        assert [line.entry.action for line in await lines(engine, namespace)] == ["write"]
    finally:
        await engine.close()


async def test_an_operation_fails_if_its_line_cannot_be_written(audited: Engine, namespace: str) -> None:
    await audited.audit.close()
    with pytest.raises(Unavailable, match="The audit log could not be written"):
        async with audited.audit.operation(namespace, "recall"):
            await audited.recall.recall(namespace, "Who reads this?")


async def test_another_namespace_that_is_touched_has_a_line_of_its_own(audited: Engine, namespace: str) -> None:
    other = f"{namespace}-other"
    async with audited.audit.operation(namespace, "two"):
        await say(audited, namespace, "Here.")
        await say(audited, other, "There.")
    assert [line.entry.action for line in await lines(audited, other)] == ["two"]
    (here,), (there,) = await lines(audited, namespace), await lines(audited, other)
    assert here.entry.touched != there.entry.touched


@pytest.mark.parametrize(
    ("statements", "number"),
    [
        ((CHANGED,), 3),
        ((TOUCHED,), 3),
        ((REMOVED,), 3),
        ((SWAPPED,), 2),
        ((INSERTED,), 6),
        ((RENUMBERED,), 5),
        ((CUT,), 5),
        ((BEGUN_LATER,), 1),
        ((ANCHOR_MOVED, BEGUN_LATER), 3),
    ],
    ids=["changed", "touched", "removed", "swapped", "inserted", "renumbered", "cut", "begun-later", "anchor-moved"],
)
async def test_what_is_done_to_lines_by_hand_is_found(
    audited: Engine, namespace: str, statements: tuple[str, ...], number: int
) -> None:
    await operate(audited, namespace)
    assert (await audited.audit_trail.verify(namespace)).fault is None
    verdict = await by_hand(audited, namespace, *statements)
    assert verdict.fault is not None
    assert verdict.number == number


async def test_an_earlier_export_finds_a_tail_that_was_cut_with_its_head_and_a_chain_that_was_made_anew(
    audited: Engine, namespace: str
) -> None:
    await operate(audited, namespace)
    before = await exported(audited, namespace)
    await operate(audited, namespace, 1)
    assert (await audited.audit_trail.verify(namespace, before)).fault is None
    verdict = await by_hand(audited, namespace, HEAD_SET_BACK, CUT)
    assert verdict.fault is None
    verdict = await audited.audit_trail.verify(namespace, before)
    assert verdict.number == 5
    # Whoever has all rights can begin again, with hashes that fit.
    await by_hand(
        audited,
        namespace,
        "delete from audit_lines where namespace = $1",
        "delete from audit_heads where namespace = $1",
    )
    await operate(audited, namespace, 7)
    assert (await audited.audit_trail.verify(namespace)).fault is None
    assert (await audited.audit_trail.verify(namespace, before)).number == 1


async def test_a_file_that_was_edited_or_is_of_elsewhere_proves_nothing(audited: Engine, namespace: str) -> None:
    await operate(audited, namespace, 3)
    file = await exported(audited, namespace)
    edited = [line.replace("operation 1", "operation 9") for line in file]
    for wrong, said in (
        (edited, "The file was changed at line 2"),
        (file[:-1], "The last lines of the file are missing"),
        (["{}"], "not an export"),
        (["no"], "not JSON"),
        ([json.dumps({"audit": 1, "namespace": "elsewhere"})], "of namespace elsewhere"),
    ):
        with pytest.raises(Invalid, match=said):
            await audited.audit_trail.verify(namespace, wrong)


async def test_pruning_keeps_a_chain_that_can_be_verified_and_says_who_pruned(audited: Engine, namespace: str) -> None:
    await operate(audited, namespace, 3)
    before = await exported(audited, namespace)
    await operate(audited, namespace, 3)
    third = (await lines(audited, namespace))[2]
    soon = datetime.now(UTC) + timedelta(days=1)
    with origin.acting("cli"):
        assert await audited.audit_trail.prune(namespace, third.at) == 2
    kept = await lines(audited, namespace)
    assert [line.number for line in kept] == [3, 4, 5, 6, 7]
    assert kept[-1].entry.action == "audit prune"
    assert (await audited.audit_trail.verify(namespace)).fault is None
    assert (await audited.audit_trail.verify(namespace, before)).fault is None
    with pytest.raises(NotFound):
        await audited.audit_trail.prune(namespace, third.at)
    assert await audited.audit_trail.prune(namespace, soon) == 5
    assert [line.number for line in await lines(audited, namespace)] == [8]
    assert (await audited.audit_trail.verify(namespace)).fault is None
    with pytest.raises(Invalid, match="have been pruned"):
        await audited.audit_trail.verify(namespace, before)
    verdict = await by_hand(audited, namespace, "update audit_heads set anchor = 0 where namespace = $1")
    assert verdict.fault is not None


async def test_only_an_admin_without_limits_reads_the_lines(audited: Engine, namespace: str) -> None:
    await operate(audited, namespace, 1)
    for rights in ({"role": "read"}, {"role": "write"}, {"limits": Limits(user="ann")}):
        with origin.acting("rest", **rights), pytest.raises(Forbidden):
            await audited.audit_trail.page(namespace)
        with origin.acting("rest", **rights), pytest.raises(Forbidden):
            await audited.audit_trail.verify(namespace)


async def test_lines_are_found_by_item_and_by_who_used_them_page_by_page(audited: Engine, namespace: str) -> None:
    await operate(audited, namespace, 5)
    with origin.acting("mcp", "curious"):
        async with audited.audit.operation(namespace, "recall"):
            (memory, *_) = (await audited.recall.recall(namespace, "Is it 3 o'clock?")).memories
    trail = audited.audit_trail
    found = await trail.page(namespace, AuditFilter(kind="message", item_id=memory.id))
    assert [line.number for line in found.lines] == [6, int(memory.text[6]) + 1]
    assert [line.number for line in (await trail.page(namespace, AuditFilter(by="curious"))).lines] == [6]
    first = await trail.page(namespace, limit=4)
    second = await trail.page(namespace, before=first.before, limit=4)
    assert [line.number for line in (*first.lines, *second.lines)] == [6, 5, 4, 3, 2, 1]
    assert second.before is None
