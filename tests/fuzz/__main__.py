"""`make fuzz`: the long run. The short one is in the test suite."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.fuzz import fuzz
from tests.mcp_servers import serving


def main(minutes: float, cases: int) -> int:
    with tempfile.TemporaryDirectory(prefix="recollect-fuzz-", ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        os.environ["RECOLLECT_TEST_HOME"] = f"{place}/home"
        with (Path(place) / "log").open("w") as log, serving("fuzz", log) as url:
            # With one worker: two that parse Python at once crash the parser of CPython 3.11.
            options = ("-n", str(cases), "--max-time", str(round(minutes * 60)), "-w", "1")
            outcome = fuzz(url.removesuffix("/mcp"), *options)
    print(outcome.report)
    return 0 if outcome.passed and outcome.cases else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--cases", type=int, default=1000, help="of each route (default: 1000)")
    given = parser.parse_args()
    sys.exit(main(given.minutes, given.cases))
