"""Recall: what is found, in which scope, in which order, and what is refused."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.remember import Turn
from recollect.flows.search.recollection import Recollection
from recollect.memory.index.search import Scope
from recollect.memory.log import NewMessage
from tests.flows.talk import say, say_all

LANGUAGES = {
    "German": ("Meine Großmutter wohnt in einem kleinen Haus am See.", "Wo wohnen die Großmütter?"),
    "French": ("Nous avons adopté deux chats noirs hier soir.", "Combien de chat noir ?"),
    "Spanish": ("Mi hermano trabaja como cocinero en Valencia.", "¿Dónde trabajan los cocineros?"),
    "Chinese": ("我妹妹去年搬到了上海工作。", "谁搬到上海"),
    "Japanese": ("昨日、新しい自転車を買いました。", "自転車"),
    "Russian": ("Мой брат купил красную машину весной.", "красная машина"),
}


def texts(found: Recollection) -> list[str]:
    return [memory.text for memory in found.memories]


@pytest.mark.unindexed("it counts what waits")
async def test_a_write_is_found_by_its_words_at_once(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "ann", "The spare key is under the blue flowerpot.")
    await say(engine, namespace, "ann", "I had soup for lunch.")
    found = await engine.recall.recall(namespace, "Where is the spare key?")
    assert texts(found)[0] == "The spare key is under the blue flowerpot."
    assert found.pending == 2


async def test_after_a_flush_it_is_found_by_its_meaning(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "My physician told me to sleep more.", "We painted the fence green.")
    await engine.indexer.flush(namespace)
    found = await engine.recall.recall(namespace, "What advice did the doctor give about rest?")
    assert texts(found)[0] == "My physician told me to sleep more."
    assert found.pending == 0
    assert found.by_meaning


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_sentence_is_found_by_its_own_words(engine: Engine, namespace: str, language: str) -> None:
    sentence, question = LANGUAGES[language]
    await say_all(engine, namespace, "ann", *(text for text, _ in LANGUAGES.values()))
    found = await engine.recall.recall(namespace, question, explain=True)
    assert texts(found)[0] == sentence
    assert found.memories[0].explanation is not None
    assert found.memories[0].explanation.matched_words


async def test_documents_are_recalled_beside_messages(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "ann", "Let us talk about the quarterly report.")
    document = await engine.remember.document(namespace, "The quarterly report shows a loss.", None, '{"source": "x"}')
    found = await engine.recall.recall(namespace, "quarterly report")
    assert {memory.kind for memory in found.memories} == {"message", "document"}
    only = await engine.recall.recall(namespace, "quarterly report", Scope(kinds=("document",)))
    assert [memory.id for memory in only.memories] == [str(document)]
    assert only.memories[0].metadata == {"source": "x"}


async def test_a_long_text_is_found_by_a_sentence_deep_inside(engine: Engine, namespace: str) -> None:
    filler = "The committee met again and nothing of note was decided that day. " * 60
    await engine.remember.document(
        namespace, f"{filler}The treasure lies beneath the old lighthouse. {filler}", None, None
    )
    (memory,) = (await engine.recall.recall(namespace, "Where does the treasure lie?")).memories
    assert "treasure lies beneath the old lighthouse" in memory.text
    assert len(memory.text) < 3000


async def test_scopes_narrow_what_is_seen(engine: Engine, namespace: str) -> None:
    day = datetime(2024, 5, 1, tzinfo=UTC)
    for number, (user, session) in enumerate([("ann", "s1"), ("ann", "s2"), ("bob", "s3")]):
        line = NewMessage(
            "user", f"The password hint {number} is pineapple.", f'{{"n": {number}}}', at=day + timedelta(days=number)
        )
        await engine.remember.turn(namespace, Turn(session, (line,), owner_if_new=user))
    await engine.indexer.flush(namespace)

    async def sessions(scope: Scope) -> set[str | None]:
        found = await engine.recall.recall(namespace, "password hint pineapple", scope)
        return {memory.session_id for memory in found.memories}

    assert await sessions(Scope()) == {"s1", "s2", "s3"}
    assert await sessions(Scope(owner="ann")) == {"s1", "s2"}
    assert await sessions(Scope(session_id="s3")) == {"s3"}
    assert await sessions(Scope(owner="ann", session_id="s3")) == set()
    assert await sessions(Scope(since=day + timedelta(days=1))) == {"s2", "s3"}
    assert await sessions(Scope(until=day)) == {"s1"}
    assert await sessions(Scope(metadata='{"n": 1}')) == {"s2"}
    assert await sessions(Scope(owner="nobody")) == set()
    assert await sessions(Scope(kinds=("document",))) == set()
    assert await sessions(Scope(categories=("fact",))) == set()
    assert await sessions(Scope(agent_id="nobody")) == set()


async def test_one_namespace_never_sees_another_with_the_same_texts(engine: Engine, namespace: str) -> None:
    other = f"test-{uuid4()}"
    for place in (namespace, other):
        await say_all(engine, place, "ann", "The code of the safe is 4711.", "I like green tea.")
        await engine.indexer.flush(place)
    for place in (namespace, other):
        for scope in (Scope(), Scope(owner="ann"), Scope(session_id="talk")):
            found = await engine.recall.recall(place, "What is the code of the safe?", scope)
            assert len(found.memories) == 2
            async with engine.database.reading(place) as db:
                own = {str(message.id) for message in await engine.capabilities.log.recent(db, "talk", 10)}
            assert {memory.id for memory in found.memories} <= own


async def test_the_person_whom_a_question_names_comes_first(engine: Engine, namespace: str) -> None:
    for speaker in ("Melanie", "Caroline"):
        line = NewMessage("user", "I went camping in the mountains.", speaker=speaker)
        await engine.remember.turn(namespace, Turn("talk", (line,), owner_if_new="both"))
    await engine.indexer.flush(namespace)
    for question, first in (("Where did Caroline go?", "Caroline"), ("When did Mel go camping?", "Melanie")):
        found = await engine.recall.recall(namespace, question, Scope(owner="both"), explain=True)
        assert found.memories[0].speaker == first
        assert found.memories[0].explanation is not None
        assert found.memories[0].explanation.parts.speaker > 0


async def test_a_date_in_the_question_is_matched_to_the_time_it_was_said(engine: Engine, namespace: str) -> None:
    for month in (3, 5, 9):
        line = NewMessage(
            "user", f"Today I met friend number {month} in town.", at=datetime(2023, month, 8, tzinfo=UTC)
        )
        await engine.remember.turn(namespace, Turn(f"s{month}", (line,), owner_if_new="ann"))
    found = await engine.recall.recall(namespace, "Which friend did I meet on 8 May 2023?")
    assert found.memories[0].at.month == 5


async def test_an_answer_is_found_through_the_question_before_it(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "Who repaired your bicycle in Lisbon?", "A man called Rui did.", "I see.")
    await engine.indexer.flush(namespace)
    found = await engine.recall.recall(namespace, "Who repaired the bicycle?", explain=True)
    answer = next(memory for memory in found.memories if "Rui" in memory.text)
    assert answer.explanation is not None
    assert answer.explanation.parts.answer > 0
    assert texts(found).index("A man called Rui did.") < texts(found).index("I see.")


async def test_the_parts_of_a_score_add_up_and_ranks_are_told(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "The train leaves at nine.", "Bring an umbrella.", "Nine people came.")
    await engine.indexer.flush(namespace)
    found = await engine.recall.recall(namespace, "When does the train leave?", explain=True)
    for memory in found.memories:
        assert memory.explanation is not None
        assert memory.score == pytest.approx(memory.explanation.parts.total)
    best = found.memories[0].explanation
    assert best is not None
    assert (best.rank_by_words, best.rank_by_meaning) == (1, 1)
    assert set(best.matched_words) == {"train", "leave"}
    assert (await engine.recall.recall(namespace, "When does the train leave?")).memories[0].explanation is None


async def test_the_same_question_gives_the_same_order(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", *(f"Note {n}: buy milk and bread." for n in range(30)))
    await engine.indexer.flush(namespace)
    answers = [await engine.recall.recall(namespace, "buy milk", top_k=30) for _ in range(3)]
    assert texts(answers[0]) == texts(answers[1]) == texts(answers[2])


async def test_what_says_the_same_is_folded_into_one(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "I like green tea!", "I like GREEN tea.", "Green tea grows in Asia.")
    found = await engine.recall.recall(namespace, "green tea")
    assert len(found.memories) == 2
    assert sum(len(memory.repeats) for memory in found.memories) == 1


async def test_a_token_budget_keeps_the_best_that_fit(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", *(f"Parrot fact {n}: parrots can talk and fly." for n in range(10)))
    found = await engine.recall.recall(namespace, "parrots", token_budget=30)
    assert 1 <= len(found.memories) < 4
    assert (await engine.recall.recall(namespace, "parrots", token_budget=1)).memories == []


@pytest.mark.parametrize(
    ("question", "scope", "options", "named"),
    [
        ("", Scope(), {}, "query is empty"),
        (" \n ", Scope(), {}, "query is empty"),
        ("x" * 100_000, Scope(), {}, "limit of 20,000 characters"),
        ("?!... --", Scope(), {}, "no letters or digits"),
        ("🍕🎉", Scope(), {}, "no letters or digits"),
        ("a\x00b", Scope(), {}, "NUL"),
        ("tea", Scope(kinds=("dream",)), {}, "kind must be one of"),
        ("tea", Scope(categories=("gossip",)), {}, "category must be one of"),
        ("tea", Scope(), {"top_k": 0}, "top_k"),
        ("tea", Scope(), {"top_k": 1001}, "top_k"),
        ("tea", Scope(), {"token_budget": 0}, "token_budget"),
        (
            "tea",
            Scope(since=datetime(2024, 1, 2, tzinfo=UTC), until=datetime(2024, 1, 1, tzinfo=UTC)),
            {},
            "until .* is before since",
        ),
        ("tea", Scope(owner=5), {}, "user_id must be text"),  # type: ignore[arg-type]
        ("tea", Scope(session_id=5), {}, "session_id must be text"),  # type: ignore[arg-type]
    ],
)
async def test_a_bad_question_is_refused_with_a_sentence(
    engine: Engine, namespace: str, question: str, scope: Scope, options: dict[str, Any], named: str
) -> None:
    with pytest.raises(Invalid, match=named):
        await engine.recall.recall(namespace, question, scope, **options)


async def test_only_stop_words_give_an_answer_by_meaning_within_top_k(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", *(f"Fact {n} about rivers." for n in range(20)))
    await engine.indexer.flush(namespace)
    found = await engine.recall.recall(namespace, "who is it and why", top_k=3)
    assert len(found.memories) == 3


async def test_without_a_model_words_alone_decide_and_the_answer_says_so(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "The harbour freezes in winter.", "We sold the boat.")
    engine.embedders.local = None
    found = await engine.recall.recall(namespace, "When does the harbour freeze?")
    assert texts(found)[0] == "The harbour freezes in winter."
    assert not found.by_meaning
    # What keyword search found and the floor left out is no outage.
    found = await engine.recall.recall(namespace, "When does the harbour freeze?", min_relevance=1.0)
    assert (found.memories, found.answered) == ([], False)
    assert found.degraded is not None


async def test_an_empty_memory_gives_an_empty_answer(engine: Engine, namespace: str) -> None:
    found = await engine.recall.recall(namespace, "Is anybody there?")
    assert found.memories == []
    assert found.pending == 0
