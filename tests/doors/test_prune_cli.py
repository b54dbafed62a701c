"""`recollect memories prune`, run as a user runs it: it counts, asks, deletes, and gives a receipt."""

import os
import pty
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from recollect.engine import Engine
from recollect.flows.long_term.memory_requests import Options
from recollect.memory.memories import MemoryScope
from recollect.tasks import in_thread
from tests.commands import RECOLLECT, recollect

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

LINES = [
    "           3  memories",
    "           3  passages",
    "Of the memories:",
    "           2  of user ann",
    "           1  of user bob",
    "           2  of category fact",
    "           1  of category preference",
]


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return recollect("memories", "prune", *arguments)


def answered(answer: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The same on a terminal, where somebody answers."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer.encode())
        return subprocess.run(
            [RECOLLECT, "memories", "prune", *arguments], stdin=theirs, capture_output=True, text=True, timeout=60
        )
    finally:
        os.close(ours)
        os.close(theirs)


async def fill(engine: Engine, namespace: str) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=100)
    for text, category, user, pinned in (
        ("Owls hoot.", "fact", "ann", False),
        ("Ann likes owls.", "preference", "ann", False),
        ("Ann is allergic to owls.", "fact", "ann", True),
        ("Cats purr.", "fact", "bob", False),
    ):
        options = Options(pinned=pinned)
        await engine.memories.add(namespace, text, category, MemoryScope(user), at=long_ago, options=options)
    await engine.memories.add(namespace, "Owls fly.", "fact", MemoryScope("ann"))


@pytest.fixture
async def filled(engine: Engine, namespace: str) -> Engine:
    await fill(engine, namespace)
    return engine


async def left(engine: Engine, namespace: str) -> list[str]:
    return sorted(memory.text for memory in (await engine.memories.newest(namespace)).memories)


async def test_a_dry_run_counts_what_the_real_run_deletes(filled: Engine, namespace: str) -> None:
    dry = await in_thread(run, "--older-than", "90d", "--dry-run")
    assert (dry.returncode, dry.stderr) == (0, "")
    first, *lines = dry.stdout.splitlines()
    assert first.startswith("memories not changed since 20")
    assert first.endswith(" UTC: would be deleted")
    assert lines == LINES
    assert len(await left(filled, namespace)) == 5
    done = await in_thread(run, "--older-than", "90d", "--yes")
    assert done.returncode == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    assert first.endswith(" UTC: deleted")
    assert lines == LINES
    assert await left(filled, namespace) == ["Ann is allergic to owls.", "Owls fly."]
    again = await in_thread(run, "--older-than", "90d", "--yes")
    assert again.returncode == 0
    assert again.stdout.endswith(" UTC: there are none\n")
    page = await filled.feed.page(namespace, 0)
    assert [(entry.change.event, entry.change.door) for entry in page.entries][-1] == ("delete", "cli")


async def test_without_a_terminal_it_wants_to_be_told_yes(filled: Engine, namespace: str) -> None:
    refused = await in_thread(run, "--older-than", "2w")
    assert refused.returncode == 2
    assert "2  of user ann" in refused.stderr
    assert "Nothing was deleted: no terminal to confirm on. Use --yes" in refused.stderr
    assert len(await left(filled, namespace)) == 5


async def test_on_a_terminal_it_asks(filled: Engine, namespace: str) -> None:
    refused = await in_thread(answered, "n\n", "--older-than", "12h")
    assert refused.returncode == 1
    assert refused.stderr.endswith("Nothing was deleted.\n")
    assert len(await left(filled, namespace)) == 5
    done = await in_thread(answered, "y\n", "--older-than", "12h", "--user", "ann", "--category", "preference")
    assert done.returncode == 0, done.stderr
    assert await left(filled, namespace) == ["Ann is allergic to owls.", "Cats purr.", "Owls fly.", "Owls hoot."]


async def test_another_namespace_is_pruned_only_by_its_name(filled: Engine, namespace: str) -> None:
    other = f"{namespace}-other"
    await fill(filled, other)
    done = await in_thread(run, "--older-than", "90d", "--namespace", other, "--yes")
    assert done.returncode == 0, done.stderr
    assert len(await left(filled, other)) == 2
    assert len(await left(filled, namespace)) == 5


@pytest.mark.parametrize("given", ["90", "3m", "0d", "ninety days", "-1d"])
async def test_an_age_without_a_unit_deletes_nothing(filled: Engine, namespace: str, given: str) -> None:
    refused = await in_thread(run, f"--older-than={given}", "--yes")
    assert (refused.returncode, refused.stdout) == (2, "")
    sentence = "The age must be greater than 0" if given == "0d" else "--older-than must be a number of hours, days"
    assert sentence in refused.stderr
    assert len(await left(filled, namespace)) == 5


def test_help_says_that_pinned_memories_stay(pooling: str) -> None:
    assert "never pinned ones" in " ".join(run("--help").stdout.split())
