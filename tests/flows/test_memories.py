"""Long-term memories: stored once, found at once, changed with a history, kept apart by scope."""

import asyncio
from contextlib import suppress
from itertools import product
from typing import Any, Literal
from uuid import UUID

import pytest

from recollect.engine import Engine
from recollect.errors import Conflict, Invalid, NotFound
from recollect.flows.long_term.memory_requests import Change, ChatLine, Chosen, Options, as_text
from recollect.flows.long_term.memory_results import Added, Deleted
from recollect.flows.remember import Turn
from recollect.memory.index.search import Scope
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope, StoredMemory
from recollect.storage.sql import Query
from tests.memory.test_passages import TABLES, counts, statistics

ANN = MemoryScope(user_id="ann")
NEAR_MISSES = [
    ("The user has 3 cats.", "The user has 4 cats."),
    ("The user likes tea.", "The user does not like tea."),
    ("Ann moved in March 2023.", "Ann moved in May 2023."),
    ("Tom is older than Jim.", "Jim is older than Tom."),
    ("Carl lives in Berlin.", "Karl lives in Berlin."),
]
ROWS = Query.named("test.memories", "select count(*) from memories where namespace = :namespace")


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


async def add(
    engine: Engine, namespace: str, text: str, scope: MemoryScope = ANN, category: str = "fact"
) -> StoredMemory:
    return (await engine.memories.add(namespace, text, category, scope)).memory


async def texts(engine: Engine, namespace: str, query: str, scope: MemoryScope = ANN, **options: Any) -> list[str]:
    return [found.memory.text for found in await engine.memories.search(namespace, query, scope, **options)]


async def listed(engine: Engine, namespace: str, scope: MemoryScope | None = None) -> list[str]:
    return [memory.text for memory in (await engine.memories.newest(namespace, scope)).memories]


async def events(engine: Engine, namespace: str, memory: StoredMemory) -> list[tuple[str, str | None, str | None]]:
    entries = await engine.memories.history(namespace, str(memory.id))
    assert {entry.memory_id for entry in entries} == {memory.id}
    return [(entry.event, entry.old_memory, entry.new_memory) for entry in entries]


async def rows(engine: Engine, namespace: str) -> int:
    async with engine.database.reading(namespace) as db:
        return int((await db.one(ROWS))[0])


async def test_a_memory_is_found_by_meaning_from_its_commit_with_nothing_left_to_do(
    engine: Engine, namespace: str
) -> None:
    memory = await add(engine, namespace, "The user's physician told her to sleep more.")
    (found,) = await engine.memories.search(namespace, "medical advice about rest", ANN)
    assert found.memory == memory
    assert 0.2 < found.score < 1.0
    assert await engine.indexer.waiting(namespace) == 0


async def test_the_score_is_near_one_for_the_same_words_and_low_for_others(engine: Engine, namespace: str) -> None:
    await add(engine, namespace, "Bees make honey in the hive.")
    await add(engine, namespace, "The quarterly budget is late.")
    first, second = await engine.memories.search(namespace, "Bees make honey in the hive.", ANN)
    assert first.score > 0.95
    assert second.score < 0.3
    assert second.score >= 0.0


@pytest.mark.unindexed("it needs a memory that still waits to be embedded")
async def test_without_a_vector_the_score_is_the_share_of_the_questions_words(engine: Engine, namespace: str) -> None:
    long = " ".join(f"Point {n}: the committee decided about budget line {n} of the plan." for n in range(700))
    memory = await add(engine, namespace, long)
    assert await engine.indexer.waiting(namespace) > 0
    found = (await engine.memories.search(namespace, "budget of the committee", ANN))[0]
    assert found.memory == memory
    assert 0.0 < found.score <= 1.0
    (nothing,) = await engine.memories.search(namespace, "budget of zebras and other unheard animals", ANN)
    assert 0.0 < nothing.score < found.score


