"""Background work ends when it is told to, on every Python, also when something in it loses a cancellation."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from recollect import origin, tasks
from tests.waiting import DEADLINE_SECONDS, wait_until

# Where the wait may be when its event is set: it is over after three turns of the loop.
TURNS = range(4)


async def _loses_a_cancellation() -> None:
    """As asyncio.wait_for of Python 3.11 does, whenever it is unlucky."""
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        await asyncio.sleep(3600)


async def _started_with(work: Callable[[], Any]) -> tasks.BackgroundTask:
    task = tasks.BackgroundTask("test")
    task.start(work())
    await asyncio.sleep(0)
    return task


def _ends(main: Callable[[], Any]) -> bool:
    """Whether asyncio.run comes to an end; in a thread, so that a test of it does."""
    running = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    running.start()
    running.join(DEADLINE_SECONDS)
    return not running.is_alive()


def test_asyncio_run_ends_though_the_work_loses_its_cancellation() -> None:
    async def main() -> None:
        await _started_with(_loses_a_cancellation)

    assert _ends(main)


def test_stop_ends_work_that_loses_its_cancellation() -> None:
    async def main() -> None:
        await (await _started_with(_loses_a_cancellation)).stop()

    assert _ends(main)


def test_a_block_ends_what_runs_beside_it_though_that_loses_its_cancellation() -> None:
    async def main() -> None:
        async with tasks.beside(_loses_a_cancellation()):
            await asyncio.sleep(0)

    assert _ends(main)


@pytest.mark.parametrize("turns", TURNS)
async def test_a_cancellation_is_not_lost_when_the_event_is_set_at_that_moment(turns: int) -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(tasks.set_within(3600, event))
    await asyncio.sleep(0)
    event.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    if waiting.cancel():
        with pytest.raises(asyncio.CancelledError):
            await waiting
    else:
        assert waiting.result()


async def test_a_wait_ends_by_itself_when_nothing_happens() -> None:
    assert not await tasks.set_within(0.01, asyncio.Event())


async def test_work_that_takes_too_long_is_cancelled() -> None:
    event = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            event.set()

    assert not await tasks.ended_within(0.01, work())
    assert event.is_set()


async def test_work_that_fails_in_time_fails_whoever_waits() -> None:
    async def work() -> None:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        await tasks.ended_within(60, work())


def test_what_nobody_closed_is_closed_at_the_end_after_the_last_words_of_others() -> None:
    heard = []

    async def note(word: str) -> None:
        heard.append(word)

    async def other() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.01)
            await note("last words")

    async def main() -> None:
        kept = [tasks.ClosedAtTheEnd(lambda: note("closed")), asyncio.create_task(other())]
        await asyncio.sleep(0)
        assert kept

    assert _ends(main)
    assert heard == ["last words", "closed"]


def test_what_nobody_refers_to_any_more_is_still_closed_at_the_end() -> None:
    heard = []

    async def close() -> None:
        heard.append("closed")

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            heard.append("work ended")

    async def main() -> None:
        tasks.ClosedAtTheEnd(close)
        await _started_with(work)
        gc.collect()
        heard.append("end of main")

    assert _ends(main)
    assert heard[0] == "end of main"
    assert sorted(heard[1:]) == ["closed", "work ended"]


def test_tasks_of_a_loop_that_was_closed_are_let_go() -> None:
    async def leave_it(heard: list[str]) -> "weakref.ref[asyncio.Task[Any]]":
        closing = tasks.ClosedAtTheEnd(partial(note, heard))
        await asyncio.sleep(0)
        return weakref.ref(closing._task)

    async def note(heard: list[str]) -> None:
        heard.append("closed")

    loop = asyncio.new_event_loop()
    left = loop.run_until_complete(leave_it([]))
    assert left() is not None
    loop.close()
    asyncio.run(leave_it([]))
    gc.collect()
    assert left() is None


def test_what_was_closed_is_not_closed_again_at_the_end() -> None:
    heard = []

    async def close() -> None:
        heard.append("closed")

    async def main() -> None:
        closing = tasks.ClosedAtTheEnd(close)
        await asyncio.sleep(0)
        await closing.close()

    assert _ends(main)
    assert heard == ["closed"]


def test_asyncio_run_does_not_wait_for_a_thread() -> None:
    release, working = threading.Event(), threading.Event()

    def work() -> None:
        working.set()
        release.wait()

    async def main() -> None:
        waiting = asyncio.ensure_future(tasks.in_thread(work))
        await asyncio.sleep(0)
        wait_until(working.is_set, "the thread works")
        waiting.cancel()

    assert _ends(main)
    release.set()


async def test_more_work_than_there_are_threads_is_all_done() -> None:
    assert await asyncio.gather(*(tasks.in_thread(pow, n, 2) for n in range(100))) == [n * n for n in range(100)]


async def test_work_in_a_thread_knows_the_context_and_fails_its_caller() -> None:
    asked: ContextVar[str] = ContextVar("asked")
    asked.set("by me")
    assert await tasks.in_thread(asked.get) == "by me"
    with pytest.raises(ZeroDivisionError):
        await tasks.in_thread(divmod, 1, 0)


async def test_a_background_task_does_not_have_the_rights_of_the_caller_who_starts_it() -> None:
    roles: asyncio.Queue[origin.Role] = asyncio.Queue()

    async def work() -> None:
        roles.put_nowait(origin.current().role)

    task = tasks.BackgroundTask("test")
    with origin.acting("rest", "a reader", "read"):
        task.start(work())
    assert await roles.get() == "admin"
    await task.stop()
