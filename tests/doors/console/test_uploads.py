"""Uploads: files that a browser sent, on disk until their import ends."""

import os
import tempfile
import time
from pathlib import Path

import pytest
from starlette.datastructures import UploadFile

from recollect.doors.console import uploads
from recollect.errors import Unavailable


async def test_an_upload_leaves_nothing_when_it_fails_and_clears_what_killed_servers_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, young, others = (tmp_path / name for name in ("recollect-import-1", "recollect-import-2", "import-3"))
    for folder in (left, young, others):
        folder.mkdir()
        (folder / "file").write_bytes(b"x")
    long_ago = time.time() - 2 * uploads.LEFT_SECONDS
    for folder in (left, others):
        os.utime(folder, (long_ago, long_ago))
    (tmp_path / "recollect-import-4").symlink_to(others)
    with (tmp_path / "unreadable").open("wb") as file, pytest.raises(Unavailable, match="could not keep the file"):
        await uploads.kept(UploadFile(file, filename="x.zip"))
    names = {each.name for each in tmp_path.iterdir()}
    assert names == {"recollect-import-2", "import-3", "recollect-import-4", "unreadable"}
    assert (others / "file").exists()
