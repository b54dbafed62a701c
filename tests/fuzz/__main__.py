"""`make fuzz`: the long run. The short one is in the test suite."""

import argparse
import asyncio
import logging
import os
import sys
import tempfile
from pathlib import Path

from recollect.engine import Engine
from recollect.settings import Settings
from tests.fuzz import fuzz
from tests.fuzz.console import fed
from tests.mcp_servers import serving

# From here on, every field of the console is fed every string.
WHOLE_MINUTES = 10


def main(minutes: float, cases: int) -> int:
    with tempfile.TemporaryDirectory(prefix="recollect-fuzz-", ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        os.environ["RECOLLECT_TEST_HOME"] = f"{place}/home"
        with (Path(place) / "log").open("w") as log, serving("fuzz", log) as url:
            # With one worker: two that parse Python at once crash the parser of CPython 3.11.
            options = ("-n", str(cases), "--max-time", str(round(minutes * 60)), "-w", "1")
            outcome = fuzz(url.removesuffix("/mcp"), *options)
            print(outcome.report)
            faults = asyncio.run(pages(Path(place) / "home", 1 if minutes < WHOLE_MINUTES else None))
    return 0 if outcome.passed and outcome.cases and not faults else 1


async def pages(home: Path, strings_per_field: int | None) -> list[str]:
    """What is wrong with pages of the console, in a namespace of its own."""
    logging.getLogger("httpx").setLevel("WARNING")
    engine = await Engine.open(Settings(data_dir=home, namespace="fuzz-console", log_level="ERROR"))
    crawl, sent = await fed(engine, strings_per_field)
    print(f"The console: {sent:,} forms sent, {len(crawl.faults):,} faults")
    print("\n".join(crawl.faults[:20]))
    return crawl.faults


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--cases", type=int, default=1000, help="of each route (default: 1000)")
    given = parser.parse_args()
    sys.exit(main(given.minutes, given.cases))
