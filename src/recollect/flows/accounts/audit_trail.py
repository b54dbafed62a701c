"""AuditTrail: lists, exports, verifies and prunes the audit log."""

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect import checks, logs, origin
from recollect.errors import Invalid, NotFound
from recollect.flows.kinds import registry
from recollect.memory.accounts.audit import (
    OUTCOMES,
    START,
    AuditFilter,
    AuditLog,
    Entry,
    Head,
    Line,
    Place,
    hash_after,
)
from recollect.storage.database import Database

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000

# Lines searched for one page, however few match: about ten milliseconds.
LOOKED_AT = 50_000

# Lines in memory at a time when the whole log is read.
PAGE = 2_000

PRUNED = "prune"
LINES = "audit"

DOORS = ("rest", "gateway", "mcp", "console", "cli", "library")

_BESIDE_THE_FEED = (
    *("checkpoint", "connection", "file_version", "golden_run", "grant", "job", "judgement", "key", "session", "stale"),
    LINES,
)


@dataclass(frozen=True, slots=True)
class Page:
    """Lines, newest first. Pass `before` for the next page; None if there is none."""

    lines: list[Line]
    before: int | None


@dataclass(frozen=True, slots=True)
class Verified:
    """The number of lines checked, both ends of the chain, and the first fault, if any."""

    lines: int
    head: Head
    fault: str | None = None
    number: int | None = None
    """The line with the fault."""


class _Fault(Exception):
    """The chain is broken at a line."""

    def __init__(self, number: int, sentence: str) -> None:
        super().__init__(sentence)
        self.number = number


class AuditTrail:
    """What administrators do with the log."""

    def __init__(self, database: Database, log: AuditLog) -> None:
        self._database = database
        self._log = log

    async def page(
        self, namespace: str, chosen: AuditFilter | None = None, before: int | None = None, limit: int = DEFAULT_LIMIT
    ) -> Page:
        """Matching lines before a number, newest first. A page can be empty and still have a next one."""
        chosen = chosen or AuditFilter()
        checks.between(limit, 1, MAX_LIMIT, "limit")
        _check(chosen)
        if before is not None:
            checks.between(before, 1, checks.LARGEST_ID, "before")
        async with self._database.reading(namespace) as db:
            head = await self._log.head(db)
            ahead_of = head.last.number + 1 if before is None else min(before, head.last.number + 1)
            least = max(ahead_of - LOOKED_AT, head.anchor.number + 1)
            lines = await self._log.newest(db, ahead_of, least, limit, chosen)
        reached = lines[-1].number if len(lines) == limit else least
        return Page(lines, reached if reached > head.anchor.number + 1 else None)

    async def exported(self, namespace: str) -> AsyncIterator[str]:
        """Every line as JSON with its hash. The header says what the chain continues, the last line where it ends."""
        async with self._database.snapshot(namespace) as db:
            head = await self._log.head(db)
            yield json.dumps({"audit": 1, "namespace": namespace, "after": _place(head.anchor)})
            number = head.anchor.number
            while lines := await self._log.since(db, number, PAGE):
                for line in lines:
                    yield json.dumps(line.fields(namespace) | {"hash": line.hash.hex()})
                number = lines[-1].number
            yield json.dumps({"head": _place(head.last)})

    async def verify(
        self,
        namespace: str,
        earlier: Iterable[str] | None = None,
        checked: Callable[[int, int], None] = lambda done, total: None,
    ) -> Verified:
        """Recompute the chain, compare it with an earlier export if one is given, and report the first fault."""
        export = None if earlier is None else _Export(namespace, earlier)
        async with self._database.snapshot(namespace) as db:
            head = await self._log.head(db)
            chain = _Chain(namespace, head, export)
            try:
                if export is not None:
                    export.skip_to(head.anchor)
                while lines := await self._log.since(db, chain.last.number, PAGE):
                    for line in lines:
                        chain.add(line)
                    checked(chain.last.number - head.anchor.number, head.last.number - head.anchor.number)
                chain.end()
            except _Fault as fault:
                return Verified(chain.lines, head, str(fault), fault.number)
        return Verified(chain.lines, head)

    async def count_before(self, namespace: str, before: datetime) -> int:
        """How many lines `prune` would delete."""
        moment = checks.utc(before, "before")
        async with self._database.reading(namespace) as db:
            head = await self._log.head(db)
            return (await self._log.last_before(db, head, moment)).number - head.anchor.number

    async def prune(self, namespace: str, before: datetime) -> int:
        """Delete the lines before a moment and record that in a new line; returns how many were deleted."""
        moment = checks.utc(before, "before")
        by = origin.current()
        async with self._database.transaction(namespace) as tx:
            await self._log.lock(tx)
            head = await self._log.head(tx)
            last = await self._log.last_before(tx, head, moment)
            count = last.number - head.anchor.number
            if not count:
                raise NotFound(f"Namespace {namespace} has no audit lines before {moment.isoformat()}")
            told = {"event": PRUNED, "kind": LINES, "count": count, "ids": [_name(last)]}
            # This line is in the remaining chain, so nobody can forge the new beginning without breaking the chain.
            await self._log.append(
                tx, [Entry(by.key_id, by.author, by.door, "audit prune", "done", logs.request_id(), [told])]
            )
            await self._log.remove(tx, last)
        return count


def kinds() -> list[str]:
    """The kinds of items that lines name."""
    return sorted((*registry.in_feed(), *_BESIDE_THE_FEED))