async def test_a_long_memory_is_found_whole_and_once(engine: Engine, namespace: str) -> None:
    text = "\n".join(f"Step {n}: turn the wheel number {n} of the old machine to the left." for n in range(60))
    await add(engine, namespace, text)
    assert (await counts(engine, namespace))["passages"] > 2
    assert await texts(engine, namespace, "which wheel of the machine") == [text]


async def test_the_same_memory_again_is_the_one_that_exists(engine: Engine, namespace: str) -> None:
    first = await engine.memories.add(namespace, "The user prefers dark mode.", "fact", ANN, {"source": "one"})
    assert first.what == "created"
    for again in ("The user prefers dark mode.", "user prefers dark mode", "The user really prefers  DARK-mode!"):
        second = await engine.memories.add(namespace, again, "fact", ANN, {"source": "one"})
        assert second == Added(first.memory, "existing")
    assert await events(engine, namespace, first.memory) == [("create", None, "The user prefers dark mode.")]
    assert (await counts(engine, namespace))["passages"] == 1


async def test_the_same_memory_again_brings_its_metadata_along(engine: Engine, namespace: str) -> None:
    first = (await engine.memories.add(namespace, "Tea is hot.", "fact", ANN, {"source": "one", "page": 1})).memory
    more = {"source": "two", "seen": [2]}
    again = await engine.memories.add(namespace, "tea is hot", "fact", ANN, more)
    assert (again.what, again.memory.id, again.memory.text) == ("merged", first.id, "Tea is hot.")
    assert again.memory.metadata == {"source": "two", "page": 1, "seen": [2]}
    assert again.memory.updated_at is not None
    (found,) = await engine.memories.search(namespace, "tea", ANN, Chosen(metadata={"seen": [2], "page": 1}))
    assert found.memory == again.memory
    assert (await engine.memories.add(namespace, "Tea is hot.", "fact", ANN, more)).what == "existing"
    assert [event for event, _, _ in await events(engine, namespace, first)] == ["create", "update"]


async def test_thirty_two_adds_at_once_lose_no_metadata(engine: Engine, namespace: str) -> None:
    adds = (engine.memories.add(namespace, "Tea.", "fact", ANN, {f"key {number}": number}) for number in range(32))
    added = await asyncio.gather(*adds)
    assert sorted(result.what for result in added) == ["created"] + ["merged"] * 31
    memory = await engine.memories.get(namespace, str(added[0].memory.id))
    assert memory.metadata == {f"key {number}": number for number in range(32)}


async def test_near_misses_stay_two_and_both_are_found(engine: Engine, namespace: str) -> None:
    for number, pair in enumerate(NEAR_MISSES):
        scope = MemoryScope(user_id=f"user {number}")
        for text in pair:
            await add(engine, namespace, text, scope)
        assert set(await texts(engine, namespace, pair[0], scope)) == set(pair)
        recalled = await engine.recall.recall(namespace, pair[0], Scope(owner=scope.user_id))
        assert {memory.text for memory in recalled.memories} == set(pair)


async def test_thirty_two_adds_at_once_make_one_memory(engine: Engine, namespace: str) -> None:
    variants = ["The user likes tea.", "User likes tea", "user LIKES tea!", "The user really likes tea"] * 8
    added = await asyncio.gather(*(engine.memories.add(namespace, text, "fact", ANN) for text in variants))
    assert len({result.memory.id for result in added}) == 1
    assert sorted(result.what for result in added) == ["created"] + ["existing"] * 31
    assert await rows(engine, namespace) == 1
    assert (await counts(engine, namespace))["passages"] == 1
    assert len(await engine.memories.history(namespace, str(added[0].memory.id))) == 1


async def test_adding_while_others_delete_ends_with_one_or_none(engine: Engine, namespace: str) -> None:
    async def come_and_go() -> None:
        memory = await add(engine, namespace, "Now you see me.")
        with suppress(NotFound):
            await engine.memories.delete(namespace, str(memory.id))

    await asyncio.gather(*(come_and_go() for _ in range(8)))
    assert await rows(engine, namespace) == 0
    assert await counts(engine, namespace) == dict.fromkeys(TABLES, 0)
    assert await statistics(engine, namespace) == {}


