"""Programs as users write them end: in time, with the exit code that is theirs, and with nothing of ours on stderr."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from recollect.storage import embedded
from tests.architecture.test_docs import ADDRESS
from tests.mcp_servers import serving
from tests.programs import listing
from tests.programs.listing import PROGRAMS, Program

# A program that hangs is killed; the machine may be slow.
SECONDS = 240
BIN = Path(sys.executable).parent


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where a program runs, and a new data directory may be: the account of the embedded server must reach it."""
    folder = Path(tempfile.mkdtemp(prefix="recollect-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def address(server: embedded.Lease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for all programs that want one."""
    with (tmp_path_factory.mktemp("server") / "log").open("w") as log, serving(f"test-{uuid4()}", log) as url:
        yield url.removesuffix("/mcp")


def run(program: Program, text: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    file = folder / program.path.name
    file.write_text(text)
    command = [sys.executable, file.name] if file.suffix == ".py" else ["sh", "-eu", file.name]
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PATH": path, "HOME": str(folder)} | environment,
        start_new_session=True,
    ) as process:
        try:
            told = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            # And whatever it started.
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, *told)


@pytest.mark.parametrize("program", [pytest.param(program, id=program.name) for program in PROGRAMS])
def test_a_program_ends(program: Program, request: pytest.FixtureRequest, folder: Path, namespace: str) -> None:
    environment = {"RECOLLECT_DATA_DIR": os.environ["RECOLLECT_TEST_HOME"], "RECOLLECT_NAMESPACE": namespace}
    if program.needs == listing.NEW_DIRECTORY:
        environment["RECOLLECT_DATA_DIR"] = str(folder / "data")
    elif program.needs == listing.OWN_DATABASE:
        environment["RECOLLECT_DATABASE_URL"] = request.getfixturevalue("still_database")
    else:
        request.getfixturevalue("server")
    text = program.text
    if ADDRESS in text:
        text = text.replace(ADDRESS, request.getfixturevalue("address"))
    result = run(program, text, folder, **environment)
    told = f"{result.stdout}\n{result.stderr}"
    assert result.returncode in program.exit_codes, told
    if program.last_line_of_stderr is None:
        # Click ends the line that a terminal shows for Ctrl-C.
        assert result.stderr.strip() == "", told
    else:
        assert result.stderr.startswith("Traceback"), told
        assert result.stderr.splitlines()[-1] == program.last_line_of_stderr, told


def test_every_door_has_its_programs() -> None:
    assert listing.doors() == listing.DOORS.keys()
    for folders in listing.DOORS.values():
        for folder in folders:
            assert listing.written(folder), f"tests/programs/{folder} has no program"


def test_everything_public_is_used_by_a_program() -> None:
    missing = [
        f"{name}: use it in tests/programs/{how}" for name, how, is_used in listing.public_names() if not is_used
    ]
    assert not missing, "\n".join(["A user could call these, and no program shows that it ends:", *missing])
