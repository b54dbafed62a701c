"""`recollect export` and `recollect import`, run as a user runs them."""

import json
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from recollect.settings import Settings
from recollect.storage.embedded import Lease
from tests.commands import INSTALLED, recollect_bytes
from tests.storage.databases import empty_database, url

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


def run(place: str, *arguments: object, given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    return recollect_bytes(*arguments, env=os.environ | {"RECOLLECT_DATABASE_URL": place}, given=given, timeout=120)


@pytest.fixture
async def places(server: Lease, settings: Settings) -> AsyncIterator[tuple[str, str]]:
    """Two databases that have nothing in them."""
    async with empty_database(server) as one, empty_database(server) as other:
        yield url(server.connection, one), url(server.connection, other)


def test_a_memory_moves_to_another_database_and_back_unchanged(
    places: tuple[str, str], namespace: str, tmp_path: Path
) -> None:
    old, new = places
    file = tmp_path / "mine.jsonl"
    assert run(old, "remember", "The ferry to Naxos leaves at seven.").returncode == 0
    written = run(old, "export", file)
    assert written.stdout.decode().startswith(f"Wrote 1 record(s) to {file}"), written.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert lines[0] == {"kind": "recollect-export", "version": 1, "namespace": namespace, "user": None}
    assert [line["kind"] for line in lines[1:]] == ["document", "end"]

    again = run(old, "export", file)
    assert again.returncode == 1
    assert b"already exists" in again.stderr

    moved = run(new, "import", "-", given=file.read_bytes())
    assert moved.returncode == 0, moved.stderr
    assert f"Namespace '{namespace}': 1 imported, 0 already present, 0 rejected." in moved.stdout.decode()
    assert b"The ferry to Naxos" in run(new, "recall", "When does the ferry leave?").stdout
    # Another interpreter, whose sets have another order.
    exported = subprocess.run(
        [INSTALLED, "export"],
        capture_output=True,
        timeout=120,
        env=os.environ | {"RECOLLECT_DATABASE_URL": new, "PYTHONHASHSEED": "7"},
    )
    assert exported.stdout == file.read_bytes()

    file.write_bytes(file.read_bytes().replace(b'"end"', b'"the end"'))
    damaged = run(new, "import", file, "--namespace", "another")
    assert damaged.returncode == 1
    assert b"line 3: unknown kind 'the end'" in damaged.stderr
    assert b"Namespace 'another': 1 imported, 0 already present, 2 rejected." in damaged.stdout
    assert b"Traceback" not in again.stderr + damaged.stderr


def test_a_user_of_whom_nothing_is_known_is_refused_and_no_file_is_left(
    places: tuple[str, str], tmp_path: Path
) -> None:
    place, _ = places
    file, mem0 = tmp_path / "mira.jsonl", tmp_path / "mem0.json"
    unknown = run(place, "export", "--user", "mira", file)
    assert (unknown.returncode, unknown.stdout, file.exists()) == (1, b"", False)
    assert unknown.stderr.endswith(b"No data for user mira\n")
    mem0.write_text('[{"id": "1", "memory": "Prefers night trains"}]')
    run(place, "import", "--from", "mem0", "--user", "mira", mem0)
    known = run(place, "export", "--user", "mira", file)
    assert known.returncode == 0, known.stderr
    assert b"Prefers night trains" in file.read_bytes()


def test_files_of_other_programs_are_taken_over(places: tuple[str, str], tmp_path: Path) -> None:
    place, _ = places
    graph, mem0 = tmp_path / "memory.json", tmp_path / "mem0.json"
    graph.write_text('{"type": "entity", "name": "Mira", "entityType": "person", "observations": ["Keeps bees"]}\n')
    mem0.write_text('[{"id": "1", "memory": "Prefers night trains"}]')
    assert b"1 imported" in run(place, "import", "--from", "memory-json", graph).stdout
    assert b"Mira: Keeps bees" in run(place, "recall", "Who keeps bees?").stdout
    nobody = run(place, "import", "--from", "mem0", mem0)
    assert nobody.returncode == 1
    assert b"record 1: the memory has no user_id" in nobody.stderr
    assert b"1 imported" in run(place, "import", "--from", "mem0", "--user", "mira", mem0).stdout
    wrong = run(place, "import", graph)
    assert wrong.returncode == 2
    assert b"--from memory-json" in wrong.stderr