async def test_another_scope_or_category_makes_another_memory(engine: Engine, namespace: str) -> None:
    scopes = [MemoryScope(*ids) for ids in product(("u", None), ("a", None), ("s", None)) if any(ids)]
    memories = [
        await add(engine, namespace, "Tea is hot.", scope, category)
        for scope in (*scopes, MemoryScope("v", "a", "s"))
        for category in ("fact", "semantic")
    ]
    assert len({memory.id for memory in memories}) == 16


async def test_every_combination_of_ids_finds_exactly_what_has_them(engine: Engine, namespace: str) -> None:
    scopes = [MemoryScope(*ids) for ids in product(("u", "v", None), ("a", None), ("s", None)) if any(ids)]
    for number, scope in enumerate(scopes):
        await add(engine, namespace, f"Tea number {number} is hot.", scope)
    for asked in scopes:
        wanted = {
            f"Tea number {number} is hot."
            for number, scope in enumerate(scopes)
            if asked.user_id in (None, scope.user_id)
            and asked.agent_id in (None, scope.agent_id)
            and asked.session_id in (None, scope.session_id)
        }
        assert set(await texts(engine, namespace, "hot tea", asked)) == wanted
        assert set(await listed(engine, namespace, asked)) == wanted
    assert len(await listed(engine, namespace)) == len(scopes)


async def test_categories_filter_a_search(engine: Engine, namespace: str) -> None:
    for category in ("semantic", "episodic", "fact", "preference"):
        await add(engine, namespace, f"Tea, seen as {category}.", category=category)
    wanted = Chosen(categories=["fact", "preference"])
    both = {"Tea, seen as fact.", "Tea, seen as preference."}
    assert set(await texts(engine, namespace, "tea", chosen=wanted)) == both
    page = await engine.memories.newest(namespace, ANN, chosen=wanted)
    assert {memory.text for memory in page.memories} == both
    assert len(await texts(engine, namespace, "tea")) == 4
    assert len(await texts(engine, namespace, "tea", limit=3)) == 3
    with pytest.raises(Invalid, match="categories is empty"):
        await texts(engine, namespace, "tea", chosen=Chosen(categories=[]))


async def test_metadata_and_time_filter_a_search_and_a_list(engine: Engine, namespace: str) -> None:
    stored = [
        (await engine.memories.add(namespace, f"Tea {name}.", "fact", ANN, metadata)).memory
        for name, metadata in (("one", {"a": 1, "b": [1, 2]}), ("two", {"a": 2}), ("three", {"a": 1}))
    ]
    one, two, three = stored
    for chosen, wanted in (
        (Chosen(metadata={"a": 1}), [one, three]),
        (Chosen(metadata={"a": 1, "b": [2]}), [one]),
        (Chosen(metadata={"a": "1"}), []),
        (Chosen(since=two.created_at), [two, three]),
        (Chosen(until=two.created_at), [one, two]),
        (Chosen(metadata={"a": 1}, since=two.created_at, until=three.created_at), [three]),
        (Chosen(metadata={}), stored),
    ):
        found = await engine.memories.search(namespace, "tea", ANN, chosen)
        assert {hit.memory.id for hit in found} == {memory.id for memory in wanted}, chosen
        page = await engine.memories.newest(namespace, ANN, chosen=chosen)
        assert page.memories == wanted[::-1], chosen
    for refused, named in (
        (Chosen(metadata={"category": "fact"}), "filter by categories"),
        (Chosen(since=three.created_at, until=one.created_at), "until .* is before since"),
    ):
        with pytest.raises(Invalid, match=named):
            await engine.memories.newest(namespace, ANN, chosen=refused)


