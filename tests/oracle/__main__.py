"""`python -m tests.oracle`: many random histories. The short run is in the test suite."""

import argparse
import asyncio
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from recollect.engine import Engine
from recollect.settings import Settings
from tests.oracle.histories import Disagreement, History

AT_ONCE = 4
TOLD_EVERY = 30.0


class Run:
    """What came of the histories so far."""

    def __init__(self, histories: int, seconds: float) -> None:
        self.histories = 0
        self.agreed = 0
        self.wrong = 0
        self._wanted = histories
        self._began = self._told = time.monotonic()
        self._seconds = seconds

    def numbers(self) -> Iterator[int]:
        """The numbers of histories, until there are enough or the time is over."""
        for number in range(self._wanted):
            if self.wrong or time.monotonic() - self._began > self._seconds:
                return
            yield number

    def progress(self) -> None:
        now = time.monotonic()
        if now - self._told > TOLD_EVERY:
            self._told = now
            print(f"{now - self._began:.0f} s: {self}", flush=True)

    def __str__(self) -> str:
        return f"{self.histories} histories, {self.agreed} questions agreed, {self.wrong} histories did not"


async def main(given: argparse.Namespace) -> int:
    """Run the histories, each in its own namespace; the number of a history is a part of its seed."""
    run = Run(given.histories, given.minutes * 60)
    print(f"seed {given.seed}, from history {given.first}", flush=True)
    with tempfile.TemporaryDirectory(prefix="recollect-oracle-", ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        engine = await Engine.open(Settings(data_dir=Path(place) / "home"))
        numbers = run.numbers()
        await asyncio.gather(*(_work(run, engine, numbers, given) for _ in range(AT_ONCE)))
        await engine.close()
    print(run)
    return 1 if run.wrong or not run.histories else 0


async def _work(run: Run, engine: Engine, numbers: Iterator[int], given: argparse.Namespace) -> None:
    for count in numbers:
        number = given.first + count
        history = History(engine, f"history-{number}", Random(f"{given.seed}/{number}"))
        try:
            agreed = await history.run(given.steps, given.questions)
        except Disagreement as problem:
            run.wrong += 1
            print(f"\nhistory {number} of seed {given.seed}:\n{problem}\n", flush=True)
            continue
        except Exception:
            print(f"\nhistory {number} of seed {given.seed}:\n" + "\n".join(history.told), flush=True)
            raise
        run.histories += 1
        run.agreed += agreed
        run.progress()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=600, help="stop after these at the latest")
    parser.add_argument("--steps", type=int, default=12, help="of each history (default: 12)")
    parser.add_argument("--questions", type=int, default=6, help="at its end; there is one behind each step")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--first", type=int, default=0, help="the number of the first history, to repeat one")
    sys.exit(asyncio.run(main(parser.parse_args())))
