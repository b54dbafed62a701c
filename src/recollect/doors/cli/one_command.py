"""An engine for the length of one command."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from recollect import logs
from recollect import settings as environment
from recollect.engine import Engine
from recollect.identifiers import uuid7
from recollect.settings import Settings

T = TypeVar("T")

_log = logging.getLogger("recollect.requests")


def with_engine(work: Callable[[Engine], Awaitable[T]], *, will_search: bool = False) -> T:
    """Open the memory that the environment names, do the work, close it.

    Without an indexer: a command that lives for a moment would only begin work that it cannot finish.
    """
    settings = environment.load()

    async def run() -> T:
        engine = await Engine.open(settings.model_copy(update={"indexer": False}), will_search=will_search)
        try:
            return await work(engine)
        finally:
            await engine.close()

    return told(settings, lambda: asyncio.run(run()))


def told(settings: Settings, work: Callable[[], T]) -> T:
    """Do the work of a command; for DEBUG, one line in the log says which and how long it took.

    At other levels a command prints its answer and nothing else.
    """
    if settings.log_level != "DEBUG":
        return work()
    logs.configure(settings.log_level, settings.log_format)
    began = time.perf_counter()
    with logs.handling(str(uuid7())):
        try:
            return work()
        finally:
            _log.debug(
                "%s",
                click.get_current_context().command_path,
                extra={
                    "namespace": settings.namespace,
                    "door": "cli",
                    "ms": round((time.perf_counter() - began) * 1000, 1),
                },
            )
