"""Clients of embedded servers in processes of their own, and what can be seen of such a server from outside."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import asyncpg

from recollect.storage import embedded
from recollect.storage.embedded.locks import FileLock
from tests.waiting import wait_until

LOST = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)

CLIENT = """
import ctypes, pathlib, sys
from recollect.storage import embedded
if "subreaper" in sys.argv:
    assert ctypes.CDLL(None).prctl(36, 1) == 0  # PR_SET_CHILD_SUBREAPER
with embedded.start(pathlib.Path(sys.argv[1])):
    print("ready", flush=True)
    sys.stdin.read()
"""


class Client:
    """Another process that holds a lease until its input ends or it is killed."""

    started: ClassVar[list["Client"]] = []

    def __init__(self, home: Path, *options: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(home), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(os.environ) | environment,
        )
        Client.started.append(self)

    def ready(self) -> "Client":
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"
        return self

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def finish(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0


def end_clients() -> None:
    for client in Client.started:
        client.kill()
        for stream in (client.process.stdin, client.process.stdout):
            assert stream is not None
            stream.close()
    Client.started.clear()


def ask(address: embedded.Address, query: str) -> Any:
    async def answer() -> Any:
        connection = await asyncpg.connect(**address.target)
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()

    return asyncio.run(answer())


def answers(address: embedded.Address) -> bool:
    try:
        return bool(ask(address, "select 1"))
    except LOST:
        return False


def postmaster(home: Path) -> int:
    return int((home / "data" / "postmaster.pid").read_text().split()[0])


def is_back(lease: embedded.Lease, killed: int) -> bool:
    """Whether another server answers; processes of the killed one may still do so for a moment."""
    if not answers(lease.connection):
        return False
    return postmaster(lease.connection.socket_dir.parent) != killed


def parent_of(pid: int) -> int:
    return int(subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, check=True).stdout)


def is_alive(pid: int) -> bool:
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False).stdout.strip()
    return bool(shown) and not shown.startswith(b"Z")


def is_supervised(home: Path) -> bool:
    if not (home / "supervisor.lock").exists():
        return False
    with FileLock(os.open(home / "supervisor.lock", os.O_RDWR)) as lock:
        return not lock.take_exclusive()


def wait_until_stopped(home: Path) -> None:
    wait_until(lambda: not is_supervised(home) and not (home / "data" / "postmaster.pid").exists(), "the server stops")
