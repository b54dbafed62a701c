"""One recall of several namespaces: one ranking, every result labelled, a refusal where a caller may not read."""

import pytest

from recollect import origin
from recollect.engine import Engine
from recollect.errors import Forbidden, Invalid, NotFound
from recollect.flows.indexing.namespace_models import NotSearched
from recollect.flows.search.recall import MAX_NAMESPACES
from recollect.memory.index.search import Scope
from recollect.memory.memories import MemoryScope
from recollect.origin import Reach
from recollect.storage.sql import Query
from tests.flows.talk import say, say_all

QUESTION = "Where is the spare key of the boat?"
TALKS = (
    ("The spare key is under the blue flowerpot.", "Which flowerpot?", "The one beside the door."),
    ("We sold the old boat in spring.", "Did you keep the key?", "No, the buyer has both keys."),
    ("The new boat has a spare anchor.", "The harbour freezes in winter."),
    ("I had soup for lunch.", "The key signature of the song is G."),
)

ANOTHER_MODEL = Query.named(
    "test.another_model", "update embedding_models set active = 'onnx:elsewhere' where namespace = :namespace"
)
once = pytest.mark.parametrize("pooling", ["session"], indirect=True)


async def test_talks_in_several_namespaces_are_ranked_as_if_they_were_in_one(engine: Engine, namespace: str) -> None:
    places = [f"{namespace}-{number}" for number in range(3)]
    for number, talk in enumerate(TALKS):
        for place in (namespace, places[number % 3]):
            await say_all(engine, place, "ann", *talk, session=f"talk {number}")
    for place in (namespace, *places):
        await engine.indexer.flush(place)
    one = await engine.recall.recall(namespace, QUESTION)
    found = await engine.recall.recall(namespace, QUESTION, namespaces=places, explain=True)
    assert [each.text for each in found.memories] == [each.text for each in one.memories]
    # Each namespace knows for itself how rare a word is.
    assert [each.score for each in found.memories] == pytest.approx([each.score for each in one.memories], rel=0.1)
    assert found.answered == one.answered
    where = {text: places[number % 3] for number, talk in enumerate(TALKS) for text in talk}
    assert [each.namespace for each in found.memories] == [where[each.text] for each in found.memories]
    assert {each.namespace for each in one.memories} == {None}
    assert all(
        each.explanation and each.explanation.parts.total == pytest.approx(each.score) for each in found.memories
    )


@once
async def test_only_the_namespaces_that_are_named_are_asked_each_once(engine: Engine, namespace: str) -> None:
    team = f"{namespace}-team"
    for place in (namespace, team):
        await say(engine, place, "ann", "The spare key is under the blue flowerpot.")
    found = await engine.recall.recall(namespace, QUESTION, namespaces=[team])
    assert [each.namespace for each in found.memories] == [team]
    # What two namespaces say alike are two results: neither has the id of the other.
    found = await engine.recall.recall(namespace, QUESTION, namespaces=[team, namespace, team])
    assert {each.namespace for each in found.memories} == {namespace, team}
    assert [each.repeats for each in found.memories] == [(), ()]
    inspection = await engine.recall.inspect(namespace, QUESTION, Scope(), namespaces=[team])
    assert [each.memory.namespace for each in inspection.candidates] == [team]


@once
async def test_what_may_not_be_read_is_refused_and_never_left_out(engine: Engine, namespace: str) -> None:
    team, other = f"{namespace}-team", f"{namespace}-other"
    for place in (namespace, other):
        await say(engine, place, "ann", "The spare key is under the blue flowerpot.")
    with origin.acting("rest", reach=Reach(namespace, frozenset({team}))):
        found = await engine.recall.recall(namespace, QUESTION, namespaces=[namespace, team])
        assert [each.namespace for each in found.memories] == [namespace], "what is granted may still be empty"
        for refused in (other, f"{namespace}-unknown"):
            with pytest.raises(Forbidden, match=f"Namespace {refused} is not open to this key"):
                await engine.recall.recall(namespace, QUESTION, namespaces=[namespace, refused])
    with pytest.raises(NotFound, match=f"Namespace {team} has nothing stored: check its name"):
        await engine.recall.recall(namespace, QUESTION, namespaces=[namespace, team])
    for named, said in (
        ([], "the number of namespaces"),
        ([f"n{number}" for number in range(MAX_NAMESPACES + 1)], "the number of namespaces"),
        (["no such name"], "is invalid"),
    ):
        with pytest.raises(Invalid, match=said):
            await engine.recall.recall(namespace, QUESTION, namespaces=named)


@once
async def test_an_answer_says_which_namespace_was_searched_by_keyword_only(engine: Engine, namespace: str) -> None:
    team = f"{namespace}-team"
    for place in (namespace, team):
        await say(engine, place, "ann", f"The spare key of {place} is under the blue flowerpot.")
        await engine.indexer.flush(place)
    async with engine.database.transaction(team) as tx:
        await tx.all(ANOTHER_MODEL)
    found = await engine.recall.recall(namespace, QUESTION, namespaces=[namespace, team])
    assert {each.namespace for each in found.memories} == {namespace, team}
    assert found.degraded is not None
    assert found.degraded.startswith(
        f"Namespace {team}: Semantic search is unavailable, so only keyword search was used"
    )


@once
async def test_if_nothing_is_found_and_one_could_not_be_searched_that_is_an_error(
    engine: Engine, namespace: str
) -> None:
    team, empty = f"{namespace}-team", f"{namespace}-empty"
    await say(engine, team, "ann", "The spare key is under the blue flowerpot.")
    await engine.indexer.flush(team)
    async with engine.database.transaction(team) as tx:
        await tx.all(ANOTHER_MODEL)
    with origin.acting("rest", reach=Reach(empty, frozenset({team}))), pytest.raises(NotSearched):
        await engine.recall.recall(empty, "zebra", namespaces=[empty, team])


@once
@pytest.mark.unindexed("it counts what waits")
async def test_what_waits_is_counted_over_all_of_them(engine: Engine, namespace: str) -> None:
    team = f"{namespace}-team"
    await say_all(engine, namespace, "ann", "The spare key is under the flowerpot.", "Which one?")
    await say(engine, team, "ann", "The spare anchor is on the boat.")
    found = await engine.recall.recall(namespace, QUESTION, namespaces=[namespace, team])
    assert found.pending == 3


@once
async def test_long_term_memories_of_several_namespaces_are_searched_together(engine: Engine, namespace: str) -> None:
    team, ann = f"{namespace}-team", MemoryScope(user_id="ann")
    own = await engine.memories.add(namespace, "Ann drinks tea.", "preference", ann)
    theirs = await engine.memories.add(team, "Ann never drinks coffee.", "preference", ann)
    found = await engine.memories.search(namespace, "What does Ann drink?", ann, namespaces=[namespace, team])
    assert {(each.namespace, each.memory.id) for each in found} == {
        (namespace, own.memory.id),
        (team, theirs.memory.id),
    }
    (alone,) = await engine.memories.search(namespace, "What does Ann drink?", ann)
    assert (alone.namespace, alone.memory.id) == (None, own.memory.id)
