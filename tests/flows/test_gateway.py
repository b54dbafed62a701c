"""The gateway's flow: whose a chat is when several want it, what a flush waits for, and resources that change."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.engine import Engine
from recollect.errors import Invalid, NotFound, Unavailable
from recollect.flows.gateway import SCOPES, Owner, Said
from recollect.flows.remember import SessionTaken, Turn
from recollect.identifiers import uuid_at, uuid_of
from recollect.memory.index.search import Scope
from recollect.memory.log import NewMessage
from recollect.memory.sessions import Sessions
from recollect.memory.windows import WindowConfig
from recollect.storage.database import Transaction
from recollect.storage.sql import Query
from tests.memory.test_passages import TABLES, counts, statistics

names = st.text(min_size=1, max_size=20)
pairs = st.tuples(names, names)

WAITING = Query.named("test.waiting", "select id from passage_queue where namespace = :namespace for update")


def said(*texts: str, sender: str = "ann") -> list[Said]:
    return [Said(sender, "user", 1780000000000 + number, text) for number, text in enumerate(texts)]


async def texts(engine: Engine, owner: Owner, query: str, *scopes: str, chat: str = "1") -> list[str]:
    found = await engine.gateway.search(owner, query, scopes or SCOPES, conversation_id=chat)
    return sorted(each.memory.text for each in found)


async def positions(engine: Engine, namespace: str, session_id: str) -> list[tuple[int, str]]:
    async with engine.database.reading(namespace) as db:
        return [
            (message.position, message.content) for message in await engine.capabilities.log.recent(db, session_id, 100)
        ]


@given(pairs, pairs)
def test_no_two_apps_and_projects_share_a_realm(one: tuple[str, str], other: tuple[str, str]) -> None:
    realms = {Owner("n", "ann", *pair).realm for pair in (one, other)}
    assert len(realms) == len({one, other})


def test_the_default_app_and_project_are_where_other_doors_write() -> None:
    assert Owner("n", "ann").realm == ""
    assert Owner("n", "ann", "default", "other").realm != ""


@given(st.integers(0, 2**48 - 1), st.lists(names, max_size=4))
def test_the_id_of_a_message_follows_from_its_content_and_grows_with_its_time(
    milliseconds: int, parts: Sequence[str]
) -> None:
    made = uuid_at(milliseconds, *parts)
    assert made == uuid_at(milliseconds, *parts)
    assert made != uuid_at(milliseconds, *parts, "")
    assert made.int >> 80 == milliseconds
    assert {made.version, uuid_of(*parts).version} == {8}


async def test_users_who_race_for_a_chat_get_one_each(engine: Engine, namespace: str) -> None:
    owners = [Owner(namespace, f"user {n}", project_id=f"project {n % 2}") for n in range(8)]
    await asyncio.gather(
        *(engine.gateway.add(owner, "chat:1", said(f"Tea for {owner.user_id}.")) for owner in owners for _ in range(2))
    )
    for owner in owners:
        assert await texts(engine, owner, "tea", "current_chat") == [f"Tea for {owner.user_id}."]
        assert await texts(engine, owner, "tea", "all_user_memory") == [f"Tea for {owner.user_id}."]
        assert len(await positions(engine, namespace, owner.stored("chat:1"))) == 1
    assert await positions(engine, namespace, "chat:1") == []


async def test_nobody_takes_the_id_that_another_will_need(engine: Engine, namespace: str) -> None:
    ann, bob, mallory = (Owner(namespace, user) for user in ("ann", "bob", "mallory"))
    await engine.gateway.add(mallory, f"chat:1{ann.mark}", said("Tea for mallory."))
    for owner in (bob, ann):
        await engine.gateway.add(owner, "chat:1", said(f"Tea for {owner.user_id}."))
        assert await texts(engine, owner, "tea", "current_chat") == [f"Tea for {owner.user_id}."]
    (found,) = await engine.gateway.search(mallory, "tea", ["current_chat"], conversation_id=f"1{ann.mark}")
    assert (found.session_id, found.memory.text) == (f"chat:1{ann.mark}", "Tea for mallory.")


async def test_no_door_but_the_gateway_opens_or_writes_to_a_chat(engine: Engine, namespace: str) -> None:
    ann = Owner(namespace, "ann")
    stored = ann.stored("chat:1")
    line = NewMessage("user", "Tea.")
    for attempt in (
        engine.remember.turn(namespace, Turn(stored, (line,), owner_if_new="ann")),
        engine.remember.session(namespace, stored, "ann"),
        engine.windows.add(namespace, stored, [line]),
        engine.windows.configure(namespace, stored, WindowConfig()),
    ):
        with pytest.raises(Invalid, match="is a gateway chat: only its user"):
            await attempt
    assert await positions(engine, namespace, stored) == []


async def test_a_turn_for_anothers_session_fails_alone_and_leaves_no_gap(engine: Engine, namespace: str) -> None:
    await engine.remember.turn(namespace, Turn("chat:1", (NewMessage("user", "First."),), owner_if_new="bob"))
    turns = [
        Turn("chat:1", (NewMessage("user", "Bob's."),), owner_if_new="bob", realm=""),
        Turn("chat:1", (NewMessage("user", "Ann's."),), owner_if_new="ann", realm=""),
        Turn("chat:1", (NewMessage("user", "Bob's elsewhere."),), owner_if_new="bob", realm="elsewhere"),
        Turn("chat:1", (NewMessage("user", "Anybody's."),)),
        Turn("nowhere", (NewMessage("user", "Nobody's."),)),
    ]
    answers = await asyncio.gather(*(engine.remember.turn(namespace, turn) for turn in turns), return_exceptions=True)
    assert [type(answer) for answer in answers[1:3]] == [SessionTaken, SessionTaken]
    assert isinstance(answers[4], NotFound)
    written = await positions(engine, namespace, "chat:1")
    assert [position for position, _ in written] == [0, 1, 2]
    assert {text for _, text in written} == {"First.", "Bob's.", "Anybody's."}


class Overtaken(Sessions):
    """Lets somebody else write just before a batch begins its sessions."""

    def __init__(self, overtake: Callable[[], Awaitable[object]]) -> None:
        self._overtake: Callable[[], Awaitable[object]] | None = overtake

    async def open(self, tx: Transaction, owners: Mapping[str, str], realms: Mapping[str, str] | None = None) -> None:
        if self._overtake is not None:
            overtake, self._overtake = self._overtake, None
            await overtake()
        await super().open(tx, owners, realms)


async def test_a_chat_that_begins_with_the_same_messages_meanwhile_has_them_once(
    engine: Engine, namespace: str
) -> None:
    ann = Owner(namespace, "ann")
    engine.remember._sessions = Overtaken(lambda: engine.gateway.add(ann, "chat:1", said("One.", "Two.")))
    added = await engine.gateway.add(ann, "chat:1", said("One.", "Two.", "Three."))
    assert (added.added, added.duplicates) == (1, 2)
    assert await positions(engine, namespace, ann.stored("chat:1")) == [(0, "One."), (1, "Two."), (2, "Three.")]


async def test_repeated_and_new_messages_at_once_leave_no_gap(engine: Engine, namespace: str) -> None:
    ann = Owner(namespace, "ann")
    stored = ann.stored("chat:1")
    lines = [Turn(stored, (NewMessage("user", f"Without an id {n}."),), owner_if_new="ann", realm="") for n in range(8)]
    await asyncio.gather(
        *(engine.gateway.add(ann, "chat:1", said(*(f"Message {m}." for m in range(n)))) for n in range(1, 9)),
        *(engine.remember.turn(namespace, line) for line in lines),
    )
    written = await positions(engine, namespace, stored)
    assert [position for position, _ in written] == list(range(16))
    assert len({text for _, text in written}) == 16


@pytest.mark.unindexed("it counts what waits")
async def test_a_flush_gives_one_session_its_meaning_and_leaves_the_others_to_the_indexer(
    engine: Engine, namespace: str
) -> None:
    ann = Owner(namespace, "ann")
    await engine.gateway.add(ann, "chat:1", said(*(f"Message {n}." for n in range(40))))
    await engine.gateway.add(ann, "chat:2", said("Another chat."))
    await engine.gateway.add(Owner(namespace, "bob"), "chat:1", said("Another user."))
    await engine.gateway.flush(ann, "chat:1")
    assert await counts(engine, namespace) == {
        "passages": 42,
        "passage_words": 42,
        "passage_vectors": 40,
        "passage_queue": 2,
    }
    await engine.gateway.flush(ann, "chat:1")
    await engine.indexer.flush(namespace)
    assert (await counts(engine, namespace))["passage_vectors"] == 42


@pytest.mark.unindexed("the other indexer is the test itself")
async def test_a_flush_waits_for_another_indexer_but_not_for_ever(engine: Engine, namespace: str) -> None:
    ann = Owner(namespace, "ann")
    await engine.gateway.add(ann, "chat:1", said("Tea."))
    async with engine.database.transaction(namespace) as tx:
        await tx.all(WAITING)
        with pytest.raises(Unavailable, match="flush again"):
            await engine.indexer.flush_session(namespace, "ann", ann.stored("chat:1"), within_seconds=0.1)
        waiting = asyncio.create_task(engine.gateway.flush(ann, "chat:1"))
    await waiting
    assert (await counts(engine, namespace))["passage_queue"] == 0


async def test_without_a_model_there_is_nothing_to_wait_for(engine: Engine, namespace: str) -> None:
    engine.embedders.local = None
    ann = Owner(namespace, "ann")
    await engine.gateway.add(ann, "chat:1", said("Tea."))
    await engine.gateway.flush(ann, "chat:1")
    assert await texts(engine, ann, "tea") == ["Tea."]


async def test_a_resource_that_is_replaced_leaves_nothing_of_its_old_text(engine: Engine, namespace: str) -> None:
    ann = Owner(namespace, "ann")
    short, long = "Cats sleep.", "Dogs bark all night, and nobody sleeps. " * 60
    first = await engine.gateway.put_resource(ann, "r:1", short, metadata={"n": 1})
    before = await counts(engine, namespace), await statistics(engine, namespace)
    assert not first.resource.replaced
    second = await engine.gateway.put_resource(ann, "r:1", long, "On dogs")
    assert (second.resource.id, second.resource.replaced) == (first.resource.id, True)
    assert (second.resource.metadata, second.embedding_status) == (None, "success")
    assert (await counts(engine, namespace))["passage_vectors"] > 1
    await engine.gateway.put_resource(ann, "r:1", short)
    assert (await counts(engine, namespace), await statistics(engine, namespace)) == before
    assert await texts(engine, ann, "dogs that bark or cats") == [short]


@pytest.mark.unindexed("it needs a resource that still waits to be embedded")
async def test_a_long_resource_is_found_by_its_words_before_it_has_its_meaning(engine: Engine, namespace: str) -> None:
    ann = Owner(namespace, "ann")
    text = " ".join(f"House number {n} has a dog that barks all night." for n in range(1000))
    put = await engine.gateway.put_resource(ann, "r:1", text, "On dogs")
    assert put.embedding_status == "pending"
    (found,) = await engine.gateway.search(ann, "house number 444", ["resources"])
    assert "House number 444 has" in found.memory.text
    assert found.resource == put.resource


async def test_many_writers_of_one_resource_leave_the_text_of_one(engine: Engine, namespace: str) -> None:
    ann = Owner(namespace, "ann")
    await asyncio.gather(*(engine.gateway.put_resource(ann, "r:1", f"Cats, version {n}.") for n in range(8)))
    assert len(await texts(engine, ann, "cats", "resources")) == 1
    assert await counts(engine, namespace) == dict.fromkeys(TABLES, 1) | {"passage_queue": 0}


async def test_a_resource_is_forgotten_with_everything_by_which_it_was_found(engine: Engine, namespace: str) -> None:
    ann = Owner(namespace, "ann")
    put = await engine.gateway.put_resource(ann, "r:1", "Cats sleep.")
    item_id = str(put.resource.id)
    assert (await engine.forget.item(namespace, f"resource:{item_id}")).what == f"resource:{item_id}"
    assert await counts(engine, namespace) == dict.fromkeys(TABLES, 0)
    assert await statistics(engine, namespace) == {}
    with pytest.raises(NotFound):
        await engine.forget.item(namespace, item_id)
    assert not (await engine.gateway.put_resource(ann, "r:1", "Cats sleep.")).resource.replaced


async def test_recall_without_a_realm_looks_in_all_of_them(engine: Engine, namespace: str) -> None:
    for project in ("default", "one", "two"):
        owner = Owner(namespace, "ann", project_id=project)
        await engine.gateway.add(owner, "chat:1", said(f"Cats of project {project}."))
        await engine.gateway.flush(owner, "chat:1")
    for scope, number in ((Scope(), 3), (Scope(owner="ann"), 3), (Scope(owner="ann", realm=""), 1)):
        assert len((await engine.recall.recall(namespace, "cats", scope)).memories) == number
        assert len((await engine.recall.recall(namespace, "small felines", scope)).memories) == number


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (Said("", "user", 1, "x"), "sender_id"),
        (Said("ann", "wizard", 1, "x"), "role must be one of user, assistant"),
        (Said("ann", "user", 0, "x"), "timestamp"),
        (Said("ann", "user", 2**63, "x"), "timestamp"),
        (Said("ann", "user", True, "x"), "timestamp"),
        (Said("ann", "user", 1, "\n"), "content is empty"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_bad_message_is_refused_and_nothing_is_stored(
    engine: Engine, namespace: str, message: Said, named: str
) -> None:
    ann = Owner(namespace, "ann")
    with pytest.raises(Invalid, match=named):
        await engine.gateway.add(ann, "chat:1", [*said("Good."), message])
    with pytest.raises(NotFound):
        await engine.gateway.flush(ann, "chat:1")
