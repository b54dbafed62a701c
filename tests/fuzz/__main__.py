"""`make fuzz`: the long run. The short one is in the test suite."""

import os
import sys
import tempfile
from pathlib import Path

from tests.fuzz import fuzz
from tests.mcp_servers import serving

CASES_OF_EACH_ROUTE = 1000
MINUTES = 10


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="recollect-fuzz-", ignore_cleanup_errors=True) as home:
        os.environ["RECOLLECT_TEST_HOME"] = home
        Path(home).chmod(0o755)
        with (Path(home) / "log").open("w") as log, serving("fuzz", log) as url:
            outcome = fuzz(
                url.removesuffix("/mcp"), "-n", str(CASES_OF_EACH_ROUTE), "--max-time", str(MINUTES * 60), "-w", "2"
            )
    print(outcome.report)
    return 0 if outcome.passed else 1


sys.exit(main())
