"""Sessions: one append-only JSON Lines file each, in which an acknowledged event survives a crash."""

import json
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from recollect.agent.faults import Refused
from recollect.agent.workspace import files

SUFFIX = ".jsonl"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_TAIL_BYTES = 1 << 16
# Far more than a prompt, an answer or a tool's result; a longer line is no event.
MAX_LINE_BYTES = 16 * 1024 * 1024

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """One line: a message that later runs see, or a hidden event for readers of the file."""

    type: str
    run_id: str
    at_ms: int
    context_visible: bool
    role: Literal["user", "assistant"] | None = None
    content: str = ""
    payload: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def message(cls, run_id: str, role: Literal["user", "assistant"], content: str, at_ms: int) -> "SessionEvent":
        """What was said, for later runs to see."""
        return cls("message", run_id, at_ms, context_visible=True, role=role, content=content)

    @classmethod
    def hidden(cls, run_id: str, name: str, payload: dict[str, Any]) -> "SessionEvent":
        """What happened, for the record alone."""
        return cls(name, run_id, now_ms(), context_visible=False, payload=payload)


def now_ms() -> int:
    """UTC Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


class SessionStore:
    """The session files of one workspace; any number of processes may append."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def new_id(self) -> str:
        """An id that sorts by time and that a person can type."""
        return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"

    def exists(self, session_id: str) -> bool:
        """Whether anything was said in a session."""
        try:
            with self._opened(session_id):
                return True
        except OSError:
            return False

    def ids(self) -> list[str]:
        """All sessions, the last written first."""
        try:
            found = [(path.lstat(), path.stem) for path in self._folder.glob(f"*{SUFFIX}")]
        except OSError as problem:
            raise files.unreadable(self._folder, problem) from problem
        written = [(status.st_mtime_ns, name) for status, name in found if stat.S_ISREG(status.st_mode)]
        return [name for _, name in sorted(written, reverse=True) if _ID.fullmatch(name)]

    def append(self, session_id: str, events: Iterable[SessionEvent]) -> None:
        """Write events for good: one write and one sync for all of them."""
        path = self._path(session_id)
        lines = "".join(map(_line, events)).encode()
        files.private_directory(self._folder)
        try:
            new = not self.exists(session_id)
            with self._opened(session_id, os.O_RDWR | os.O_APPEND | os.O_CREAT) as descriptor:
                files.take_lock(descriptor, path)
                _repair(descriptor)
                _write_all(descriptor, lines)
                os.fsync(descriptor)
            if new:
                files.sync_directory(self._folder)
        except OSError as problem:
            raise files.unwritable(path, problem) from problem

    def events(self, session_id: str) -> Iterator[SessionEvent]:
        """Everything in a session, in order. A last line that a crash tore is not there."""
        path = self._path(session_id)
        try:
            with self._opened(session_id) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
                number = 0
                while line := file.readline(MAX_LINE_BYTES):
                    number += 1
                    if event := _event(line, f"{path.name}:{number}"):
                        yield event
                    # What is left of a line that is too long is passed over.
                    while len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                        line = file.readline(MAX_LINE_BYTES)
        except FileNotFoundError:
            return
        except OSError as problem:
            raise files.unreadable(path, problem) from problem

    def recent(self, session_id: str, count: int) -> list[SessionEvent]:
        """The last visible messages, the oldest first. Only the end of the file is read, however long it is."""
        path = self._path(session_id)
        found: list[SessionEvent] = []
        try:
            with self._opened(session_id) as descriptor:
                for line in _lines_backwards(descriptor):
                    event = _event(line, path.name)
                    if event and event.context_visible and event.role:
                        found.append(event)
                        if len(found) == count:
                            break
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise files.unreadable(path, problem) from problem
        return found[::-1]

    def _path(self, session_id: str) -> Path:
        if not _ID.fullmatch(session_id):
            raise Refused(
                "A session id must be 1 to 128 letters, digits, dots, hyphens or underscores, "
                "starting with a letter or digit"
            )
        return self._folder / f"{session_id}{SUFFIX}"

    def _opened(self, session_id: str, flags: int = os.O_RDONLY) -> AbstractContextManager[int]:
        return files.opened(self._folder.parent, self._folder.name, self._path(session_id).name, flags=flags)


def _write_all(descriptor: int, lines: bytes) -> None:
    """One write; a disk that takes only a part of it has the rest in the next, or raises."""
    while lines:
        lines = lines[os.write(descriptor, lines) :]


def _repair(descriptor: int) -> None:
    """Cut off a line that a crash tore and that was never confirmed as stored. The lock keeps writers out.

    A whole event without its line end is a person's edit, and gets one.
    """
    size = os.fstat(descriptor).st_size
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return
    # The last line starts behind the last line end, which may be far from the end of the file.
    start, newline = size, -1
    while start > 0 and newline < 0:
        end, start = start, max(0, start - _TAIL_BYTES)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
    start += newline + 1
    if size - start <= MAX_LINE_BYTES and _read(os.pread(descriptor, size - start, start)) is not None:
        _write_all(descriptor, b"\n")
    else:
        os.ftruncate(descriptor, start)


def _lines_backwards(descriptor: int) -> Iterator[bytes]:
    end = os.fstat(descriptor).st_size
    rest = b""
    while end > 0 and len(rest) <= MAX_LINE_BYTES:
        start = max(0, end - _TAIL_BYTES)
        rest = os.pread(descriptor, end - start, start) + rest
        first, newline, whole = rest.partition(b"\n")
        if start > 0 and not newline:
            end = start
            continue
        kept, whole = (first + newline, whole) if start > 0 else (b"", rest)
        yield from reversed(whole.splitlines(keepends=True))
        rest, end = kept, start


def _line(event: SessionEvent) -> str:
    fields: dict[str, Any] = {
        "type": event.type,
        "run_id": event.run_id,
        "at_ms": event.at_ms,
        "context_visible": event.context_visible,
    }
    if event.role:
        fields |= {"role": event.role, "content": event.content}
    if event.payload:
        fields["payload"] = event.payload
    # Escaped, so that nothing in a message can be taken for the end of its line, nor fail to encode.
    return json.dumps(fields) + "\n"


def _event(line: bytes, place: str) -> SessionEvent | None:
    """The event of a whole line. Damaged lines are skipped, and the log says where."""
    if not line.strip():
        return None
    event = _read(line)
    # A last line that a crash tore is not an error.
    if event is None and line.endswith(b"\n"):
        _log.warning("Skipped an unreadable line in a session file: %s", place)
    return event


def _read(line: bytes) -> SessionEvent | None:
    try:
        fields = json.loads(line)
        role = fields.get("role")
        return SessionEvent(
            str(fields["type"]),
            str(fields["run_id"]),
            int(fields["at_ms"]),
            fields["context_visible"] is True,
            role if role in ("user", "assistant") else None,
            str(fields.get("content", "")),
            dict(fields.get("payload", {})),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
