"""What calls cost besides time: CPU of this process and of PostgreSQL, and messages sent to it (Linux)."""

import os
import time
from asyncio import selector_events
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.engine import Engine

PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call costs, on average: user and system time in milliseconds, and writes to a socket."""

    ours: float
    postgres: float
    sends: float

    def __str__(self) -> str:
        total = self.ours + self.postgres
        cpu = f"CPU {total:.1f} ms: this process {self.ours:.1f} ms, PostgreSQL {self.postgres:.1f} ms"
        return f"{cpu}; {self.sends:.1f} socket sends"


class Server:
    """The PostgreSQL server that an engine works with, as processes of this machine."""

    def __init__(self, postmaster: int) -> None:
        self._postmaster = postmaster

    @classmethod
    async def of(cls, engine: Engine) -> "Server":
        """The parent of every backend is the postmaster."""
        async with engine.database.alone() as connection:
            return cls(cls.postmaster_of(await connection.fetchval("select pg_backend_pid()")))

    @staticmethod
    def postmaster_of(backend: int) -> int:
        return int(_stat(PROC / str(backend))[1])

    def cpu_seconds(self) -> float:
        """Of the postmaster and of all its children, those that have ended included."""
        utime, stime, of_ended, in_ended = map(int, _stat(PROC / str(self._postmaster))[11:15])
        return (utime + stime + of_ended + in_ended) / _TICKS + sum(map(_on_cpu, self._children()))

    def _children(self) -> Iterator[Path]:
        for task in (PROC / str(self._postmaster) / "task").iterdir():
            yield from (PROC / pid for pid in (task / "children").read_text().split())


async def cost(server: Server, call: Callable[[], Awaitable[object]], count: int) -> Cost:
    """The mean over calls that are made one after the other."""
    with _counted_sends() as sends:
        ours, postgres = time.process_time(), server.cpu_seconds()
        for _ in range(count):
            await call()
        ours, postgres = time.process_time() - ours, server.cpu_seconds() - postgres
    return Cost(ours * 1000 / count, postgres * 1000 / count, len(sends) / count)


@contextmanager
def _counted_sends() -> Iterator[list[None]]:
    """One entry for each write of asyncpg, which asyncio hands to the socket at once.

    Benchmarks have no other connections on an event loop, so that all of them go to PostgreSQL.
    """
    transport: Any = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
    write, sends = transport.write, list[None]()

    def counting(self: Any, data: Any) -> None:
        sends.append(None)
        write(self, data)

    transport.write = counting
    try:
        yield sends
    finally:
        transport.write = write


def _stat(process: Path) -> list[str]:
    """The fields after the name of the program, which may hold spaces: state, parent and so on."""
    return (process / "stat").read_text().rpartition(")")[2].split()


def _on_cpu(process: Path) -> float:
    """Seconds of a process with one thread, exact to the nanosecond; none if it has just ended."""
    try:
        return int((process / "schedstat").read_text().split()[0]) / 1e9
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
