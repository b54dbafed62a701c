"""Opened: the engine of a MemoryManager, opened on first use, and how every call to it reports."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import Self
from weakref import WeakKeyDictionary

from opentelemetry.trace import Span

from recollect import checks, origin, tasks
from recollect import settings as environment
from recollect.doors.library import spans
from recollect.engine import Engine
from recollect.errors import Conflict, Invalid, LimitReached, Misconfigured, Unavailable
from recollect.settings import Settings


class Opened:
    """Opens an engine for each event loop that uses it, and closes it."""

    def __init__(self, settings: Settings | None = None, *, namespace: str | None = None) -> None:
        if settings is not None and not isinstance(settings, Settings):
            raise Invalid(
                f"MemoryManager takes Settings, not {type(settings).__name__}: for example Settings(database_url=...)"
            )
        self._settings = settings
        self._namespace = None if namespace is None else checks.namespace(namespace)
        # An engine lives in the event loop that opened it; a manager may be used from several, one after the other.
        self._engines: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[Engine]] = WeakKeyDictionary()

    async def __aenter__(self) -> Self:
        with storage_failures():
            await self._engine()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish accepted writes and close the database. The next call opens it again."""
        opening = self._engines.pop(asyncio.get_running_loop(), None)
        if opening is not None and not _failed(opening):
            with storage_failures():
                if not opening.done():
                    await tasks.end(opening)
                if not _failed(opening):
                    await opening.result().close()

    @asynccontextmanager
    async def _call(self, name: str) -> AsyncIterator[Span]:
        """One call of a public method: a span, a line in the audit log, and failures as the contract names them."""
        with storage_failures(), spans.operation(name) as span:
            engine = self._open_engine()
            if engine is not None and not engine.audit.is_on:
                yield span
                return
            with origin.touching() as touched:
                try:
                    yield span
                except BaseException as problem:
                    # A first call may fail before the engine is open; without a database there is no log.
                    if (engine := self._open_engine()) is not None:
                        await engine.audit.record_failed(self._scope(engine), name, problem, touched)
                    raise
                if (engine := self._open_engine()) is not None:
                    await engine.audit.record(self._scope(engine), name, "done", touched)

    def _open_engine(self) -> Engine | None:
        opening = self._engines.get(asyncio.get_running_loop())
        return None if opening is None or not opening.done() or _failed(opening) else opening.result()

    def _scope(self, engine: Engine) -> str:
        return self._namespace or engine.settings.namespace

    async def _engine(self) -> Engine:
        loop = asyncio.get_running_loop()
        opening = self._engines.get(loop)
        if opening is None or _failed(opening):
            for gone in [other for other in self._engines if other.is_closed()]:
                del self._engines[gone]
            opening = self._engines[loop] = loop.create_task(Engine.open(self._settings or environment.load()))
        # A caller that is cancelled must not cancel the opening that others wait for.
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            is_cancelled = task is not None and task.cancelling() > 0
            if opening.cancelled() and not is_cancelled:
                raise Unavailable("The MemoryManager was closed while it was opening: try again") from None
            raise


def _failed(opening: "asyncio.Task[Engine]") -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)


@contextmanager
def storage_failures() -> Iterator[None]:
    """Raise what the contract's callers catch where storage fails."""
    try:
        yield
    except (Unavailable, Misconfigured, Conflict, LimitReached) as problem:
        from recollect.doors.library.errors import StorageError  # sqlalchemy is slow to import

        raise StorageError(problem) from problem