async def test_metadata_comes_back_as_it_was_given(engine: Engine, namespace: str) -> None:
    given = {"zeta": 1e23, "a": -0.0, "inner": {"z": 1, "b": 2.0}, "emoji": "\N{WHITE SMILING FACE}"}
    memory = (await engine.memories.add(namespace, "Tea.", "fact", ANN, given)).memory
    (found,) = await engine.memories.search(namespace, "tea", ANN, Chosen(metadata={"inner": {"b": 2}}))
    assert repr(found.memory.metadata) == repr(memory.metadata) == repr(given)


async def test_a_search_brings_as_many_as_it_is_asked_for(engine: Engine, namespace: str) -> None:
    await asyncio.gather(*(add(engine, namespace, f"Tea number {number}.") for number in range(130)))
    assert len(await texts(engine, namespace, "tea")) == 100
    assert len(set(await texts(engine, namespace, "tea", limit=1000))) == 130


async def test_a_memory_of_a_session_is_not_lifted_by_another_of_it(engine: Engine, namespace: str) -> None:
    await add(
        engine, namespace, "Anna's cat is called Tiger and sleeps on the sofa.", MemoryScope("ann", session_id="s")
    )
    await add(engine, namespace, "The invoice was paid in cash.", MemoryScope("ann", session_id="s"))
    await add(engine, namespace, "Cats are pets.")
    assert (await texts(engine, namespace, "What is the cat called?"))[-1] == "The invoice was paid in cash."


async def test_pages_hold_every_memory_once_while_others_are_added(engine: Engine, namespace: str) -> None:
    for number in range(7):
        await add(engine, namespace, f"Memory number {number}.")
    seen: list[str] = []
    behind = None
    while True:
        page = await engine.memories.newest(namespace, ANN, 3, behind)
        seen += [memory.text for memory in page.memories]
        await add(engine, namespace, f"Added behind {len(seen)}.")
        if page.next is None:
            break
        # A place in the order outlives the memory that stood there.
        await engine.memories.delete(namespace, str(page.memories[-1].id))
        behind = page.next
    assert seen == [f"Memory number {number}." for number in reversed(range(7))]


async def test_an_update_changes_what_is_found_and_keeps_the_old_text_in_the_history(
    engine: Engine, namespace: str
) -> None:
    memory = await add(engine, namespace, "Anna plays the violin.")
    changed = (await engine.memories.update(namespace, str(memory.id), Change("Anna plays chess."))).memory
    assert (changed.id, changed.text, changed.created_at) == (memory.id, "Anna plays chess.", memory.created_at)
    assert memory.updated_at is None
    assert changed.updated_at is not None
    assert changed.updated_at > changed.created_at
    assert await texts(engine, namespace, "violin") == ["Anna plays chess."]
    assert (await counts(engine, namespace))["passages"] == 2  # one is for questions about the past
    assert await events(engine, namespace, memory) == [
        ("create", None, "Anna plays the violin."),
        ("update", "Anna plays the violin.", "Anna plays chess."),
    ]
    assert (await engine.memories.add(namespace, "Anna plays the violin.", "fact", ANN)).what == "created"


async def test_an_update_to_what_another_memory_says_is_refused_by_its_id(engine: Engine, namespace: str) -> None:
    tea, coffee = await add(engine, namespace, "I like tea."), await add(engine, namespace, "I like coffee.")
    with pytest.raises(Conflict, match=str(tea.id)):
        await engine.memories.update(namespace, str(coffee.id), Change("I like TEA!"))
    assert sorted(await listed(engine, namespace)) == ["I like coffee.", "I like tea."]
    assert (await engine.memories.update(namespace, str(tea.id), Change("I like TEA!"))).memory.text == "I like TEA!"


