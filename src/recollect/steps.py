"""Long work on the event loop in short steps: other tasks get a turn every few milliseconds.

A thread would not do. It holds the interpreter as much as the loop does, and cannot be ended.
"""

import asyncio
from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import TypeVar
from weakref import WeakKeyDictionary

STEP_SECONDS = 0.003

_Item = TypeVar("_Item")

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


async def in_steps(work: Iterable[_Item | None]) -> list[_Item]:
    """Everything that a lazy iterable yields; between two of its items others may run. None is a step without an item.

    What is done within the first step costs nothing more. Of longer works, one is under way at a time, so that many of
    them make no one else wait longer than one.
    """
    items: list[_Item] = []
    rest = iter(work)
    if _one_step(rest, items):
        return items
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        while True:
            await asyncio.sleep(0)
            if _one_step(rest, items):
                return items


def _one_step(rest: Iterator[_Item | None], items: list[_Item]) -> bool:
    """Whether the work is finished."""
    until = perf_counter() + STEP_SECONDS
    for item in rest:
        if item is not None:
            items.append(item)
        if perf_counter() > until:
            return False
    return True
