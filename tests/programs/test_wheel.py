"""The wheel of `make wheel`, installed into an empty virtual environment, is all that a user needs."""

import json
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import recollect
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
SECONDS = 120

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def run(*command: str | Path, said: str = "") -> str:
    done = subprocess.run(command, input=said, capture_output=True, text=True, timeout=SECONDS, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Where any account can reach it, as the account of the database must."""
    place = Path(tempfile.mkdtemp(prefix="recollect-wheel-"))
    place.chmod(0o755)
    yield place
    wait_until(lambda: not (place / "home" / "data" / "postmaster.pid").exists(), "the server stops")
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def wheel(place: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place / "dist")
    (built,) = (place / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def command(place: Path, wheel: Path) -> Path:
    """`recollect` from the wheel alone, without a network.

    What Recollect needs is taken from the environment of the tests, by a .pth file with its folder. Python reads no
    .pth files in a folder that comes from one, so the sources that are installed there as editable are not seen.
    """
    run(sys.executable, "-m", "venv", place / "env")
    python = place / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel)
    folder = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    (Path(folder) / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    assert run(python, "-c", "import recollect; print(recollect.__file__)").startswith(folder)
    return python.with_name("recollect")


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    files = [path for path in (SOURCE / "recollect").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {path.suffix for path in files} >= {".py", ".sql", ".lua", ".txt", ".typed"}
    with zipfile.ZipFile(wheel) as archive:
        assert {str(path.relative_to(SOURCE)) for path in files} <= set(archive.namelist())


def test_its_commands_work_in_an_empty_environment(command: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_DATA_DIR", str(place / "home"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert run(command, "--version") == f"recollect, version {recollect.__version__}\n"

    answer = json.loads(run(command, "mcp", said=json.dumps(INITIALIZE) + "\n"))
    assert answer["result"]["serverInfo"]["name"] == "recollect"

    serving = subprocess.Popen(
        [command, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=place
    )
    assert serving.stdout is not None
    try:
        (url,) = re.findall(r"is listening on (\S+)", serving.stdout.readline())
        assert httpx.get(f"{url}/health", timeout=SECONDS).json() == {"status": "ok"}
        assert httpx.get(f"{url}/docs", timeout=SECONDS).status_code == 200
    finally:
        serving.send_signal(signal.SIGINT)
        serving.communicate(timeout=SECONDS)
    assert serving.returncode in (0, 130, -signal.SIGINT)

    assert "Namespace demo-" in run(command, "demo")
    said = run(command, "chat", "--workspace", str(place / "workspace"), "--message", "Hello")
    assert said.strip()