async def test_a_change_of_metadata_or_category_leaves_the_rest(engine: Engine, namespace: str) -> None:
    memory = (await engine.memories.add(namespace, "Tea is hot.", "fact", ANN, {"a": 1, "b": {"x": 1, "y": 2}})).memory
    before = await counts(engine, namespace)
    change = Change(category="preference", metadata={"a": None, "b": {"x": None, "z": 3}, "category": "preference"})
    changed = (await engine.memories.update(namespace, str(memory.id), change)).memory
    assert (changed.text, changed.category, changed.metadata) == ("Tea is hot.", "preference", {"b": {"y": 2, "z": 3}})
    wanted = Chosen(categories=["preference"], metadata={"b": {"z": 3}})
    assert await texts(engine, namespace, "tea", chosen=wanted) == ["Tea is hot."]
    assert await texts(engine, namespace, "tea", chosen=Chosen(categories=["fact"])) == []
    after = await counts(engine, namespace)
    assert after == {table: 0 if table == "passage_queue" else 2 * rows for table, rows in before.items()}
    assert (await engine.memories.add(namespace, "tea is hot", "preference", ANN)).what == "existing"
    assert (await engine.memories.add(namespace, "tea is hot", "fact", ANN)).what == "created"
    with pytest.raises(Conflict, match="in the same scope is a duplicate"):
        await engine.memories.update(namespace, str(memory.id), Change(category="fact"))
    with pytest.raises(Invalid, match="change the field category"):
        await engine.memories.update(namespace, str(memory.id), Change(metadata={"category": "fact"}))
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"a": deep}
    with pytest.raises(Invalid, match="nested more than 100 levels deep"):
        await engine.memories.update(namespace, str(memory.id), Change(metadata=deep))
    assert await engine.memories.get(namespace, str(memory.id)) == changed


async def test_changes_of_metadata_at_once_all_arrive(engine: Engine, namespace: str) -> None:
    memory = await add(engine, namespace, "Version 0.")
    changes = [Change(metadata={f"key {number}": number}) for number in range(8)]
    changes += [Change(f"Version {number}.") for number in range(1, 4)]
    await asyncio.gather(*(engine.memories.update(namespace, str(memory.id), change) for change in changes))
    after = await engine.memories.get(namespace, str(memory.id))
    assert after.metadata == {f"key {number}": number for number in range(8)}
    (found,) = await engine.memories.search(namespace, "version", ANN, Chosen(metadata=after.metadata))
    assert found.memory == after


async def test_updates_at_once_are_all_in_the_history_in_order(engine: Engine, namespace: str) -> None:
    memory = await add(engine, namespace, "Version 0.")
    await asyncio.gather(
        *(engine.memories.update(namespace, str(memory.id), Change(f"Version {number}.")) for number in range(1, 9))
    )
    changes = await events(engine, namespace, memory)
    assert len(changes) == 9
    assert [old for _, old, _ in changes[1:]] == [new for _, _, new in changes[:-1]]
    assert await listed(engine, namespace) == [changes[-1][2]]
    assert (await counts(engine, namespace))["passages"] == 9


async def test_nothing_is_left_of_a_deleted_memory_but_what_happened_to_it(engine: Engine, namespace: str) -> None:
    memory = await add(engine, namespace, "Dogs bark.")
    await engine.memories.update(namespace, str(memory.id), Change("Dogs bark loudly."))
    assert await engine.memories.delete(namespace, str(memory.id)) == Deleted(memory.id, (), ())
    assert await texts(engine, namespace, "dogs") == []
    assert await counts(engine, namespace) == dict.fromkeys(TABLES, 0)
    assert await statistics(engine, namespace) == {}
    assert await events(engine, namespace, memory) == [(event, None, None) for event in ("create", "update", "delete")]
    for call in (engine.memories.get, engine.memories.delete, engine.memories.undo):
        with pytest.raises(NotFound, match=str(memory.id)):
            await call(namespace, str(memory.id))
    with pytest.raises(NotFound, match=str(memory.id)):
        await engine.memories.update(namespace, str(memory.id), Change("Dogs bite."))
    assert (await add(engine, namespace, "Dogs bark.")).id != memory.id


