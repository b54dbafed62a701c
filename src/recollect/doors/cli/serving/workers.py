"""Several processes that serve one socket: started together, restarted when one dies, stopped together."""

import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Semaphore
from threading import Thread
from typing import Any

from recollect.errors import Misconfigured

# A worker that dies sooner than this at the first start would only die again.
SHORTEST_LIFE_SECONDS = 5.0

# Later the cause may pass, such as too little memory: it is tried again after a pause.
PAUSE_SECONDS = 1.0

log = logging.getLogger("recollect.workers")

_spawning = multiprocessing.get_context("spawn")


def supervise(count: int, work: Callable[..., None], values: tuple[Any, ...], started: Callable[[], None]) -> None:
    """Run `work(*values, tell)` in so many processes until a signal; each calls `tell()` when it serves."""
    supervisor = _Supervisor(count, work, values)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, supervisor.stop)
    supervisor.start()
    if supervisor.wait_until_all_serve():
        started()
    supervisor.watch()


class _Supervisor:
    def __init__(self, count: int, work: Callable[..., None], values: tuple[Any, ...]) -> None:
        self._count = count
        self._work = work
        self._values = values
        self._serving = _spawning.Semaphore(0)
        self._workers: dict[SpawnProcess, float] = {}
        self._stopped_by: int | None = None
        self._all_have_served = False

    def start(self) -> None:
        for _ in range(self._count):
            self._begin()

    def stop(self, number: int, frame: object) -> None:
        """Ask every worker to finish what it has accepted."""
        self._stopped_by = number
        for worker in self._workers:
            worker.terminate()

    def wait_until_all_serve(self) -> bool:
        """False when a worker ended, or a signal came, before all did."""
        serving = 0
        while serving < self._count:
            if self._serving.acquire(timeout=0.2):
                serving += 1
            elif self._stopped_by is not None or not all(worker.is_alive() for worker in self._workers):
                return False
        self._all_have_served = True
        return True

    def watch(self) -> None:
        """Until all have ended: after a signal, or because they cannot live."""
        while self._workers:
            wait([worker.sentinel for worker in self._workers])
            for worker in [worker for worker in self._workers if not worker.is_alive()]:
                began = self._workers.pop(worker)
                if self._stopped_by is not None:
                    continue
                died_young = time.monotonic() - began < SHORTEST_LIFE_SECONDS
                if died_young and not self._all_have_served:
                    self.stop(signal.SIGTERM, None)
                    raise Misconfigured(f"A server process exited at start-up with code {worker.exitcode}: see its log")
                log.error("a server process exited and is being restarted", extra={"exit_code": worker.exitcode})
                if died_young:
                    time.sleep(PAUSE_SECONDS)
                if self._stopped_by is None:
                    self._begin()
        if self._stopped_by == signal.SIGINT:
            sys.exit(128 + signal.SIGINT)

    def _begin(self) -> None:
        worker = _spawning.Process(target=_work_on, args=(self._work, self._values, self._serving))
        worker.start()
        self._workers[worker] = time.monotonic()


def _work_on(work: Callable[..., None], values: tuple[Any, ...], serving: Semaphore) -> None:
    """What a worker does. A semaphore can be handed to another process, its method cannot."""
    Thread(target=_stop_with_the_supervisor, daemon=True).start()
    work(*values, serving.release)


def _stop_with_the_supervisor() -> None:
    """Stop when the supervisor is gone: a killed one cannot stop its workers, and they would keep the port."""
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        wait([supervisor.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
