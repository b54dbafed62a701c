"""`make bench`: every speed benchmark, each against a yardstick of the same run, on a database of its own."""

import argparse
import asyncio
import os
import platform
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks import graph, hybrid, mcp, recall, spine, startup
from benchmarks.report import Report

BENCHMARKS: dict[str, Callable[[Report, Path], Awaitable[None]]] = {
    "startup": startup.run,
    "spine": spine.run,
    "recall": recall.run,
    "graph": graph.run,
    "hybrid": hybrid.run,
    "mcp": mcp.run,
}


async def main(names: list[str]) -> None:
    report = Report()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    print(f"{system}, {os.cpu_count()} cores, {memory:.0f} GB")
    for name in names:
        home = Path(tempfile.mkdtemp(prefix="recollect-bench-"))
        try:
            await BENCHMARKS[name](report, home)
        finally:
            shutil.rmtree(home, ignore_errors=True)
    print(report.table())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which of: {', '.join(BENCHMARKS)} (default: all)")
    chosen = parser.parse_args().names or list(BENCHMARKS)
    if unknown := set(chosen) - BENCHMARKS.keys():
        parser.error(f"unknown benchmark: {', '.join(sorted(unknown))}")
    asyncio.run(main(chosen))
