"""A reader of the feed that is killed again and again while processes write; `python -m tests.durability.feed_kills`.

The reader is `recollect watch`. What it printed in whole lines counts as read; the next one begins behind that.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.commands import RECOLLECT

PROCESSES = 4
TASKS = 4


@contextmanager
def _ended(process: "subprocess.Popen[str]") -> Iterator["subprocess.Popen[str]"]:
    with process:
        try:
            yield process
        finally:
            process.kill()


def read(environment: dict[str, str], changes: int, kills: int, chance: random.Random) -> list[dict[str, Any]]:
    """Every change, by readers of which all but the last are killed."""
    found: list[dict[str, Any]] = []
    deaths = sorted(chance.sample(range(1, changes), kills))
    for last in [*deaths, changes]:
        since = found[-1]["number"] if found else 0
        command = [str(RECOLLECT), "watch", "--json", "--since", str(since)]
        with _ended(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)) as reader:
            assert reader.stdout is not None
            while len(found) < last:
                line = reader.stdout.readline()
                assert line.endswith("\n"), "the reader stopped by itself"
                found.append(json.loads(line))
            os.kill(reader.pid, signal.SIGKILL)
    return found


def run(environment: dict[str, str], changes: int, kills: int, seed: int) -> list[dict[str, Any]]:
    """Write with sixteen writers in four processes, and read meanwhile; returns what was read."""
    share = changes // (PROCESSES * TASKS)
    with ExitStack() as stack:
        for number in range(PROCESSES):
            session = str(uuid4())
            command = [
                sys.executable,
                "-m",
                "tests.durability.feed_writer",
                f"w{number}",
                str(TASKS),
                str(share),
                session,
            ]
            stack.enter_context(_ended(subprocess.Popen(command, text=True, env=environment)))
        return read(environment, share * PROCESSES * TASKS, kills, random.Random(seed))


def check(found: list[dict[str, Any]], changes: int) -> None:
    """Every change is there once and in order, and each writer's in the order it wrote them."""
    share = changes // (PROCESSES * TASKS)
    assert [change["number"] for change in found] == list(range(1, share * PROCESSES * TASKS + 1))
    of_writer: dict[str, list[int]] = {}
    for change in found:
        content = change["content"]
        text = content["messages"][0]["text"] if change["kind"] == "message" else content["text"]
        name, number = text.split()
        of_writer.setdefault(name, []).append(int(number))
    assert len(of_writer) == PROCESSES * TASKS
    assert all(numbers == list(range(share)) for numbers in of_writer.values())


def main() -> None:
    """The long form."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="recollect-feed-"))
    home.chmod(0o755)
    environment = os.environ | {"RECOLLECT_DATA_DIR": str(home / "data"), "RECOLLECT_NAMESPACE": "feed"}
    began = time.monotonic()
    try:
        check(run(environment, chosen.changes, chosen.kills, chosen.seed), chosen.changes)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(
        f"{chosen.changes:,} changes of {PROCESSES * TASKS} writers, the reader killed {chosen.kills} times: "
        f"each was read once and in order, in {time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
