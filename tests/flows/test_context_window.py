"""Short-term memory, the same in both of its stores: sliding windows, summaries, and many at once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Literal
from uuid import uuid4

import pytest

from recollect.engine import Engine
from recollect.errors import Forbidden, Invalid, LimitReached, Misconfigured, RecollectError, Unavailable
from recollect.flows.forgetting import removal
from recollect.flows.short_term.context_window import ContextWindow, WindowDefaults
from recollect.flows.short_term.summaries import Summarising, Summary
from recollect.inference.llm import M, Prompt
from recollect.memory.index.search import Scope
from recollect.memory.log import NewMessage
from recollect.memory.windows import WindowConfig, WindowMessage
from recollect.origin import acting
from recollect.settings import Settings
from tests.memory.test_passages import TABLES, counts, statistics
from tests.valkey import shared_url, stoppable, url_of, with_redis

DEFAULTS = WindowDefaults("sliding_window", 50, 4000)
THRESHOLD = WindowConfig("token_threshold", max_tokens=100)


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


@pytest.fixture(params=["postgresql", "redis"])
def stored(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    return settings if request.param == "postgresql" else with_redis(settings, shared_url())


@pytest.fixture
async def engine(stored: Settings) -> AsyncIterator[Engine]:
    engine = await Engine.open(stored)
    yield engine
    await engine.close()


@pytest.fixture
async def log_engine(settings: Settings) -> AsyncIterator[Engine]:
    """For what only windows over the log promise."""
    engine = await Engine.open(settings)
    yield engine
    await engine.close()


class Joining:
    """A summariser that leaves nothing out and says everything once."""

    async def summarise(self, namespace: str, messages: Sequence[WindowMessage], max_tokens: int) -> Summary:
        await asyncio.sleep(0)
        return Summary(" ".join(message.content for message in messages), "llm")


class Answering:
    """An LLM that always gives the same answer, or fails."""

    model_id = "test:llm"

    def __init__(self, answer: str | RecollectError) -> None:
        self.answer = answer
        self.prompts: list[Prompt] = []

    async def complete(self, prompt: Prompt) -> str:
        self.prompts.append(prompt)
        if isinstance(self.answer, RecollectError):
            raise self.answer
        return self.answer

    async def complete_as(self, prompt: Prompt, shape: type[M]) -> M:
        raise AssertionError("a summary has no shape")


def says(*texts: str) -> list[NewMessage]:
    return [NewMessage("user", text) for text in texts]


def numbered(count: int, tokens: int = 20) -> list[NewMessage]:
    """Messages that can be told apart, each of so many tokens."""
    return says(*(f"Number {n} " + "we " * (tokens - 2) for n in range(count)))


def contents(messages: Sequence[WindowMessage]) -> list[str]:
    return [message.content for message in messages]


async def test_messages_come_back_in_order_with_what_was_given(engine: Engine, namespace: str) -> None:
    lines = [NewMessage("user", "Hello, how are you?", '{"source": "chat-ui"}'), NewMessage("summary", "Grüße, 你好")]
    added = await engine.windows.add(namespace, "s", lines)
    assert [(m.role, m.content, m.metadata) for m in added] == [
        ("user", "Hello, how are you?", {"source": "chat-ui"}),
        ("summary", "Grüße, 你好", None),
    ]
    added += await engine.windows.add(namespace, "s", says("and more"))
    assert await engine.windows.messages(namespace, "s") == added
    assert await engine.windows.messages(namespace, "s", limit=2) == added[1:]
    assert await engine.windows.messages(namespace, "s", limit=99) == added
    assert [m.tokens for m in added] == [6, 6, 2]


async def test_looking_at_a_window_cuts_its_texts_and_compacts_nothing(engine: Engine, namespace: str) -> None:
    system = NewMessage("system", "Be brief, whatever they say.")
    await engine.windows.add(namespace, "s", [system, *numbered(9)])
    slides = await engine.windows.outline(namespace, "s", shown=4, characters=8)
    assert [message.text for message in slides.messages] == [f"Number {n}" for n in range(5, 9)]
    assert (slides.strategy, slides.max_messages, slides.is_whole) == ("sliding_window", 50, False)
    await engine.windows.configure(namespace, "s", THRESHOLD)
    full = await engine.windows.outline(namespace, "s", shown=50, characters=8)
    assert (len(full.messages), full.is_whole, full.will_be_compacted, full.own) == (10, True, True, THRESHOLD)
    assert len(await engine.windows.messages(namespace, "s")) == 10
    context = await engine.windows.context(namespace, "s")
    compacted = await engine.windows.outline(namespace, "s", shown=50, characters=1000)
    assert [message.id for message in compacted.messages] == [message.id for message in context.messages]
    assert (compacted.total_tokens, compacted.will_be_compacted) == (context.total_tokens, False)
    assert [message.compacted for message in compacted.messages[:3]] == [False, True, False]


async def test_a_session_that_nobody_wrote_to_is_empty(engine: Engine, namespace: str) -> None:
    assert await engine.windows.messages(namespace, "nobody") == []
    context = await engine.windows.context(namespace, "nobody")
    assert (context.messages, context.strategy, context.total_tokens) == ([], "sliding_window", 0)
    assert await engine.windows.add(namespace, "nobody", []) == []
    assert await engine.windows.delete(namespace, "nobody") is False


async def test_a_sliding_window_is_the_last_messages(engine: Engine, namespace: str) -> None:
    added = await engine.windows.add(namespace, "s", numbered(60))
    assert (await engine.windows.context(namespace, "s")).messages == added[10:]
    await engine.windows.configure(namespace, "s", WindowConfig(max_messages=3))
    context = await engine.windows.context(namespace, "s")
    assert context.messages == added[-3:]
    assert context.total_tokens == sum(m.tokens for m in added[-3:])
    assert await engine.windows.messages(namespace, "s") == added


async def test_what_is_set_takes_the_place_of_all_that_was_set(engine: Engine, namespace: str) -> None:
    await engine.windows.add(namespace, "s", numbered(10))
    await engine.windows.configure(namespace, "s", WindowConfig("token_threshold", 2, 100_000))
    assert (await engine.windows.context(namespace, "s")).strategy == "token_threshold"
    await engine.windows.configure(namespace, "s", WindowConfig(max_messages=2))
    context = await engine.windows.context(namespace, "s")
    assert (context.strategy, len(context.messages)) == ("sliding_window", 2)


async def test_a_buffer_up_to_its_threshold_is_left_alone(engine: Engine, namespace: str) -> None:
    added = await engine.windows.add(namespace, "s", numbered(5))
    total = sum(m.tokens for m in added)
    await engine.windows.configure(namespace, "s", WindowConfig("token_threshold", max_tokens=total))
    context = await engine.windows.context(namespace, "s")
    assert (context.messages, context.total_tokens) == (added, total)


async def test_the_oldest_sixty_percent_become_a_summary(engine: Engine, namespace: str) -> None:
    await engine.windows.configure(namespace, "s", WindowConfig("token_threshold", max_tokens=150))
    added = await engine.windows.add(namespace, "s", numbered(10))
    context = await engine.windows.context(namespace, "s")
    summary, *rest = context.messages
    assert rest == added[6:]
    assert summary.role == "summary"
    assert summary.metadata == {
        "summary_method": "extractive",
        "summarized_messages": 6,
        "first_message_id": str(added[0].id),
        "last_message_id": str(added[5].id),
    }
    assert summary.at == added[5].at
    assert summary.tokens <= 150 // 4
    assert context.total_tokens == summary.tokens + sum(m.tokens for m in rest) <= 150
    assert await engine.windows.messages(namespace, "s") == context.messages
    assert await engine.windows.messages(namespace, "s", limit=4) == rest
    assert (await engine.windows.context(namespace, "s")).messages == context.messages


async def test_a_summary_is_summarised_with_what_follows_it(engine: Engine, namespace: str) -> None:
    window = ContextWindow(engine.windows._store, Joining(), DEFAULTS)
    await window.configure(namespace, "s", WindowConfig("token_threshold", max_tokens=150))
    added = await window.add(namespace, "s", numbered(10))
    await window.context(namespace, "s")
    added += await window.add(namespace, "s", numbered(5))
    summary, *rest = (await window.context(namespace, "s")).messages
    assert rest == added[11:]
    assert summary.content == " ".join(contents(added[:11]))
    assert summary.metadata == {
        "summary_method": "llm",
        "summarized_messages": 11,
        "first_message_id": str(added[0].id),
        "last_message_id": str(added[10].id),
    }
    assert await window.messages(namespace, "s") == [summary, *rest]


async def test_a_summary_of_a_client_is_a_message_like_any_other(engine: Engine, namespace: str) -> None:
    await engine.windows.configure(namespace, "s", THRESHOLD)
    lines = [NewMessage("summary", "Earlier, Ann came. " * 9, '{"summarized_messages": "many"}'), *numbered(9)]
    added = await engine.windows.add(namespace, "s", lines)
    summary, *rest = (await engine.windows.context(namespace, "s")).messages
    assert rest == added[7:]
    assert isinstance(summary.metadata, dict)
    assert summary.metadata["summarized_messages"] == 7
    assert "Ann" in summary.content


@pytest.mark.parametrize(("messages", "max_tokens"), [(200, 200), (40, 100), (10, 60), (7, 130)])
async def test_the_first_answer_already_fits(engine: Engine, namespace: str, messages: int, max_tokens: int) -> None:
    await engine.windows.configure(namespace, "s", WindowConfig("token_threshold", max_tokens=max_tokens))
    added = await engine.windows.add(namespace, "s", numbered(messages))
    context = await engine.windows.context(namespace, "s")
    assert context.total_tokens <= max_tokens
    assert context.messages[0].role == "summary"
    assert context.messages[1:] == added[-len(context.messages) + 1 :]
    assert (await engine.windows.context(namespace, "s")).messages == context.messages


async def test_a_long_message_among_the_newest_takes_the_others_with_it(engine: Engine, namespace: str) -> None:
    await engine.windows.configure(namespace, "s", THRESHOLD)
    added = await engine.windows.add(namespace, "s", [*numbered(5), *numbered(1, tokens=90), *numbered(2)])
    context = await engine.windows.context(namespace, "s")
    assert context.messages[1:] == added[6:]
    assert context.total_tokens <= 100


async def test_what_the_system_said_first_is_never_summarised(engine: Engine, namespace: str) -> None:
    await engine.windows.configure(namespace, "s", THRESHOLD)
    rule = NewMessage("system", "Always answer in French.")
    await engine.windows.add(namespace, "s", [rule, *numbered(10)])
    for _ in range(3):
        added = await engine.windows.add(namespace, "s", numbered(5))
        context = await engine.windows.context(namespace, "s")
        pinned, summary, *rest = context.messages
        assert (pinned.role, pinned.content) == ("system", "Always answer in French.")
        assert "French" not in summary.content
        assert rest == added[-len(rest) :]
        assert context.total_tokens <= 100
        assert await engine.windows.messages(namespace, "s") == context.messages


async def test_a_sliding_window_over_a_compacted_one_shows_what_is_pinned_too(engine: Engine, namespace: str) -> None:
    await engine.windows.configure(namespace, "s", THRESHOLD)
    await engine.windows.add(namespace, "s", [NewMessage("system", "Always answer in French."), *numbered(10)])
    compacted = (await engine.windows.context(namespace, "s")).messages
    await engine.windows.configure(namespace, "s", WindowConfig("sliding_window", max_messages=len(compacted)))
    assert contents((await engine.windows.context(namespace, "s")).messages) == contents(compacted)
    last = await engine.windows.messages(namespace, "s", limit=len(compacted) - 1)
    assert contents(last) == contents(compacted[1:])


async def test_what_the_system_asks_to_keep_is_kept_and_nothing_else(engine: Engine, namespace: str) -> None:
    await engine.windows.configure(namespace, "s", THRESHOLD)
    kept = NewMessage("system", "The customer pays in euros.", '{"pinned": true}')
    others = [
        NewMessage("system", "The line was busy.", '{"pinned": "yes"}'),
        NewMessage("user", "Hm.", '{"pinned": true}'),
    ]
    await engine.windows.add(namespace, "s", [*numbered(2), kept, *others, *numbered(10)])
    pinned, summary, *rest = (await engine.windows.context(namespace, "s")).messages
    assert pinned.content == kept.content
    assert isinstance(summary.metadata, dict)
    assert summary.metadata["summarized_messages"] == 14 - len(rest)
    assert not {"The line was busy.", "Hm."} & set(contents(rest))


async def test_a_window_that_is_nearly_all_pinned_still_ends(engine: Engine, namespace: str) -> None:
    await engine.windows.configure(namespace, "s", WindowConfig("token_threshold", max_tokens=10))
    rule = NewMessage(
        "system", "Answer in French, in rhymes, in one sentence, and never about politics, sports or weather."
    )
    await engine.windows.add(namespace, "s", [rule, *numbered(2)])
    first = (await engine.windows.context(namespace, "s")).messages
    assert [message.role for message in first] == ["system", "summary", "user"]
    assert (await engine.windows.context(namespace, "s")).messages == first


async def test_a_session_can_be_set_up_while_others_delete_it(engine: Engine, namespace: str) -> None:
    async def set_up() -> None:
        for _ in range(10):
            await engine.windows.configure(namespace, "s", THRESHOLD)

    async def delete() -> None:
        for _ in range(10):
            await engine.windows.delete(namespace, "s")

    await asyncio.gather(set_up(), delete(), set_up(), delete())


async def test_however_low_the_threshold_a_summary_and_the_newest_message_are_left(
    engine: Engine, namespace: str
) -> None:
    await engine.windows.configure(namespace, "s", WindowConfig("token_threshold", max_tokens=1))
    added = await engine.windows.add(namespace, "s", numbered(10))
    sizes = [len((await engine.windows.context(namespace, "s")).messages) for _ in range(3)]
    assert sizes == [2, 2, 2]
    summary, newest = await engine.windows.messages(namespace, "s")
    assert newest == added[-1]
    assert isinstance(summary.metadata, dict)
    assert summary.metadata["summarized_messages"] == 9


async def test_a_single_message_is_never_summarised(engine: Engine, namespace: str) -> None:
    await engine.windows.configure(namespace, "s", WindowConfig("token_threshold", max_tokens=1))
    added = await engine.windows.add(namespace, "s", numbered(1, tokens=500))
    context = await engine.windows.context(namespace, "s")
    assert (context.messages, context.total_tokens) == (added, added[0].tokens)


async def test_a_summary_of_what_is_gone_is_not_applied(engine: Engine, namespace: str) -> None:
    store = engine.windows._store
    summary = WindowMessage.of(uuid4(), "summary", "too late", {}, datetime.now(UTC), compacted=True)
    part = await engine.windows.add(namespace, "s", says("one", "two"))
    await engine.windows.delete(namespace, "s")
    assert await store.replace(namespace, "s", part, summary) is False
    added = await engine.windows.add(namespace, "s", says("one", "two", "three"))
    assert await store.replace(namespace, "s", part, summary) is False
    assert await store.replace(namespace, "s", added[:2], summary) is True
    assert await store.replace(namespace, "s", added[:2], summary) is False
    assert await engine.windows.messages(namespace, "s") == [summary, added[2]]


async def test_whoever_is_slower_adopts_the_other_summary(engine: Engine, stored: Settings, namespace: str) -> None:
    """Another process is faster while this one summarises."""

    class Brief(Joining):
        async def summarise(self, namespace: str, messages: Sequence[WindowMessage], max_tokens: int) -> Summary:
            return Summary("in short", "llm")

    faster = ContextWindow(engine.windows._store, Brief(), DEFAULTS)

    class Overtaken(Joining):
        async def summarise(self, namespace: str, messages: Sequence[WindowMessage], max_tokens: int) -> Summary:
            await faster.context(namespace, "s")
            return Summary("never to be seen", "llm")

    slower = ContextWindow(engine.windows._store, Overtaken(), DEFAULTS)
    await slower.configure(namespace, "s", WindowConfig("token_threshold", max_tokens=199))
    await slower.add(namespace, "s", says(*("We are here " * 11 for _ in range(6))))
    context = await slower.context(namespace, "s")
    assert "never to be seen" not in contents(context.messages)
    assert context.messages == await faster.messages(namespace, "s")


async def test_nothing_is_held_while_a_summary_is_written(stored: Settings, namespace: str) -> None:
    """With a single connection, a summariser that writes to the session would wait for ever for its own caller."""
    engine = await Engine.open(stored.model_copy(update={"database_connections": 1}))

    class Talkative(Joining):
        async def summarise(self, namespace: str, messages: Sequence[WindowMessage], max_tokens: int) -> Summary:
            await engine.windows.add(namespace, "s", says("and meanwhile"))
            return Summary("much", "llm")

    try:
        window = ContextWindow(engine.windows._store, Talkative(), DEFAULTS)
        await window.configure(namespace, "s", THRESHOLD)
        added = await window.add(namespace, "s", numbered(10))
        assert contents((await window.context(namespace, "s")).messages) == ["much", *contents(added[7:])]
        assert contents(await window.messages(namespace, "s")) == ["much", *contents(added[7:]), "and meanwhile"]
    finally:
        await engine.close()


async def test_many_writers_and_readers_lose_nothing_and_tell_nothing_twice(stored: Settings, namespace: str) -> None:
    """Two engines share nothing but their stores, as two processes do."""
    engines = [await Engine.open(stored), await Engine.open(stored)]
    windows = [ContextWindow(engine.windows._store, Joining(), DEFAULTS) for engine in engines]
    await windows[0].configure(namespace, "s", WindowConfig("token_threshold", max_tokens=60))
    acknowledged: list[str] = []
    writing = True

    async def write(writer: int) -> None:
        for number in range(25):
            words = [f"w{writer}x{number}x{part}" for part in range(2)]
            await windows[writer % 2].add(namespace, "s", says(*words))
            acknowledged.extend(words)

    async def read(reader: int) -> None:
        while writing:
            before = set(acknowledged)
            window = windows[reader % 2]
            seen = await window.messages(namespace, "s") if reader == 0 else await compacted(window)
            told = " ".join(contents(seen)).split()
            assert len(told) == len(set(told))
            assert before <= set(told)

    async def compacted(window: ContextWindow) -> list[WindowMessage]:
        return (await window.context(namespace, "s")).messages

    readers = [asyncio.create_task(read(reader)) for reader in range(5)]
    await asyncio.gather(*(write(writer) for writer in range(6)))
    writing = False
    await asyncio.gather(*readers)

    summary, *rest = await windows[0].messages(namespace, "s")
    told = " ".join(contents([summary, *rest])).split()
    assert sorted(told) == sorted(acknowledged)
    assert isinstance(summary.metadata, dict)
    assert summary.metadata["summarized_messages"] + len(rest) == len(acknowledged) == 300
    for writer in range(6):
        assert [w for w in told if w.startswith(f"w{writer}x")] == [
            f"w{writer}x{number}x{part}" for number in range(25) for part in range(2)
        ]
    for engine in engines:
        await engine.close()


async def test_readers_of_one_process_share_a_summary(engine: Engine, namespace: str) -> None:
    llm = Answering("All of them said hello.")
    window = ContextWindow(engine.windows._store, Summarising(llm), DEFAULTS)
    await window.configure(namespace, "s", WindowConfig("token_threshold", max_tokens=150))
    await window.add(namespace, "s", numbered(10))
    contexts = await asyncio.gather(*(window.context(namespace, "s") for _ in range(8)))
    assert len(llm.prompts) == 1
    assert all(context == contexts[0] for context in contexts)


async def test_an_llm_writes_the_summary(engine: Engine, namespace: str) -> None:
    llm = Answering(" They counted to six. ")
    window = ContextWindow(engine.windows._store, Summarising(llm), DEFAULTS)
    await window.configure(namespace, "s", THRESHOLD)
    await window.add(namespace, "s", numbered(10))
    summary = (await window.context(namespace, "s")).messages[0]
    assert summary.content == "They counted to six."
    assert isinstance(summary.metadata, dict)
    assert summary.metadata["summary_method"] == "llm"
    assert "llm_error" not in summary.metadata
    (prompt,) = llm.prompts
    assert (prompt.namespace, prompt.feature) == (namespace, "summary")
    assert "user: Number 0" in prompt.user
    assert "user: Number 5" in prompt.user
    assert "Number 7" not in prompt.user


async def test_an_llm_that_says_too_much_is_cut_short(engine: Engine, namespace: str) -> None:
    llm = Answering("They \x00counted, one after the other, to a number as high as six. " * 6)
    window = ContextWindow(engine.windows._store, Summarising(llm), DEFAULTS)
    await window.configure(namespace, "s", THRESHOLD)
    await window.add(namespace, "s", numbered(10))
    context = await window.context(namespace, "s")
    assert context.total_tokens <= 100
    assert "counted" in context.messages[0].content


@pytest.mark.parametrize(
    ("answer", "category"),
    [
        (Unavailable("down"), "Unavailable"),
        (LimitReached("spent"), "LimitReached"),
        (Misconfigured("API key not configured"), "Misconfigured"),
        ("   ", "Unavailable"),
        ("longer than all of it " * 100, "Unavailable"),
    ],
    ids=["down", "spent", "no key", "empty", "too long"],
)
async def test_without_the_llm_sentences_are_taken_and_the_summary_says_so(
    engine: Engine, namespace: str, answer: str | RecollectError, category: str
) -> None:
    window = ContextWindow(engine.windows._store, Summarising(Answering(answer)), DEFAULTS)
    await window.configure(namespace, "s", THRESHOLD)
    await window.add(namespace, "s", numbered(10))
    summary = (await window.context(namespace, "s")).messages[0]
    assert isinstance(summary.metadata, dict)
    assert summary.metadata["summary_method"] == "extractive"
    assert summary.metadata["llm_error"] == category
    assert "Number" in summary.content


async def test_a_deleted_session_is_gone_with_all_that_was_set(engine: Engine, namespace: str) -> None:
    await engine.windows.add(namespace, "other", says("Not me."))
    await engine.windows.configure(namespace, "s", THRESHOLD)
    await engine.windows.add(namespace, "s", numbered(10))
    await engine.windows.context(namespace, "s")
    assert await engine.windows.delete(namespace, "s") is True
    assert await engine.windows.delete(namespace, "s") is False
    assert await engine.windows.messages(namespace, "s") == []
    assert (await engine.windows.context(namespace, "s")).strategy == "sliding_window"
    assert contents(await engine.windows.messages(namespace, "other")) == ["Not me."]


async def test_a_session_that_is_only_set_up_can_be_deleted(engine: Engine, namespace: str) -> None:
    await engine.windows.configure(namespace, "s", THRESHOLD)
    assert await engine.windows.delete(namespace, "s") is True
    assert await engine.windows.delete(namespace, "s") is False


async def test_a_session_is_deleted_while_others_write_to_it(engine: Engine, namespace: str) -> None:
    async def write(number: int) -> None:
        await engine.windows.add(namespace, "s", says(f"message {number}"))

    await asyncio.gather(
        *(write(number) for number in range(30)), *(engine.windows.delete(namespace, "s") for _ in range(5))
    )
    await engine.windows.delete(namespace, "s")
    assert await engine.windows.messages(namespace, "s") == []


async def test_namespaces_share_no_session(engine: Engine, namespace: str) -> None:
    """Nor may a name that reads like a namespace and a session together reach into it."""
    await engine.windows.add(f"{namespace}:a", "b", says("Mine."))
    await engine.windows.configure(f"{namespace}:a", "b", THRESHOLD)
    for place, session in ((namespace, "a:b"), (namespace, "b"), (f"{namespace}:a:b", "b")):
        assert await engine.windows.messages(place, session) == []
        assert (await engine.windows.context(place, session)).strategy == "sliding_window"
        assert await engine.windows.delete(place, session) is False
    assert contents(await engine.windows.messages(f"{namespace}:a", "b")) == ["Mine."]


@pytest.mark.parametrize("session_id", ["", " ", "a\x00b", "x" * 256])
async def test_a_bad_session_id_is_refused(engine: Engine, namespace: str, session_id: str) -> None:
    with pytest.raises(Invalid, match="session_id"):
        await engine.windows.messages(namespace, session_id)
    with pytest.raises(Invalid, match="session_id"):
        await engine.windows.add(namespace, session_id, says("Hello."))


async def test_odd_session_ids_are_sessions_of_their_own(engine: Engine, namespace: str) -> None:
    odd = ["}", "{x}", "a/b", "*", "你好", "x}:note", "x}:items", "x"]
    for session_id in odd:
        await engine.windows.add(namespace, session_id, says(f"In {session_id}"))
        await engine.windows.configure(namespace, session_id, WindowConfig(max_messages=7))
    for session_id in odd:
        assert contents(await engine.windows.messages(namespace, session_id)) == [f"In {session_id}"]


async def test_what_is_added_is_in_the_log_and_recall_finds_it(log_engine: Engine, namespace: str) -> None:
    engine = log_engine
    await engine.windows.configure(namespace, "s", THRESHOLD)
    await engine.windows.add(namespace, "s", [*says("Parrots can talk."), *numbered(10)])
    await engine.windows.context(namespace, "s")
    async with engine.database.reading(namespace) as db:
        assert len(await engine.capabilities.log.recent(db, "s", 100)) == 11
    found = await engine.recall.recall(namespace, "parrots")
    assert [memory.text for memory in found.memories] == ["Parrots can talk."]


async def test_what_other_doors_write_is_in_the_window(log_engine: Engine, namespace: str) -> None:
    talk = await log_engine.conversations.create(namespace, "ann", None)
    await log_engine.conversations.record(namespace, talk.id, "Hello", "Hi", None)
    assert contents(await log_engine.windows.messages(namespace, talk.id)) == ["Hello", "Hi"]


async def test_a_long_session_goes_in_steps_with_its_passages_and_their_counts(
    log_engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = log_engine
    monkeypatch.setattr(removal, "ITEMS_AT_ONCE", 10)
    await engine.windows.add(namespace, "s", says(*(f"Cats purr {n}" for n in range(30))))
    await engine.indexer.flush(namespace)
    assert await statistics(engine, namespace) != {}
    assert await engine.windows.delete(namespace, "s") is True
    assert await counts(engine, namespace) == dict.fromkeys(TABLES, 0)
    assert await statistics(engine, namespace) == {}
    async with engine.database.reading(namespace) as db:
        assert await engine.capabilities.sessions.find(db, "s") is None
        assert await engine.capabilities.log.recent(db, "s", 1) == []


async def test_what_was_learnt_from_a_session_alone_goes_with_it(log_engine: Engine, namespace: str) -> None:
    engine = log_engine
    for session in ("s", "other"):
        await engine.windows.add(namespace, session, says("Ann is afraid of parrots."))
    async with engine.database.reading(namespace) as db:
        of_both = [(await engine.capabilities.log.recent(db, session, 1))[0].seq for session in ("s", "other")]
    await engine.cognition.compress(namespace, "Ann fears parrots", of_both[:1])
    shared = await engine.cognition.compress(namespace, "Parrots frighten Ann", of_both)
    assert await engine.windows.delete(namespace, "s")
    found = await engine.recall.recall(namespace, "parrots", Scope(kinds=("insight",)))
    assert [memory.id for memory in found.memories] == [str(shared.insight.id)]


async def test_a_forgotten_message_does_not_live_on_in_a_summary(log_engine: Engine, namespace: str) -> None:
    engine = log_engine
    await engine.windows.configure(namespace, "s", THRESHOLD)
    added = await engine.windows.add(namespace, "s", [*says("My card is 4711."), *numbered(10)])
    assert "4711" in (await engine.windows.context(namespace, "s")).messages[0].content
    await engine.forget.item(namespace, str(added[0].id))
    assert await engine.windows.messages(namespace, "s") == added[1:]
    assert "4711" not in " ".join(contents((await engine.windows.context(namespace, "s")).messages))


async def test_without_redis_every_call_fails_and_afterwards_none(settings: Settings, namespace: str) -> None:
    """The engine opens without Redis, and needs no restart when it comes, goes and comes again."""
    with stoppable() as server:
        engine = await Engine.open(with_redis(settings, url_of(server)))
        window = engine.windows

        async def fails() -> None:
            for call in (
                window.add(namespace, "s", says("lost")),
                window.messages(namespace, "s"),
                window.context(namespace, "s"),
                window.configure(namespace, "s", THRESHOLD),
                window.delete(namespace, "s"),
            ):
                with pytest.raises(Unavailable, match=r"^Redis not initialized$"):
                    await call

        try:
            await fails()
            server.start()
            kept = await window.add(namespace, "s", says("kept"))
            server.stop()
            await fails()
            server.start()
            assert await window.messages(namespace, "s") == kept
        finally:
            await engine.close()


async def test_an_address_that_cannot_be_used_is_named_without_its_password(settings: Settings) -> None:
    with pytest.raises(Misconfigured, match="RECOLLECT_REDIS_URL") as refused:
        await Engine.open(with_redis(settings, "http://ann:hunter2@localhost"))
    assert "hunter2" not in str(refused.value)


async def test_a_reader_gets_a_compacted_window_and_changes_none(engine: Engine, namespace: str) -> None:
    await engine.windows.add(namespace, "s", numbered(8))
    await engine.windows.configure(namespace, "s", THRESHOLD)
    with acting("rest", "a reader", "read"):
        assert (await engine.windows.context(namespace, "s")).messages[0].compacted
        for refused in (
            engine.windows.add(namespace, "s", says("more")),
            engine.windows.configure(namespace, "s", WindowConfig()),
            engine.windows.delete(namespace, "s"),
        ):
            with pytest.raises(Forbidden, match="this key has role read"):
                await refused
    with acting("rest", "a writer", "write"), pytest.raises(Forbidden, match="needs a key with role admin"):
        await engine.windows.delete(namespace, "s")
    assert len(await engine.windows.messages(namespace, "s")) > 1