async def test_forget_takes_a_memory_by_the_id_that_recall_shows(engine: Engine, namespace: str) -> None:
    memory = await add(engine, namespace, "Dogs bark.")
    (shown,) = (await engine.recall.recall(namespace, "dogs")).memories
    assert (shown.kind, shown.id, shown.user_id, shown.category) == ("memory", str(memory.id), "ann", "fact")
    await engine.forget.item(namespace, f"memory:{shown.id}")
    assert await listed(engine, namespace) == []
    with pytest.raises(NotFound):
        await engine.memories.history(namespace, str(memory.id))


async def test_another_namespace_sees_no_memory_and_no_history(engine: Engine, namespace: str) -> None:
    memory = await add(engine, namespace, "Dogs bark.")
    other = f"{namespace}-other"
    assert await texts(engine, other, "dogs") == []
    assert await listed(engine, other) == []
    for call in (engine.memories.get, engine.memories.history, engine.memories.delete):
        with pytest.raises(NotFound):
            await call(other, str(memory.id))


async def test_text_that_only_repeats_what_was_recalled_is_not_stored_again(engine: Engine, namespace: str) -> None:
    vim = await add(engine, namespace, "The user prefers dark mode and uses Vim.")
    await add(engine, namespace, "The user's dog is called Rex.")
    recalled = [found.memory for found in await engine.memories.search(namespace, "about the user", ANN)]

    async def echo(text: str, recalled: list[str]) -> Added:
        return await engine.memories.add(namespace, text, "semantic", MemoryScope("ann", None, "s"), recalled=recalled)

    for known in ([memory.text for memory in recalled], [str(memory.id) for memory in recalled]):
        for text in (
            "You prefer dark mode and use Vim.",
            "user: Your dog is called Rex\nassistant: The user prefers dark mode and uses Vim!",
        ):
            assert (await echo(text, known)).what == "echo"
    assert (await echo("You prefer dark mode and use Vim.", [str(vim.id)])).memory == vim
    assert await rows(engine, namespace) == 2


async def test_text_that_adds_something_is_stored_whatever_was_recalled(engine: Engine, namespace: str) -> None:
    vim = await add(engine, namespace, "The user uses Vim.")
    for text in ("The user uses Emacs.", "You do not use Vim.", "You use Vim. You like it.", "Bob uses Vim."):
        added = await engine.memories.add(namespace, text, "fact", ANN, recalled=[vim.text, str(vim.id)])
        assert added.what == "created"
    bob = MemoryScope(user_id="bob")
    theirs = await engine.memories.add(namespace, "You use Vim.", "fact", bob, recalled=[str(vim.id), vim.text])
    assert theirs.what == "created"
    first_time = await engine.memories.add(namespace, "Rome is old.", "fact", ANN, recalled=["Rome is old."])
    assert first_time.what == "created"


def test_a_chat_is_one_text_in_which_everybody_has_a_name() -> None:
    assert as_text([ChatLine("user", "I like tea.")]) == "I like tea."
    assert as_text([ChatLine("assistant", "I can do that.")]) == "assistant: I can do that."
    assert as_text([ChatLine("user", "Hi", "Ann"), ChatLine("assistant", "Ho")]) == "Ann: Hi\nassistant: Ho"


async def test_a_bad_memory_is_refused_with_a_sentence(engine: Engine, namespace: str) -> None:
    refused = [
        (" ", "fact", ANN, "messages is empty"),
        ("a\x00b", "fact", ANN, "NUL"),
        ("text", "opinion", ANN, "category must be one of semantic"),
        ("text", "fact", MemoryScope(), "At least one of user_id, agent_id, or session_id must be provided"),
        ("text", "fact", MemoryScope(user_id=""), "user_id is empty"),
        ("text", "fact", MemoryScope(agent_id="a" * 256), "agent_id is longer"),
    ]
    for text, category, scope, named in refused:
        with pytest.raises(Invalid, match=named):
            await engine.memories.add(namespace, text, category, scope)
    assert await rows(engine, namespace) == 0


