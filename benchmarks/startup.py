"""How long a user waits: `import recollect`, the first and the later starts of `recollect serve`."""

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from benchmarks.report import Report

IMPORT = "import time; t = time.perf_counter(); import recollect{}; print((time.perf_counter() - t) * 1000)"


async def run(report: Report, home: Path) -> None:
    print("startup")
    report.add("import recollect", f"{imported(''):.1f} ms", "< 150 ms")
    report.add("from recollect import MemoryManager", f"{imported('; recollect.MemoryManager'):.0f} ms")
    first = await asyncio.to_thread(seconds_to_healthy, home)
    report.add("first `recollect serve` to a healthy answer", f"{first:.2f} s", "< 10 s")
    later = [await asyncio.to_thread(seconds_to_healthy, home) for _ in range(3)]
    report.add("later `recollect serve` to a healthy answer", f"{statistics.median(later):.2f} s", "< 3 s")


def imported(more: str) -> float:
    """Median milliseconds of an import in fresh interpreters."""
    command = [sys.executable, "-c", IMPORT.format(more)]
    return statistics.median(float(subprocess.check_output(command)) for _ in range(7))


def seconds_to_healthy(home: Path) -> float:
    """From the command to the moment it says that it listens, which it does only with the database there."""
    command = [str(Path(sys.executable).with_name("recollect")), "serve", "--port", "0"]
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"RECOLLECT_DATA_DIR": str(home)}
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        with urllib.request.urlopen(f"{address}/health") as answer:
            assert answer.status == 200
        elapsed = time.perf_counter() - started
        server.send_signal(signal.SIGINT)
        server.communicate()
    return elapsed
