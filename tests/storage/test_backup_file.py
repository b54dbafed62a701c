"""The file of a backup: whole, or refused with a sentence; never half there."""

import stat
import tracemalloc
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.errors import Conflict, Invalid, Misconfigured
from recollect.storage.backup import file as backup_file
from recollect.storage.backup.file import FORMAT, Manifest, reading, writing

ROWS = {"sessions": b"n\ts\tu\n" * 500, "messages": b"n\tm\t" + bytes(range(65, 91)) * 20 + b"\n", "documents": b""}


def write(path: Path, **changes: object) -> None:
    with writing(path, overwrite=False) as file:
        entries = []
        for name, data in ROWS.items():
            with file.table(name) as table:
                table.write(data)
                entries.append(table.entry(name, ["namespace", "id"]))
        manifest = Manifest(
            format=FORMAT,
            recollect="1",
            schema_version=1,
            postgres="18",
            pgvector="0.8",
            made_at=datetime.now(UTC),
            tables=entries,
            counters=[],
        )
        file.finish(manifest.model_copy(update=changes))


def read(path: Path) -> dict[str, bytes]:
    with reading(path) as file:
        return {table.name: b"".join(file.rows(table.name)) for table in file.manifest.tables}


def test_what_was_written_is_read_and_only_its_owner_may(tmp_path: Path) -> None:
    write(tmp_path / "b")
    assert read(tmp_path / "b") == ROWS
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600
    with reading(tmp_path / "b") as file:
        assert file.manifest.rows() == 501


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, share: float) -> None:
    path = tmp_path / "b"
    path.unlink(missing_ok=True)
    write(path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(Invalid, match="not a complete Recollect backup"):
        read(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255))
def test_a_byte_that_changed_is_noticed_or_changes_nothing(tmp_path: Path, place: float, value: int) -> None:
    path = tmp_path / "b"
    path.unlink(missing_ok=True)
    write(path)
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] = value
    path.write_bytes(data)
    refused = pytest.raises(Invalid, match="not a complete Recollect backup")
    with refused if not reads_the_same(path) else nullcontext():
        read(path)


def reads_the_same(path: Path) -> bool:
    try:
        return read(path) == ROWS
    except Invalid:
        return False


@pytest.mark.parametrize("content", [b"", b"PK", b"not a backup at all", b"PK\x05\x06" + bytes(18)])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "b").write_bytes(content)
    with pytest.raises(Invalid, match="not a complete Recollect backup"):
        read(tmp_path / "b")


def test_rows_that_are_not_those_of_the_manifest_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "good")
    with reading(tmp_path / "good") as file:
        other = [table.model_copy(update={"sha256": "0" * 64}) for table in file.manifest.tables]
    write(tmp_path / "b", tables=other)
    with pytest.raises(Invalid, match="not a complete Recollect backup"):
        read(tmp_path / "b")


def test_a_small_file_that_unpacks_to_a_large_manifest_is_refused_unread(tmp_path: Path) -> None:
    write(tmp_path / "b", postgres=" " * 30_000_000)
    assert (tmp_path / "b").stat().st_size < 300_000
    tracemalloc.start()
    try:
        with pytest.raises(Invalid, match="not a complete Recollect backup"):
            read(tmp_path / "b")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_row_longer_than_any_row_can_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup_file, "MAX_ROW_BYTES", 3_000_000)
    monkeypatch.setitem(ROWS, "documents", (b"x" * 2_900_000 + b"\n") * 3)
    write(tmp_path / "good")
    assert read(tmp_path / "good") == ROWS
    monkeypatch.setitem(ROWS, "documents", b"x\n" + b"x" * 5_000_000)
    write(tmp_path / "b")
    with pytest.raises(Invalid, match="not a complete Recollect backup"):
        read(tmp_path / "b")


def test_a_file_of_another_format_names_the_version_that_made_it(tmp_path: Path) -> None:
    write(tmp_path / "b", format=FORMAT + 1, recollect="7.0")
    with pytest.raises(Misconfigured, match=r"use Recollect 7\.0"):
        read(tmp_path / "b")


def test_a_file_that_is_missing_or_a_folder_is_a_sentence(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(Invalid, match="cannot be read"):
            read(path)
    with pytest.raises(Misconfigured, match="cannot be written: No such file or directory"):
        write(tmp_path / "no" / "such" / "folder")


def test_a_file_that_exists_is_replaced_only_when_that_is_wished(tmp_path: Path) -> None:
    path = tmp_path / "b"
    path.write_text("precious")
    with pytest.raises(Conflict, match="already exists"):
        write(path)
    assert path.read_text() == "precious"
    with writing(path, overwrite=True) as file, file.table("t") as table:
        table.write(b"x\n")
        assert path.read_text() == "precious"
    assert path.read_bytes().startswith(b"PK")


def test_one_that_fails_takes_nothing_from_another_to_the_same_place(tmp_path: Path) -> None:
    path = tmp_path / "b"
    with writing(path, overwrite=True) as whole, whole.table("t") as table:
        table.write(b"x\n")
        with pytest.raises(ZeroDivisionError), writing(path, overwrite=True):
            raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == [path]


def test_a_backup_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "b", overwrite=False):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_is_named_as_such() -> None:
    with pytest.raises(Misconfigured, match="cannot be written"), writing(Path("/dev/full/b"), overwrite=False):
        pass
