"""Brings the embedded server up: a supervisor for it, an answer from it, and our role and database in it."""

import asyncio
import enum
import os
import subprocess
import sys
import time

import asyncpg

from recollect.errors import Unavailable
from recollect.storage.embedded import cluster as cluster
from recollect.storage.embedded import supervisor
from recollect.storage.embedded.account import clean_environment
from recollect.storage.embedded.address import Address
from recollect.storage.embedded.home import Home
from recollect.storage.embedded.locks import FileLock
from recollect.storage.failures import translated

_NAME = "recollect"
_POLL_SECONDS = 0.02
_ANSWER_SECONDS = 5.0
_SILENT_SECONDS = supervisor.BUSY_PATIENCE_SECONDS + 15.0  # the supervisor gives up first, and then the log says why
_RECOVERY_SECONDS = 600.0
_STOPPING_SECONDS = supervisor.STOPPING_SECONDS + 10.0
_LOG_BYTES = 10 * 1024 * 1024
_LINES_QUOTED = 8
_BYTES_QUOTED = 2000

_HAS_EXTENSION = "select installed_version = default_version from pg_available_extensions where name = 'vector'"
_MAKE_ROLE = f"create role {_NAME}"
_LIMIT_ROLE = f"alter role {_NAME} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls"
_MAKE_DATABASE = f"create database {_NAME} owner {_NAME} template template0 encoding 'UTF8'"


class _Answer(enum.Enum):
    NONE = "nothing answers"
    WAIT = "it is starting, recovering or stopping"
    BARE = "it answers, and lacks some of our role, database and extension"
    READY = "it answers, and has them"


def ordinary(home: Home) -> Address:
    """Recollect's own database, as the role that row-level security binds."""
    return Address(home.sockets, cluster.PORT, _NAME, _NAME)


def superuser(home: Home) -> Address:
    """The maintenance database, as the superuser."""
    return Address(home.sockets, cluster.PORT, "postgres", "postgres")


def take_lease(home: Home) -> FileLock:
    """Hold the server up from now on. A supervisor that is stopping it holds the file alone: wait for it first."""
    lease = FileLock(home.open_leases())
    if not lease.take_shared(_STOPPING_SECONDS):
        lease.close()
        raise Unavailable(f"The embedded server did not stop in time. {_last_words(home)}")
    return lease


def ensure_running(home: Home) -> None:
    """Return when the server answers and has our database; the caller holds a lease."""
    with FileLock(home.open(home.path / "start.lock")) as turn:
        if not turn.take_exclusive(_RECOVERY_SECONDS):
            raise Unavailable(f"Another process did not start the embedded server in time. {_last_words(home)}")
        with translated("preparing the embedded server"):
            if _wait_for_answer(home) is _Answer.BARE:
                asyncio.run(_furnish(home))


def _wait_for_answer(home: Home) -> _Answer:
    """Launch a supervisor if none is there, once, and ask until the server answers or there is no hope."""
    began = heard = time.monotonic()
    launched = False
    while True:
        with FileLock(home.open(home.path / "supervisor.lock")) as supervision:
            unsupervised = supervision.take_exclusive()
            if unsupervised and not launched:
                _launch_supervisor(home, supervision)
                launched, unsupervised = True, False
        answer = asyncio.run(_ask(ordinary(home)))
        if answer in (_Answer.BARE, _Answer.READY):
            return answer
        now = time.monotonic()
        heard = now if answer is _Answer.WAIT else heard
        if unsupervised or now - heard > _SILENT_SECONDS or now - began > _RECOVERY_SECONDS:
            raise Unavailable(f"The embedded server did not start. {_last_words(home)}")
        time.sleep(_POLL_SECONDS)


def _launch_supervisor(home: Home, supervision: FileLock) -> None:
    """Hand the lock on supervision over to a process of its own, which outlives this one; see supervisor.py."""
    postgres = cluster.prepare(home)
    with home.account.files():
        if home.log.exists() and home.log.stat().st_size > _LOG_BYTES:
            home.log.replace(home.log.with_name(f"{home.log.name}.1"))
    account = (home.account.uid, home.account.gid) if home.account.is_another else ()
    log = home.open(home.log, os.O_APPEND)
    leases = home.open_leases()
    arguments = (supervision.fileno(), leases, postgres, home.data, home.sockets, *account)
    try:
        launcher = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, *map(str, arguments)],
            cwd="/",
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(supervision.fileno(), leases),
        )
    finally:
        os.close(leases)
        os.close(log)
    if launcher.wait() != 0:
        raise Unavailable(f"The embedded server's supervisor did not start. {_last_words(home)}")


async def _ask(address: Address) -> _Answer:
    """A real connection and a real answer: a file with a process number in it proves nothing."""
    try:
        connection = await asyncpg.connect(**address.target, timeout=_ANSWER_SECONDS)
        try:
            furnished = await connection.fetchval(_HAS_EXTENSION, timeout=_ANSWER_SECONDS)
        finally:
            connection.terminate()
    except (asyncpg.InvalidCatalogNameError, asyncpg.InvalidAuthorizationSpecificationError):
        return _Answer.BARE
    except asyncpg.OperatorInterventionError:
        return _Answer.WAIT
    except asyncpg.TooManyConnectionsError:
        return _Answer.READY  # others are using it
    except (OSError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.InternalClientError):
        return _Answer.NONE
    return _Answer.READY if furnished else _Answer.BARE


async def _furnish(home: Home) -> None:
    """Our role, database and extension; what is there already stays. pgvector lets only a superuser create it."""
    as_superuser = superuser(home).target
    connection = await asyncpg.connect(**as_superuser)
    try:
        if not await connection.fetchval("select true from pg_roles where rolname = $1", _NAME):
            await connection.execute(_MAKE_ROLE)
        await connection.execute(_LIMIT_ROLE)
        if not await connection.fetchval("select true from pg_database where datname = $1", _NAME):
            await connection.execute(_MAKE_DATABASE)
    finally:
        await connection.close()
    connection = await asyncpg.connect(**(as_superuser | {"database": _NAME}))
    try:
        await connection.execute("create extension if not exists vector")
        await connection.execute("alter extension vector update")
    finally:
        await connection.close()


def _last_words(home: Home) -> str:
    advice = "Fix the problem and start again, or set RECOLLECT_DATABASE_URL to use another server."
    with os.fdopen(home.open(home.log), "rb") as log:
        log.seek(max(0, os.fstat(log.fileno()).st_size - _BYTES_QUOTED))
        lines = log.read().decode(errors="replace").splitlines()[-_LINES_QUOTED:]
    return f"The last lines of {home.log} are:\n" + "\n".join(lines) + f"\n{advice}"
