"""Relevance and ranking: what bears on a question comes first, and nothing does if nothing bears on it."""

from datetime import UTC, datetime, timedelta
from math import isclose

from recollect.engine import Engine
from recollect.flows.remember import Turn
from recollect.flows.search import ranking
from recollect.flows.search.recollection import Recollection
from recollect.memory.index.search import Scope
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KNOWN = (
    "My sister Laura plays the cello in an orchestra in Lisbon.",
    "I am allergic to walnuts, so I always ask in restaurants.",
    "We painted the kitchen green last spring.",
    "The car needs new winter tyres before November.",
    "I started to learn Portuguese with a tutor.",
    "Our dog is called Biscuit and is afraid of thunder.",
    "The dentist appointment was moved to the afternoon.",
    "I read a long novel about a lighthouse keeper.",
)


async def remember(engine: Engine, namespace: str, *said: tuple[str, str], session: str = "talk", at: datetime) -> None:
    messages = tuple(NewMessage(role, text, at=at) for role, text in said)
    await engine.remember.turn(namespace, Turn(session, messages, owner_if_new="ann"))


async def ask(engine: Engine, namespace: str, question: str, **options: object) -> Recollection:
    await engine.indexer.flush(namespace)
    return await engine.recall.recall(namespace, question, Scope(owner="ann"), now=NOW, **options)  # type: ignore[arg-type]


async def test_a_question_that_the_memory_answers_is_answered(engine: Engine, namespace: str) -> None:
    for number, text in enumerate(KNOWN):
        await remember(engine, namespace, ("user", text), session=f"day {number}", at=NOW)
    found = await ask(engine, namespace, "Which nuts am I allergic to?", min_relevance="default")
    assert found.answered
    assert found.memories[0].text == KNOWN[1]
    chances = [memory.relevance for memory in found.memories]
    assert chances[0] == max(chances)
    assert all(0 <= chance <= 1 for chance in chances)


async def test_a_question_that_it_cannot_answer_is_not(engine: Engine, namespace: str) -> None:
    for number, text in enumerate(KNOWN):
        await remember(engine, namespace, ("user", text), session=f"day {number}", at=NOW)
    question = "How do compilers allocate registers?"
    found = await ask(engine, namespace, question, min_relevance="default")
    assert (found.answered, found.memories) == (False, [])
    # Without a floor the results are there, and say themselves how little they are worth.
    found = await ask(engine, namespace, question)
    assert not found.answered
    assert found.memories


async def test_an_empty_memory_answers_nothing(engine: Engine, namespace: str) -> None:
    found = await ask(engine, namespace, "Which nuts am I allergic to?", min_relevance=0.0)
    assert (found.answered, found.memories) == (False, [])


async def test_a_question_that_was_asked_before_does_not_come_first(engine: Engine, namespace: str) -> None:
    ordered = "I ordered a blue lamp and two chairs from the shop on the corner."
    await remember(engine, namespace, ("user", ordered), session="monday", at=NOW - timedelta(days=6))
    question = "What did I order from the shop?"
    asked = [("user", question), ("assistant", "You asked what you ordered from the shop, but I do not know.")]
    await remember(engine, namespace, *asked, session="tuesday", at=NOW - timedelta(days=5))
    found = await ask(engine, namespace, question, explain=True)
    assert found.memories[0].text == ordered
    echoes = {memory.text: memory.explanation.parts.echo for memory in found.memories if memory.explanation is not None}
    answered = ranking.QUESTION.echo * ranking.ANSWERED_BEFORE
    assert echoes == {ordered: 0, asked[0][1]: ranking.QUESTION.echo, asked[1][1]: answered}


async def test_what_the_assistant_answered_before_is_found_when_it_is_asked_again(
    engine: Engine, namespace: str
) -> None:
    for number, text in enumerate(KNOWN):
        await remember(engine, namespace, ("user", text), session=f"day {number}", at=NOW - timedelta(days=60))
    answer = "Use 1:5:5 for rye and keep it at 24 degrees."
    chat = [("user", "Which sourdough starter ratio should I use for rye?"), ("assistant", answer)]
    await remember(engine, namespace, *chat, session="baking", at=NOW - timedelta(days=5))
    found = await ask(engine, namespace, "Which ratio for the rye sourdough starter?")
    assert found.memories[0].text == answer


async def test_the_latest_is_the_newest(engine: Engine, namespace: str) -> None:
    for days in (30, 3, 60):
        text = f"I weigh {70 + days / 10} kilos today."
        await remember(engine, namespace, ("user", text), session=f"{days} days ago", at=NOW - timedelta(days=days))
    found = await ask(engine, namespace, "What is my most recent weight in kilos?")
    assert found.memories[0].at == NOW - timedelta(days=3)


