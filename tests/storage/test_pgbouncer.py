"""Behind a real PgBouncer in transaction mode, where server connections change between transactions."""

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr

from recollect import MemoryManager, Settings
from recollect.storage.embedded import Lease
from tests.waiting import wait_until

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def pooler(server: Lease) -> Iterator[str]:
    """The address of a PgBouncer with two server connections in transaction mode."""
    if PGBOUNCER is None:
        pytest.skip("Debian's pgbouncer is not installed here; .ci/run installs it")
    folder = Path(tempfile.mkdtemp(prefix="recollect-pgbouncer-"))
    port, address = free_port(), server.connection
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n{address.database} = host={address.socket_dir} port={address.port} user={address.user}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 100\n"
        f"logfile = {folder}/log\npidfile = {folder}/pid\n"
    )
    # PgBouncer refuses to run as root, and its server connections need the account that owns the socket.
    owner, as_root = address.socket_dir.stat(), os.geteuid() == 0
    if as_root:
        os.chown(folder, owner.st_uid, owner.st_gid)
    process = subprocess.Popen(
        [PGBOUNCER, str(folder / "pgbouncer.ini")],
        user=owner.st_uid if as_root else None,
        group=owner.st_gid if as_root else None,
        extra_groups=[] if as_root else None,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: answers(port) or process.poll() is not None, "PgBouncer listens")
    assert process.poll() is None, (folder / "log").read_text()
    yield f"postgresql://{address.user}@127.0.0.1:{port}/{address.database}"
    process.terminate()
    process.wait(30)
    shutil.rmtree(folder)


@pytest.mark.parametrize("pooling", ["transaction"], indirect=True)
async def test_the_library_works_through_a_transaction_pooler(pooler: str, settings: Settings) -> None:
    chosen = settings.model_copy(update={"database_url": SecretStr(pooler)})
    other = f"test-{uuid4()}"
    session = uuid4()
    async with MemoryManager(chosen) as memory, MemoryManager(chosen, namespace=other) as stranger:
        await asyncio.gather(
            *(memory.store_message(session, "user", f"message {n}") for n in range(40)),
            *(stranger.store_message(session, "user", f"other {n}") for n in range(40)),
        )
        vector = [0.25] * 1536
        document = await memory.store_document("text", {"k": 1}, vector)
        assert [d.id for d in await memory.semantic_search(vector)] == [document]
        assert await stranger.semantic_search(vector) == []
        own = [m.content for m in await memory.get_conversation_history(session)]
        assert sorted(own) == sorted(f"message {n}" for n in range(40))
        assert all(m.content.startswith("other") for m in await stranger.get_conversation_history(session))
