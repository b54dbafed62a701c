"""The edits of an agent's files: planned as text, shown as a difference, written whole or not at all."""

import difflib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from recollect.doors.cli.coding_agents import json_text, toml_text
from recollect.doors.cli.coding_agents.agent import SERVER
from recollect.doors.cli.coding_agents.json_text import Edit, Part
from recollect.errors import Conflict, Invalid, Misconfigured

MARK = "coding_agents/hook.py"
"""In every command of ours."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value for a file: a member at a path, or one more item of the list there."""

    path: tuple[str, ...]
    value: Any
    is_item: bool


@dataclass(frozen=True, slots=True)
class Done:
    """An entry that was put into a file, for its way back."""

    path: tuple[str, ...]
    existing: int
    inserted: str
    replaced: str
    is_item: bool

    @property
    def holder(self) -> tuple[str, ...]:
        """The path of what the entry is a part of."""
        return self.path if self.is_item else self.path[:-1]


@dataclass(frozen=True, slots=True)
class Written:
    """What was put into one file."""

    file: str
    is_new: bool
    folders: tuple[str, ...]
    """Those that were made for it."""
    done: tuple[Done, ...]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """From a record, as `dataclasses.asdict` makes it."""
        done = tuple(Done(**each | {"path": tuple(each["path"])}) for each in record["done"])
        return cls(record["file"], record["is_new"], tuple(record["folders"]), done)


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after; None if it is not there."""

    file: Path
    before: str | None
    after: str | None
    written: Written | None = None

    @property
    def is_change(self) -> bool:
        return self.before != self.after

    def difference(self, secret: str | None) -> Iterator[str]:
        """Lines of a unified difference, without the key."""
        before, after = (self.before or "").splitlines(), (self.after or "").splitlines()
        old, new = ("/dev/null" if text is None else str(self.file) for text in (self.before, self.after))
        for line in difflib.unified_diff(before, after, old, new, lineterm="", n=1):
            yield line.replace(secret, "***") if secret else line

    def write(self, *, is_secret: bool = False) -> None:
        """Replace the file at once, keeping its mode; what others wrote since it was planned is not overwritten."""
        target = Path(os.path.realpath(self.file))  # a link stays a link
        if _read(target) != self.before:
            raise Conflict(f"{self.file} has changed meanwhile: run the command again")
        try:
            if self.after is None:
                target.unlink(missing_ok=True)
            elif self.is_change:
                _replace(target, self.after, is_secret)
        except OSError as problem:
            raise Misconfigured(f"{self.file} cannot be written: {problem.strerror}") from problem


def _replace(target: Path, text: str, is_secret: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o644
    part = target.with_name(f"{target.name}.recollect-{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", newline="", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.chmod(0o600 if is_secret else mode)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def installing(file: Path, entries: Sequence[Entry], known: Written | None, new_file: str = "") -> Change:
    """Put entries into a file, in place of those that were put there before."""
    before = _read(file)
    try:
        text = None if before is None else _stripped(before, file, known, entries)
        is_new = text is None or (known is not None and known.is_new and _says(text, file) == _says(new_file, file))
        text, done = (new_file if is_new else text) or "", []
        for entry in entries:
            text, one = _put(text, file, entry)
            done.append(one)
    except Invalid as problem:
        raise Invalid(f"{file} is left as it is: {problem}") from problem
    missing = tuple(str(folder) for folder in reversed(file.parents) if not folder.exists())
    folders = known.folders if known is not None else missing
    return Change(file, before, text, Written(str(file), is_new, folders, tuple(done)))


def uninstalling(known: Written, new_file: str = "") -> Change:
    """Take out of a file what was put there."""
    file = Path(known.file)
    before = _read(file)
    if before is None:
        return Change(file, None, None)
    try:
        after = _stripped(before, file, known, ())
        is_ours = known.is_new and _says(after, file) in (_says(new_file, file), {})
    except Invalid as problem:
        raise Invalid(f"{file} is left as it is: {problem}") from problem
    return Change(file, before, None if is_ours else after, known)


def is_complete(written: Written) -> bool:
    """Whether everything that was put into a file is still there, in whatever form."""
    file = Path(written.file)
    text = _read(file) or ""
    return all(_without_parts(text, file, [done], None) != text for done in written.done) if text.strip() else False


def remove_folders(written: Written) -> None:
    """Those that were made for a file, if nothing else is in them."""
    for folder in reversed(written.folders):
        with suppress(OSError):
            Path(folder).rmdir()


def _read(file: Path) -> str | None:
    try:
        with file.open(newline="", encoding="utf-8") as opened:
            return opened.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        raise Misconfigured(f"{file} cannot be read: {reason}") from problem


def _is_toml(file: Path) -> bool:
    return file.suffix == ".toml"


def _says(text: str, file: Path) -> Any:
    if not text.strip():
        return {}
    return toml_text.parse(text) if _is_toml(file) else json_text.parse(text).value


def _put(text: str, file: Path, entry: Entry) -> tuple[str, Done]:
    edit: Edit
    if _is_toml(file):
        (text, edit), existing = toml_text.put(text, entry.path, entry.value), 0
    else:
        text, edit, existing = json_text.put(text, entry.path, entry.value, is_item=entry.is_item)
    return text, Done(entry.path, existing, edit.inserted, edit.replaced, entry.is_item)


def _stripped(text: str, file: Path, known: Written | None, entries: Sequence[Entry]) -> str:
    """A text without what is ours: to the byte where nobody has touched it, else part by part."""
    if not text.strip():
        return text
    if known is None:
        # The record is lost, or somebody wrote the very same by hand.
        done = [Done(entry.path, len(entry.path), "", "", entry.is_item) for entry in entries]
        same = [entry.value for entry in entries if not entry.is_item]
        return _without_parts(text, file, done, same)
    rest = _without_parts(text, file, known.done, None)
    exact = text
    for each in reversed(known.done):
        if exact.count(each.inserted) != 1:
            return rest
        exact = exact.replace(each.inserted, each.replaced)
    return exact if not exact.strip() or _says(exact, file) == _says(rest, file) else rest


def _without_parts(text: str, file: Path, done: Sequence[Done], same: Sequence[Any] | None) -> str:
    """Without our hooks, and without the server of our name, if it is one of these or they are not given."""

    def is_ours(part: Part) -> bool:
        value = part.node.value
        if part.name == SERVER:
            return same is None or value in same
        return isinstance(value, dict) and MARK in str(value.get("command", ""))

    for each in reversed(done):
        if _is_toml(file):
            text = toml_text.remove(text, each.path)
        else:
            text = json_text.remove(text, each.holder, is_ours, each.existing)
    return text
