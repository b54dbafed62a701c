"""The shell commands of the documentation run, each block in order."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.settings import Settings
from tests.architecture.test_docs import blocks

# Set-up is what CI itself does first; a test inside it would call itself.
NOT_HERE = re.compile(r"^make (serve|test)\b")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the commands name."""
    turn = {"conversation": "c", "session": "s", "turn": "t", "speaker": "Ann", "time": "2024-01-01", "text": "Hello."}
    question = {"conversation": "c", "id": "q", "question": "Who said hello?"}
    for name, row in (("corpus", turn), ("questions", question)):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt") as file:
            file.write(json.dumps(row))
    scripts = tmp_path / ".venv" / "bin"
    scripts.parent.mkdir()
    scripts.symlink_to(Path(sys.executable).parent)
    return tmp_path


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
@pytest.mark.parametrize("block", [pytest.param(block, id=name) for name, block in blocks("sh")])
def test_a_shell_block_runs(settings: Settings, block: str, folder: Path) -> None:
    if "recollect install" in block and settings.database_url is not None:
        pytest.skip("agents do not pass the address of a database on to their hooks")
    commands = [line for line in block.splitlines() if line and not NOT_HERE.match(line)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in commands:
        result = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
            env=os.environ | {"PATH": path, "HOME": str(folder)},  # a page may write into its reader's home
        )
        assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
