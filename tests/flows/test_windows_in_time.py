"""Windows at earlier moments: the summary of then, what was said since, and nothing that was said later."""

from datetime import UTC, datetime, timedelta

import pytest

from recollect.engine import Engine
from recollect.memory.log import NewMessage
from recollect.memory.windows import WindowConfig

FIRST = datetime(2024, 3, 1, tzinfo=UTC)


def line(day: int, role: str = "user", text: str | None = None) -> NewMessage:
    return NewMessage(role, text or f"On day {day} " + "we " * 18, at=FIRST + timedelta(days=day))


async def compacted(engine: Engine, namespace: str, days: list[int]) -> None:
    """A session in which something was said on these days, one after the other, and summed up whenever it was read."""
    await engine.windows.configure(namespace, "s", WindowConfig("token_threshold", max_tokens=80))
    for day in days:
        await engine.windows.add(namespace, "s", [line(day)])
        await engine.windows.context(namespace, "s")


async def test_a_window_has_the_last_summary_of_its_moment(engine: Engine, namespace: str) -> None:
    await engine.windows.add(namespace, "s", [line(0, "system", "Be kind.")])
    await compacted(engine, namespace, list(range(1, 15)))
    seen: list[int] = []
    for day in range(1, 15):
        then = await engine.windows.context(namespace, "s", FIRST + timedelta(days=day))
        assert then.messages[0].content == "Be kind."
        assert then.messages[-1].content.startswith(f"On day {day} ")
        assert all(message.at <= FIRST + timedelta(days=day) for message in then.messages)
        summaries = [message for message in then.messages if message.compacted]
        assert len(summaries) <= 1
        for summary in summaries:
            assert isinstance(summary.metadata, dict)
            seen.append(summary.metadata["summarized_messages"])
        # The summary and the messages behind it are all that had been said.
        said = sum(not message.compacted and not message.pinned for message in then.messages)
        assert said + (seen[-1] if summaries else 0) == day
    assert len(set(seen)) > 2
    assert then.messages == (await engine.windows.context(namespace, "s")).messages


async def test_a_summary_that_tells_of_a_later_time_is_not_shown(engine: Engine, namespace: str) -> None:
    await compacted(engine, namespace, [1, 9, 2, 3, 4, 5, 6, 7, 8])
    then = await engine.windows.context(namespace, "s", FIRST + timedelta(days=5))
    assert [message.at.day - 1 for message in then.messages] == [1, 2, 3, 4, 5]
    assert "day 9" not in " ".join(message.content for message in then.messages)


async def test_what_was_forgotten_is_in_no_window(engine: Engine, namespace: str) -> None:
    await compacted(engine, namespace, list(range(1, 9)))
    (first, *_) = await engine.conversations.messages(namespace, "s", 100)
    await engine.forget.item(namespace, f"message:{first.id}")
    for day in range(1, 9):
        then = await engine.windows.messages(namespace, "s", as_of=FIRST + timedelta(days=day))
        assert "On day 1 " not in " ".join(message.content for message in then)


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_window_of_the_past_is_not_compacted(engine: Engine, namespace: str) -> None:
    await engine.windows.add(namespace, "s", [line(day) for day in range(1, 9)])
    await engine.windows.configure(namespace, "s", WindowConfig("token_threshold", max_tokens=80))
    then = await engine.windows.context(namespace, "s", FIRST + timedelta(days=8))
    assert len(then.messages) == 8
    assert not any(message.compacted for message in await engine.windows.messages(namespace, "s"))
