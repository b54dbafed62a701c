"""`recollect backup` and `recollect restore`, run as a user runs them."""

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from recollect.settings import Settings
from recollect.storage.embedded import Lease
from tests.commands import recollect
from tests.storage.databases import empty_database, url

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


def run(place: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return recollect(*arguments, env=os.environ | {"RECOLLECT_DATABASE_URL": place}, timeout=120)


@pytest.fixture
async def places(server: Lease, settings: Settings) -> AsyncIterator[tuple[str, str]]:
    """Two databases that have nothing in them."""
    async with empty_database(server) as one, empty_database(server) as other:
        yield url(server.connection, one), url(server.connection, other)


def test_a_memory_moves_to_another_database(places: tuple[str, str], tmp_path: Path) -> None:
    old, new = places
    file = tmp_path / "all.backup"
    nothing = run(old, "backup", str(file))
    assert nothing.returncode == 1
    assert "nothing to back up" in nothing.stderr
    assert run(old, "remember", "The ferry to Naxos leaves at seven.").returncode == 0

    written = run(old, "backup", str(file))
    assert written.returncode == 0, written.stderr
    assert written.stdout.startswith("Wrote ")
    assert f" tables to {file}" in written.stdout
    assert written.stderr == ""

    again = run(old, "backup", str(file))
    assert again.returncode == 1
    assert "already exists" in again.stderr
    assert run(old, "backup", "--force", str(file)).returncode == 0

    restored = run(new, "restore", str(file))
    assert restored.returncode == 0, restored.stderr
    assert restored.stdout.startswith("Restored ")
    assert "The ferry to Naxos" in run(new, "recall", "When does the ferry leave?").stdout

    refused = run(new, "restore", str(file))
    assert refused.returncode == 1
    assert "not empty" in refused.stderr

    file.write_bytes(file.read_bytes()[:-100])
    damaged = run(new, "restore", str(file))
    assert damaged.returncode == 2
    assert "not a complete Recollect backup" in damaged.stderr
    assert "Traceback" not in nothing.stderr + again.stderr + refused.stderr + damaged.stderr