def _check(chosen: AuditFilter) -> None:
    """Refuse what no line can have: it is misspelt."""
    if chosen.outcome is not None:
        checks.one_of(chosen.outcome, OUTCOMES, "outcome")
    if chosen.door is not None:
        checks.one_of(chosen.door, DOORS, "door")
    if chosen.kind is not None or chosen.item_id is not None:
        checks.one_of(chosen.kind or "", kinds(), "item must be KIND or KIND:ID, and KIND")


class _Chain:
    """Checks each line against the one before it."""

    def __init__(self, namespace: str, head: Head, export: "_Export | None") -> None:
        self._namespace = namespace
        self._head = head
        self._export = export
        self._pruned: str | None = None
        self.last = head.anchor
        self.lines = 0

    def add(self, line: Line) -> None:
        expected = self.last.number + 1
        if line.number != expected:
            raise _Fault(expected, f"Line {expected} is missing: line {line.number} follows line {self.last.number}")
        if line.number > self._head.last.number:
            raise _Fault(line.number, f"Line {line.number} comes after the recorded end of the chain")
        if line.hash_after(self.last.hash, self._namespace) != line.hash:
            raise _Fault(line.number, f"Line {line.number} was changed or moved: its hash does not match")
        if self._export is not None:
            self._export.compare(line)
        for each in line.entry.touched:
            if each["event"] == PRUNED and each["kind"] == LINES:
                self._pruned = each["ids"][0]
        self.last = Place(line.number, line.hash)
        self.lines += 1

    def end(self) -> None:
        """Check that nothing is missing at either end."""
        head = self._head
        if self.last.number < head.last.number:
            first = self.last.number + 1
            raise _Fault(first, f"The last lines are missing: {first} to {head.last.number}")
        if self.last.hash != head.last.hash:
            raise _Fault(head.last.number, "The last line does not match the recorded end of the chain")
        if self._pruned != (None if head.anchor.number == 0 else _name(head.anchor)):
            raise _Fault(
                head.anchor.number + 1, "Lines before the first one were removed other than by `recollect audit prune`"
            )
        if self._export is not None:
            self._export.end(self.last)


class _Export:
    """An earlier export, read in step with the chain; all of its lines must still be there."""

    def __init__(self, namespace: str, lines: Iterable[str]) -> None:
        self._objects = _objects(lines)
        first = next(self._objects, {})
        if first.get("audit") != 1:
            raise Invalid("The file is not an export of the audit log: make one with `recollect audit export`")
        if first.get("namespace") != namespace:
            raise Invalid(f"The file is an export of namespace {first.get('namespace')}, not of {namespace}")
        self._last = _read_place(first, "after")
        self._line: dict[str, Any] | None = None
        self._next()

    def skip_to(self, anchor: Place) -> None:
        """Skip the lines that were pruned since."""
        while self._line is not None and self._line["number"] <= anchor.number:
            self._next()
        if self._last.number < anchor.number:
            raise Invalid(
                f"All lines of the file have been pruned: it ends at line {self._last.number}. Use a newer export."
            )
        if self._last.number == anchor.number and self._last.hash != anchor.hash:
            raise _Fault(anchor.number, f"Line {anchor.number} of the file is not the one that the log continues")

    def compare(self, line: Line) -> None:
        """Compare a line with the one of the same number in the file, if there is one."""
        if line.number == self._last.number and line.hash != self._last.hash:
            raise _Fault(line.number, f"Line {line.number} is not the one that the file continues")
        if self._line is not None and line.number == self._line["number"]:
            if self._line["hash"] != line.hash.hex():
                raise _Fault(line.number, f"Line {line.number} differs from the file")
            self._next()

    def end(self, last: Place) -> None:
        """Check that the file has no more lines."""
        if self._line is not None:
            number = self._line["number"]
            raise _Fault(number, f"The chain ends at line {last.number}, but the file has line {number}")

    def _next(self) -> None:
        """Go to the next line. The file must be an unbroken chain, or it proves nothing."""
        if self._line is not None:
            self._last = Place(self._line["number"], bytes.fromhex(self._line["hash"]))
        found = next(self._objects, None)
        if found is None or "head" in found:
            if found is None or _read_place(found, "head") != self._last:
                raise Invalid("The last lines of the file are missing: use another export")
            self._line = None
            return
        number = self._last.number + 1
        fields = {name: value for name, value in found.items() if name != "hash"}
        if found.get("number") != number or hash_after(self._last.hash, fields).hex() != found.get("hash"):
            raise Invalid(f"The file was changed at line {number}: use another export")
        self._line = found


def _objects(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The lines of a file that may have been edited."""
    for number, line in enumerate(lines, 1):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise Invalid(f"Line {number} of the file is not JSON") from problem
        if not isinstance(found, dict):
            raise Invalid(f"Line {number} of the file is not a line of the audit log")
        yield found


def _place(place: Place) -> dict[str, Any]:
    return {"number": place.number, "hash": place.hash.hex()}


def _read_place(given: dict[str, Any], name: str) -> Place:
    match given.get(name):
        case {"number": int(number), "hash": str(digest)} if len(digest) == 2 * len(START):
            try:
                return Place(number, bytes.fromhex(digest))
            except ValueError:
                pass
    raise Invalid(f"The file has no valid `{name}`: use another export")


def _name(place: Place) -> str:
    return f"{place.number}:{place.hash.hex()}"