async def test_a_prompt_prefers_what_was_last_done_on_its_topic(engine: Engine, namespace: str) -> None:
    for days in (90, 2, 40):
        text = f"Step {days} of the garden plan is finished."
        await remember(engine, namespace, ("user", text), session=f"{days} days ago", at=NOW - timedelta(days=days))
    found = await ask(engine, namespace, "I am back. Let us go on with the garden plan.", explain=True)
    assert [memory.at for memory in found.memories] == [NOW - timedelta(days=days) for days in (2, 40, 90)]
    for memory in found.memories:
        assert memory.explanation is not None
        assert isclose(memory.explanation.parts.total, memory.score)


async def test_a_summary_prefers_neither_side(engine: Engine, namespace: str) -> None:
    said = [("user", "Which soup is quick?"), ("assistant", "A quick soup: leeks, potatoes and cream.")]
    await remember(engine, namespace, *said, at=NOW)
    for question, is_preferred in (("Summarise what was said about soup", False), ("Which soup was it?", True)):
        found = await ask(engine, namespace, question, explain=True)
        roles = [memory.explanation.parts.role for memory in found.memories if memory.explanation is not None]
        assert len(roles) == len(said)
        assert any(roles) is is_preferred


async def test_what_was_said_later_is_no_neighbour_of_an_answer_about_the_past(engine: Engine, namespace: str) -> None:
    past = NewMessage("user", "The boiler was checked.", at=NOW - timedelta(days=9))
    later = NewMessage("user", "The boiler in the cellar leaks, said the plumber.", at=NOW)
    await engine.remember.turn(namespace, Turn("house", (past, later), owner_if_new="ann"))
    await engine.indexer.flush(namespace)
    question = "What did the plumber say of the boiler in the cellar?"
    (found,) = (
        await engine.recall.recall(namespace, question, Scope(owner="ann", until=NOW - timedelta(days=1)), explain=True)
    ).memories
    assert found.text == past.content
    assert found.explanation is not None
    assert found.explanation.parts.neighbour == 0


async def test_memories_of_two_users_in_a_session_of_one_name_are_no_neighbours(engine: Engine, namespace: str) -> None:
    for user, text in (("ann", "Ann keeps bees in the orchard."), ("bob", "Bob keeps bees on the roof.")):
        scope = MemoryScope(user_id=user, session_id="garden")
        await engine.memories.add(namespace, text, "fact", scope)
    await engine.indexer.flush(namespace)
    found = await engine.recall.recall(namespace, "Who keeps bees?", explain=True)
    assert [each.explanation.parts.neighbour for each in found.memories if each.explanation] == [0, 0]


async def test_a_question_that_was_asked_before_never_comes_first_and_proves_nothing(
    engine: Engine, namespace: str
) -> None:
    question = "Where did I leave the ladder?"
    await remember(engine, namespace, ("user", "The ladder stands behind the shed."), session="garden", at=NOW)
    await remember(engine, namespace, ("user", question), ("assistant", "I do not know."), at=NOW)
    found = await ask(engine, namespace, question)
    assert found.answered
    assert found.memories[0].text == "The ladder stands behind the shed."
    assert [memory.relevance for memory in found.memories if memory.text == question] == [0.0]
    elsewhere = Scope(owner="ann", exclude_session="garden")
    assert not (await engine.recall.recall(namespace, question, elsewhere, now=NOW)).answered


async def test_a_question_with_a_relative_date_is_answered_like_one_without(engine: Engine, namespace: str) -> None:
    for number, text in enumerate(KNOWN):
        await remember(engine, namespace, ("user", text), session=f"day {number}", at=NOW - timedelta(days=60))
    for days, thing in ((9, "red bicycle"), (40, "blue tent")):
        text = f"I ordered a {thing}."
        await remember(engine, namespace, ("user", text), session=thing, at=NOW - timedelta(days=days))
    for question, thing in (
        ("What did I order last week?", "red bicycle"),
        ("What did I order last month?", "red bicycle"),
        ("What did I order in January?", "blue tent"),
    ):
        found = await ask(engine, namespace, question, min_relevance="default")
        assert found.memories[0].text == f"I ordered a {thing}.", question


async def test_a_session_of_another_user_with_the_same_name_is_another_session(engine: Engine, namespace: str) -> None:
    for user, text in (("ann", "My bees swarmed at noon."), ("ben", "The printer is out of ink.")):
        await engine.memories.add(namespace, text, "fact", MemoryScope(user, session_id="garden"))
    found = await engine.recall.recall(namespace, "When did the bees swarm?", explain=True)
    sessions = {memory.user_id: memory.explanation.parts.session for memory in found.memories if memory.explanation}
    assert sessions["ben"] < sessions["ann"] / 2
