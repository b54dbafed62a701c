"""Long work in short steps: others run between them, it can be ended, and nothing of it is lost."""

import asyncio
from collections.abc import Iterator

import pytest

from recollect import steps
from recollect.steps import in_steps


@pytest.fixture
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every item is a step of its own."""
    monkeypatch.setattr(steps, "STEP_SECONDS", -1.0)


async def turns_of_others(heard: list[str], name: str = "other") -> None:
    while True:
        heard.append(name)
        await asyncio.sleep(0)


async def test_everything_comes_in_order_and_steps_without_an_item_bring_none() -> None:
    assert await in_steps(n if n % 3 else None for n in range(10)) == [1, 2, 4, 5, 7, 8]
    assert await in_steps(iter(())) == []


@pytest.mark.usefixtures("short_steps")
async def test_others_have_a_turn_between_two_steps() -> None:
    heard: list[str] = []

    def work() -> Iterator[int]:
        for number in range(50):
            heard.append("work")
            yield number

    other = asyncio.ensure_future(turns_of_others(heard))
    assert await in_steps(work()) == list(range(50))
    other.cancel()
    longest = max(map(len, "".join("w" if name == "work" else " " for name in heard).split()))
    assert longest <= 2


async def test_what_is_done_in_one_step_makes_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "STEP_SECONDS", 3600.0)
    heard: list[str] = []
    other = asyncio.ensure_future(turns_of_others(heard))
    await in_steps(range(1000))
    other.cancel()
    assert heard == []


@pytest.mark.usefixtures("short_steps")
async def test_one_long_work_is_under_way_at_a_time() -> None:
    heard: list[str] = []

    def work(name: str) -> Iterator[int]:
        for number in range(20):
            heard.append(name)
            yield number

    await asyncio.gather(in_steps(work("a")), in_steps(work("b")))
    # The first step is taken before anybody knows that the work is long.
    assert "".join(heard[2:]) == "a" * 19 + "b" * 19


@pytest.mark.usefixtures("short_steps")
async def test_work_ends_where_it_is_cancelled_and_lets_the_next_one_go_on() -> None:
    done: list[int] = []

    def endless() -> Iterator[int]:
        while True:
            done.append(1)
            yield 1

    task = asyncio.ensure_future(in_steps(endless()))
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await in_steps(range(3)) == [0, 1, 2]
    assert len(done) < 10
