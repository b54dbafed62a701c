"""An acknowledged write survives: `kill -9` of the database and of the writer, at random points."""

import os
import random
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from recollect import MemoryManager, Settings
from tests.commands import MODULE
from tests.waiting import wait_until

ROUNDS = 6
WRITES = 10_500


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A server of its own, because this test kills it."""
    home = Path(tempfile.mkdtemp(prefix="recollect-kill-"))
    monkeypatch.setenv("RECOLLECT_DATA_DIR", str(home))
    yield home
    wait_until(lambda: not (home / "data" / "postmaster.pid").exists(), "the server stops")
    shutil.rmtree(home)


def read_acknowledgements(writer: "subprocess.Popen[str]", count: int) -> list[str]:
    assert writer.stdout is not None
    lines: list[str] = []
    while len(lines) < count:
        line = writer.stdout.readline()
        assert line, "the writer stopped by itself"
        lines.append(line)
    return lines


def kill_both(home: Path, writer: "subprocess.Popen[str]", database_first: bool) -> list[str]:
    """Kill both at once; acknowledgements that were already on their way count too."""
    postmaster = int((home / "data" / "postmaster.pid").read_text().split("\n")[0])
    for pid in (postmaster, writer.pid) if database_first else (writer.pid, postmaster):
        os.kill(pid, signal.SIGKILL)
    # Not by communicate: with a limit of time it reads past what is buffered here, and so from the middle of a line.
    assert writer.stdout is not None
    rest = writer.stdout.read()
    writer.wait(30)
    complete, _, _ = rest.rpartition("\n")
    return complete.splitlines()


@pytest.mark.parametrize("seed", [20261115])
async def test_every_acknowledged_message_is_found_exactly_once(own_home: Path, seed: int) -> None:
    chance = random.Random(seed)
    sessions = [str(uuid4()) for _ in range(5)]
    acknowledged: list[str] = []
    for number in range(ROUNDS):
        writer = subprocess.Popen(
            [*MODULE, "tests.durability.writer", f"round{number}", *sessions],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        acknowledged += read_acknowledgements(writer, WRITES // ROUNDS + chance.randrange(200))
        acknowledged += kill_both(own_home, writer, database_first=chance.random() < 0.5)
    assert len(acknowledged) >= 10_000

    stored: Counter[str] = Counter()
    ids: set[str] = set()
    positions: dict[str, list[int]] = {}
    async with MemoryManager(Settings()) as memory:
        engine = await memory._engine()
        async with engine.database.reading("default") as db:
            for session in sessions:
                messages = await engine.capabilities.log.recent(db, session, 10**6)
                stored.update(f"{session} {m.content}" for m in messages)
                ids |= {f"{session} {m.id} {m.content}" for m in messages}
                positions[session] = [m.position for m in messages]
    assert {line.strip() for line in acknowledged} <= ids
    assert {text for text, count in stored.items() if count > 1} == set()
    for session, taken in positions.items():
        assert taken == list(range(len(taken))), f"session {session} has a gap"
