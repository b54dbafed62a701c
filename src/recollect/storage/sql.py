"""Named SQL: statements live in a `.sql` file beside the capability that owns them.

A block is a line `-- name`, a comment that says what it is for, and one statement. Its values are named (`:owner`),
`:namespace` comes from the transaction, and PostgreSQL is given numbers: they are counted when the file is loaded.

What a statement does says which role a caller needs for it. A comment that begins with `-- Role write` or another role
says otherwise, and why. Callers whose keys are limited to a user or an agent run only statements with a `-- Limit ...`:
see `recollect.storage.limits.limited`.

`-- Audit memory id` says that a statement shows or changes memories, and which column or value has their ids. Where an
answer shows only some of the rows, the flow notes them instead, with `recollect.origin.touch`.
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Self, cast

from recollect.origin import READ, Role

_BLOCK = re.compile(
    r"^-- (?P<name>[a-z][a-z0-9_]*)[ \t]*\n(?P<body>.*?)(?=^-- [a-z][a-z0-9_]*[ \t]*\n|\Z)", re.M | re.S
)

# Not a cast (`::text`), nor a slice of an array.
_PARAMETER = re.compile(r"(?<![:\w\]\[]):([a-z][a-z0-9_]*)")

_ROLE = re.compile(r"^-- Role (read|write|admin)\b", re.M)

_LIMIT = re.compile(r"^-- Limit (given|found|found_in|seen|session|memory|none)\b((?: (?:-|[a-z_]+),?)*)", re.M)

_AUDIT = re.compile(r"^-- Audit ([a-z_]+) ([a-z_]+)$", re.M)

_COMMENT = re.compile(r"--.*")

# Rows that go are gone for good, unless the statement says where they are kept.
_ERASES = re.compile(r"\b(delete\s+from|truncate)\b")

# A lock (`for update`) changes nothing. Functions of ours that write are in migrations.
_WRITES = re.compile(r"\b(insert\s+into|merge\s+into|(?<!for )(?<!key )update|append_messages\w*|record_changes)\b")


class Limit(NamedTuple):
    """How a statement keeps within the limits of a key, and the values or columns that show it."""

    how: str
    names: tuple[str, ...]


class Audit(NamedTuple):
    """What a statement does to items: the event, their kind, and the column or value that has their ids."""

    event: str
    kind: str
    ids: str


@dataclass(frozen=True, slots=True)
class Query:
    """One statement, the name it is known by in errors, and its values in the order of their numbers."""

    name: str
    text: str
    parameters: tuple[str, ...] = ()
    role: Role = "read"
    """What a caller must have to run it."""
    limits: tuple[Limit, ...] = ()
    """Why a limited caller may run it; not without."""
    audit: Audit | None = None

    @classmethod
    def named(cls, name: str, sql: str) -> Self:
        """A statement with named values; the namespace is the first of them, unless it looks across all."""
        numbers = {"namespace": 1} if ":namespace" in sql else {}
        text = _PARAMETER.sub(lambda match: f"${numbers.setdefault(match[1], len(numbers) + 1)}", sql)
        parameters = tuple(name for name in numbers if name != "namespace")
        return cls(name, text, parameters, role_for(sql), limits_of(sql), audit_of(sql))

    def values(self, given: Mapping[str, object]) -> list[object]:
        """What the caller gave, in the order of the numbers."""
        if given.keys() != set(self.parameters):
            raise TypeError(f"{self.name} takes {', '.join(self.parameters) or 'no values'}, not {', '.join(given)}")
        return [given[name] for name in self.parameters]


def role_for(sql: str) -> Role:
    """The role that a statement needs."""
    if said := _ROLE.search(sql):
        return cast(Role, said[1])
    code = _COMMENT.sub("", sql).lower()
    return "admin" if _ERASES.search(code) else "write" if _WRITES.search(code) else "read"


def audit_of(sql: str) -> Audit | None:
    """Which items a statement shows or changes, by its comment."""
    if (said := _AUDIT.search(sql)) is None:
        return None
    code = _COMMENT.sub("", sql).lower()
    return Audit("delete" if _ERASES.search(code) else "change" if _WRITES.search(code) else READ, said[1], said[2])


def limits_of(sql: str) -> tuple[Limit, ...]:
    """What a statement says of limits."""
    return tuple(Limit(how, tuple(names.replace(",", "").split())) for how, names in _LIMIT.findall(sql))


class Queries:
    """A capability's statements, declared once more by name so that the type checker knows them.

        class _Sql(Queries, file="log.sql"):
            append: Query

    A declared name without a block, or an undeclared block, fails at import.
    """

    file: ClassVar[str]

    def __init_subclass__(cls, *, file: str) -> None:
        cls.file = file
        path = Path(str(sys.modules[cls.__module__].__file__)).with_name(file)
        blocks = read_blocks(path)
        declared = {name for name, kind in cls.__annotations__.items() if kind in (Query, "Query")}
        if unknown := declared - blocks.keys():
            raise ImportError(f"{file} has no block named {', '.join(sorted(unknown))}")
        if unused := blocks.keys() - declared:
            raise ImportError(f"{file} has undeclared blocks: {', '.join(sorted(unused))}")
        for name, text in blocks.items():
            setattr(cls, name, Query.named(f"{path.stem}.{name}", text))


def read_blocks(path: Path) -> dict[str, str]:
    """The statements of one file by name; a name that stands twice is an error."""
    blocks: dict[str, str] = {}
    for match in _BLOCK.finditer(path.read_text(encoding="utf-8")):
        name, body = match["name"], match["body"].strip()
        if name in blocks:
            raise ImportError(f"{path.name} has two blocks named {name}")
        if not body.startswith("-- "):
            raise ImportError(f"block {name} in {path.name} does not say what it is for")
        blocks[name] = body
    return blocks


def statements(script: str) -> list[str]:
    """The statements of a script, each ended by a semicolon at the end of a line: Citus takes one at a time."""
    found: list[str] = []
    lines: list[str] = []
    in_body = False
    for line in script.splitlines():
        lines.append(line)
        code = line.split("--")[0].rstrip()
        # The body of a function is one part of a statement.
        in_body ^= code.count("$$") % 2 == 1
        if code.endswith(";") and not in_body:
            found.append("\n".join(lines))
            lines.clear()
    if any(line.split("--")[0].strip() for line in lines):
        raise ValueError(f"This statement has no end: {lines[-1]}")
    return found
