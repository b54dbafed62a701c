"""Figures of one run, printed as they are measured and once more as a table."""

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Report:
    """Rows of (what, figure, bar)."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, what: str, figure: str, bar: str = "") -> None:
        self.rows.append((what, figure, bar))
        print(f"  {what}: {figure}{f'  (to reach: {bar})' if bar else ''}", flush=True)

    def table(self) -> str:
        lines = ["", "| what | measured | to reach |", "|---|---|---|"]
        return "\n".join(lines + [f"| {what} | {figure} | {bar} |" for what, figure, bar in self.rows])


async def seconds_per_call(call: Callable[[], Awaitable[object]], count: int) -> float:
    """Mean time of calls made one after the other."""
    started = time.perf_counter()
    for _ in range(count):
        await call()
    return (time.perf_counter() - started) / count


async def ratio(
    yardstick: Callable[[], Awaitable[object]], ours: Callable[[], Awaitable[object]], count: int, rounds: int = 7
) -> tuple[float, float, float]:
    """Our speed over the yardstick's, in alternating rounds of one run: (median ratio, their s, our s)."""
    pairs = []
    for _ in range(rounds):
        theirs = await seconds_per_call(yardstick, count)
        pairs.append((theirs, await seconds_per_call(ours, count)))
    middle = statistics.median(theirs / own for theirs, own in pairs)
    return middle, statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


async def percentiles(call: Callable[[], Awaitable[object]], count: int) -> tuple[float, float]:
    """p50 and p95 of single calls, in milliseconds."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        await call()
        times.append((time.perf_counter() - started) * 1000)
    return spread(times)


def spread(times: Sequence[float]) -> tuple[float, float]:
    """The p50 and p95 of some times."""
    cuts = statistics.quantiles(times, n=20)
    return cuts[9], cuts[18]