async def test_a_bad_search_or_list_is_refused_with_a_sentence(engine: Engine, namespace: str) -> None:
    with pytest.raises(Invalid, match="At least one of"):
        await engine.memories.search(namespace, "tea", MemoryScope())
    with pytest.raises(Invalid, match="query has no letters"):
        await engine.memories.search(namespace, "?!", ANN)
    for limit in (0, 1001):
        with pytest.raises(Invalid, match="limit"):
            await engine.memories.search(namespace, "tea", ANN, limit=limit)
        with pytest.raises(Invalid, match="limit"):
            await engine.memories.newest(namespace, ANN, limit)
    for memory_id in ("", "no-uuid", str(UUID(int=0)), "x" * 5000):
        with pytest.raises(NotFound, match="Unknown memory"):
            await engine.memories.get(namespace, memory_id)


async def test_memories_of_a_session_stand_in_the_order_in_which_they_were_stored(
    engine: Engine, namespace: str
) -> None:
    talk = MemoryScope("ann", session_id="talk")
    stored = [await add(engine, namespace, f"Fact {number}.", talk) for number in range(3)]
    stored.append(await add(engine, namespace, "Fact of Ben.", MemoryScope("ben", session_id="talk")))
    assert [memory.position for memory in stored] == [0, 1, 2, 3]
    assert (await add(engine, namespace, "Of another talk.", MemoryScope("ann", session_id="other"))).position == 0
    assert (await add(engine, namespace, "Of no talk.")).position is None
    await engine.memories.delete(namespace, str(stored[0].id))
    changed = await engine.memories.update(namespace, str(stored[1].id), Change("Another fact."))
    assert changed.memory.position == 1


async def test_a_memory_is_ranked_by_what_stands_next_to_it_in_its_session(engine: Engine, namespace: str) -> None:
    talk = MemoryScope("ann", session_id="talk")
    await add(engine, namespace, "They talked about the marathon in Lisbon.", talk)
    beside = await add(engine, namespace, "She was very happy.", talk)
    alone = await add(engine, namespace, "She was very glad.", MemoryScope("ann", session_id="elsewhere"))
    found = await engine.recall.recall(namespace, "marathon in Lisbon", Scope(owner="ann"), explain=True)
    neighbour = {each.id: each.explanation.parts.neighbour for each in found.memories if each.explanation}
    assert neighbour[str(beside.id)] > 0 == neighbour[str(alone.id)]


async def test_a_message_of_a_session_of_the_same_name_is_no_neighbour(engine: Engine, namespace: str) -> None:
    said = tuple(NewMessage("user", "The marathon in Lisbon.") for _ in range(3))
    await engine.remember.turn(namespace, Turn("talk", said, owner_if_new="ann"))
    memory = await add(engine, namespace, "She was very happy.", MemoryScope("ann", session_id="talk"))
    found = await engine.recall.recall(
        namespace, "marathon in Lisbon", Scope(owner="ann", kinds=("memory",)), explain=True
    )
    (explanation,) = [each.explanation for each in found.memories if each.id == str(memory.id)]
    assert explanation is not None
    assert explanation.parts.neighbour == 0


async def test_sources_of_a_text_that_is_stored_again_are_added_to_the_memory(engine: Engine, namespace: str) -> None:
    names = [f"document:{(await engine.remember.text(namespace, f'Note {number}.')).id}" for number in range(3)]
    ann = MemoryScope(user_id="ann")

    async def add(*sources: str) -> Added:
        return await engine.memories.add(namespace, "Ann rows.", "fact", ann, options=Options(sources=sources))

    assert (await add(names[0])).memory.sources == (names[0],)
    merged = await add(names[1], names[0], names[2])
    assert (merged.what, merged.memory.sources) == ("merged", (names[0], names[1], names[2]))
    again = await add(names[2])
    assert (again.what, again.memory) == ("existing", merged.memory)
    # A change of anything else leaves them.
    changed = await engine.memories.update(namespace, str(again.memory.id), Change(text="Ann sails."))
    assert changed.memory.sources == merged.memory.sources
