"""`recollect serve` on a real socket."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from recollect.doors.cli.serving.serve import _listen
from recollect.settings import Settings
from tests.commands import INSTALLED, RECOLLECT, recollect
from tests.waiting import wait_until

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


@contextmanager
def serving(
    *arguments: str, is_installed: bool = False, **environment: str
) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    process = subprocess.Popen(
        # Workers are spawned, which begins with the module that the interpreter began with.
        [INSTALLED if is_installed or "--workers" in arguments else RECOLLECT, "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | environment,
    )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        while "is listening on" not in first:
            assert first, "the server stopped before it listened"
            first = process.stdout.readline()
        yield re.findall(r"http://\S+", first)[0], process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_health_is_ok_and_the_printed_example_works(settings: Settings) -> None:
    with serving() as (url, process):
        answer = httpx.get(f"{url}/health", timeout=60)
        assert answer.status_code == 200
        assert answer.json() == {"status": "ok"}
        assert process.stdout is not None
        assert process.stdout.readline() == f"Try it:  curl {url}/health\n"


def test_the_banner_says_where_clients_sign_in_and_what_is_audited(settings: Settings) -> None:
    with serving(RECOLLECT_AUDIT="all", RECOLLECT_PUBLIC_URL="https://memory.example.org") as (_, process):
        assert process.stdout is not None
        printed = [process.stdout.readline() for _ in range(6)]
    assert "Sign-in: https://memory.example.org/mcp, for remote MCP clients\n" in printed
    assert "Audit:   all\n" in printed


def test_the_banner_says_how_another_terminal_finds_the_data(settings: Settings) -> None:
    with serving() as (_, process):
        assert process.stdout is not None
        printed = "".join(iter(process.stdout.readline, "Stop:    Ctrl-C\n"))
    export = f"export RECOLLECT_DATA_DIR={settings.data_dir}"
    assert f"Data:    {settings.data_dir}\n         In other terminals, first: {export}\n" in printed


@pytest.mark.skipif(sys.platform != "linux", reason="reads what is loaded from /proc")
def test_the_model_is_loaded_before_anybody_asks(settings: Settings) -> None:
    with serving(is_installed=True) as (_, process):
        loaded = Path(f"/proc/{process.pid}/maps")
        wait_until(lambda: "onnxruntime" in loaded.read_text(), "the server loads the model")


@pytest.mark.embedded("it is killed")
def test_health_is_503_while_the_database_is_away_and_ok_again_after(
    settings: Settings,
) -> None:
    home = Path(tempfile.mkdtemp(prefix="recollect-serve-"))
    with serving(RECOLLECT_DATA_DIR=str(home)) as (url, _):
        # The first answer takes longer than a new database: it would come when all is well again.
        assert httpx.get(f"{url}/health", timeout=60).status_code == 200
        postmaster = int((home / "data" / "postmaster.pid").read_text().split("\n")[0])
        os.kill(postmaster, signal.SIGKILL)
        seen: list[int] = []

        def status() -> int:
            seen.append(httpx.get(f"{url}/health", timeout=60).status_code)
            return seen[-1]

        wait_until(lambda: status() == 200 and 503 in seen, "health was lost and found")
        assert set(seen) <= {200, 503}
    wait_until(lambda: not (home / "data" / "postmaster.pid").exists(), "the server stops")
    shutil.rmtree(home)


def test_a_stop_signal_ends_it_in_order(settings: Settings) -> None:
    with serving() as (_, process):
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=30)
        assert process.returncode == -signal.SIGTERM
        assert "Application shutdown complete" in printed


# Ctrl-C arrives while the application is put together, which awaits nothing.
INTERRUPTED = """
import signal
import sys

from recollect.doors.cli.main import main
from recollect.doors.cli.serving import serve

create_app = serve.create_app


def interrupted(*given):
    signal.raise_signal(signal.SIGINT)
    return create_app(*given)


serve.create_app = interrupted
sys.argv = ["recollect", "serve", "--port", "0"]
main()
"""


def test_a_stop_signal_during_the_start_ends_it_without_a_traceback(settings: Settings) -> None:
    result = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr.strip()) == (130, "", "")


def test_of_two_servers_started_at_once_on_one_port_one_says_so(settings: Settings) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    both = [
        subprocess.Popen(
            [RECOLLECT, "serve", "--port", port], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    wait_until(lambda: any(process.poll() is not None for process in both), "one of them gives up")
    for process in both:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    errors = [process.communicate(timeout=30)[1] for process in both]
    assert sum("Address already in use" in error for error in errors) == 1
    assert not any("Traceback" in error for error in errors), errors


def test_answers_are_sent_at_once(settings: Settings) -> None:
    with _listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # asyncio turns Nagle's algorithm off for these only


def test_a_port_that_is_taken_is_one_sentence(settings: Settings) -> None:
    with serving() as (url, _):
        port = url.rsplit(":", 1)[1]
        result = subprocess.run([RECOLLECT, "serve", "--port", port], capture_output=True, text=True, timeout=60)
        assert result.returncode == 1
        assert f"port {port}: Address already in use" in result.stderr


@pytest.mark.embedded("it must have no key yet")
def test_an_address_beyond_loopback_is_refused_until_there_is_a_key(settings: Settings) -> None:
    home = Path(tempfile.mkdtemp(prefix="recollect-serve-"))
    environment = os.environ | {"RECOLLECT_DATA_DIR": str(home)}
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        result = subprocess.run(
            [RECOLLECT, "serve", "--host", host], capture_output=True, text=True, timeout=60, env=environment
        )
        assert result.returncode == 1
        assert "recollect keys create" in result.stderr
        assert "loopback" in result.stderr
    bound = environment | {"RECOLLECT_HOST": "0.0.0.0"}
    doctor = recollect("doctor", env=bound)
    assert doctor.returncode == 1
    assert "recollect keys create" in doctor.stdout
    key = recollect("keys", "create", env=environment)
    doctor = recollect("doctor", env=bound)
    assert doctor.returncode == 0, doctor.stdout
    with serving("--host", "0.0.0.0", RECOLLECT_DATA_DIR=str(home)) as (url, _):
        local = url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{local}/health", timeout=60).status_code == 200
        assert httpx.get(f"{local}/ready", timeout=60).status_code == 401
        bearer = {"Authorization": f"Bearer {key.stdout.strip()}", "Host": "memory.example.org"}
        assert httpx.get(f"{local}/ready", headers=bearer, timeout=60).status_code == 200
    wait_until(lambda: not (home / "data" / "postmaster.pid").exists(), "the server stops")
    shutil.rmtree(home)


def test_a_server_that_cannot_reach_its_database_says_so_and_exits_with_one(settings: Settings, tmp_path: Path) -> None:
    result = subprocess.run(
        [RECOLLECT, "serve", "--port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"RECOLLECT_DATABASE_URL": f"postgresql://me:hunter2@/db?host={tmp_path}"},
    )
    assert result.returncode == 1
    assert "cannot be reached" in result.stderr
    assert "hunter2" not in result.stderr
    assert "Traceback" not in result.stderr
