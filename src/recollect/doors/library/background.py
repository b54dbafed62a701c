"""One background event loop a process, for callers that are not asynchronous."""

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from recollect.engine import Engine
from recollect.errors import Unavailable

Result = TypeVar("Result")

CLOSE_SECONDS = 30


class BackgroundEngine:
    """An engine on an event loop in a daemon thread, opened on first use and again after a fork."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)
        atexit.register(self.close)

    def _reset(self) -> None:
        """A forked child inherits neither the thread nor the connections of its parent."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._engine: Engine | None = None

    def engine(self) -> Engine:
        """The engine of this process."""
        if self._engine is None:
            with self._lock:
                if self._engine is None:
                    self._engine = self._on(self._running_loop(), Engine.open())
        return self._engine

    def run(self, call: Coroutine[Any, Any, Result]) -> Result:
        """Run one call on the background loop and wait for it."""
        loop = self._loop
        if loop is None:
            call.close()
            raise Unavailable("The context service was closed while this call began. Call again.")
        return self._on(loop, call)

    def close(self) -> None:
        """Finish accepted writes and stop the loop."""
        with self._lock:
            loop, engine = self._loop, self._engine
            self._loop = self._engine = None
            if loop is not None:
                if engine is not None:
                    asyncio.run_coroutine_threadsafe(engine.close(), loop).result(CLOSE_SECONDS)
                loop.call_soon_threadsafe(loop.stop)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._serve, args=(self._loop,), name="recollect", daemon=True).start()
        return self._loop

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()

    @staticmethod
    def _on(loop: asyncio.AbstractEventLoop, call: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(call, loop).result()


background = BackgroundEngine()
