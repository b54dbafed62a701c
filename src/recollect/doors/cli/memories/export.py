"""`recollect export`: a namespace or a user as JSON Lines, in a file or on standard output."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import BinaryIO

from recollect.doors.cli.one_command import chosen_namespace, with_engine
from recollect.doors.cli.printing import echo
from recollect.engine import Engine
from recollect.errors import Conflict, Invalid

STANDARD = Path("-")


def run(path: Path, namespace: str | None, user: str | None, overwrite: bool) -> None:
    """Write an export, and say so unless it went to standard output."""
    lines = write(path, overwrite, lambda engine: engine.exporting.lines(chosen_namespace(engine, namespace), user))
    if lines is not None:
        echo(f"Wrote {lines - 2:,} record(s) to {path}. Protect it like the database itself.")


def write(path: Path, overwrite: bool, lines: Callable[[Engine], AsyncIterator[str]]) -> int | None:
    """Write lines to a file, and return how many; None if they went to standard output."""
    if path == STANDARD:
        try:
            with_engine(lambda engine: _write(lines(engine), sys.stdout.buffer))
        except BrokenPipeError:
            # The reader has closed the pipe; flushing what is still buffered must not fail at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return None
    if path.exists() and not overwrite:
        raise Conflict(f"{path} already exists: choose another name, or use --force to replace it")
    # Readable only by its owner, and under its name once it is complete.
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            count = with_engine(lambda engine: _write(lines(engine), file))
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as problem:
        raise Invalid(f"{path} cannot be written: {problem.strerror or problem}") from problem
    finally:
        partial.unlink(missing_ok=True)
    return count


async def _write(lines: AsyncIterator[str], file: BinaryIO) -> int:
    count = 0
    async for line in lines:
        file.write(line.encode() + b"\n")
        count += 1
    file.flush()
    return count
