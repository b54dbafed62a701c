"""`recollect serve --workers 2`: processes that share one address."""

import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from recollect.settings import Settings
from tests.commands import INSTALLED
from tests.doors.test_serve import serving
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.parametrize("pooling", ["session"], indirect=True),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc"),
]


def workers(supervisor: int) -> set[int]:
    """The server processes, without the helper of Python's own that tends to their semaphores."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == supervisor and b"spawn_main" in command:
            found.add(int(folder.name))
    return found


def is_alive(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


def who_answers(url: str) -> set[str]:
    """The processes that take one of many requests at once, by the ids that they give themselves."""

    def ask(_: int) -> str:
        # A connection for each request: one that is kept stays with its process.
        connection = HTTPConnection(address.host, address.port, timeout=60)
        connection.request("GET", "/metrics")
        (found,) = re.findall(rb'service_instance_id="([^"]+)"', connection.getresponse().read())
        connection.close()
        return str(found)

    address = httpx.URL(url)
    with ThreadPoolExecutor(8) as pool:
        return set(pool.map(ask, range(16)))


def test_all_serve_and_one_that_is_killed_is_begun_again(settings: Settings) -> None:
    # Nobody reads what it prints, and a line for each request would fill the pipe.
    with serving("--workers", "2", RECOLLECT_LOG_LEVEL="WARNING") as (url, process):
        seen: set[str] = set()

        def both_answer() -> bool:
            seen.update(who_answers(url))
            return len(seen) == 2

        wait_until(both_answer, "both processes have answered")
        before = workers(process.pid)
        assert len(before) == 2
        # However young it is: once all have served, the cause may pass.
        victim = before.pop()
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: len(workers(process.pid) - {victim}) == 2, "another was begun")
        after = workers(process.pid)
        assert before < after
        wait_until(lambda: len(who_answers(url) - seen) == 1, "the new one answers too")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == 0
        assert not any(map(is_alive, after))


def test_a_stop_signal_ends_unfinished_requests_in_order_and_leaves_no_process(settings: Settings) -> None:
    with serving("--workers", "2") as (url, process):
        running = workers(process.pid)
        address = httpx.URL(url)
        with socket.create_connection((address.host, address.port or 0), timeout=60) as client:
            head = "POST /ltm/memories HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
            client.sendall(f"{head}Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n".encode())
            # The server has begun to read the request when it asks for the rest.
            assert client.recv(1000).startswith(b"HTTP/1.1 100")
            process.send_signal(signal.SIGTERM)
            answer = client.recv(10_000)
        assert answer.startswith(b"HTTP/1.1 503"), answer
        printed, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "Traceback" not in printed
    assert len(running) == 2
    assert not any(map(is_alive, running))


def test_workers_that_cannot_live_are_given_up_with_a_sentence(settings: Settings) -> None:
    program = [sys.executable, "-m", "tests.doors.short_lived"]
    result = subprocess.run(program, capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[2])
    assert result.returncode == 1
    assert "A server process exited at start-up with code 7" in result.stderr
    assert "Traceback" not in result.stderr
    assert "all of them serve" not in result.stdout


def test_workers_end_when_their_supervisor_is_killed(settings: Settings) -> None:
    with serving("--workers", "2") as (_, process):
        both = workers(process.pid)
        assert len(both) == 2
        process.kill()
        wait_until(lambda: not any(map(is_alive, both)), "the workers have ended too")


def test_a_database_that_is_away_is_one_sentence_with_workers_too(settings: Settings, tmp_path: Path) -> None:
    result = subprocess.run(
        [INSTALLED, "serve", "--port", "0", "--workers", "2"],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"RECOLLECT_DATABASE_URL": f"postgresql://me:hunter2@/db?host={tmp_path}"},
    )
    assert result.returncode == 1
    assert "cannot be reached" in result.stderr
    assert "Traceback" not in result.stderr
    assert "hunter2" not in result.stderr
