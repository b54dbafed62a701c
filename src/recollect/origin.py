"""Origin: by which door a call comes, who makes it and what that caller may do; set once by the door.

With the audit log on, it also collects what the call touches.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from recollect.errors import Forbidden
from recollect.quotas import Subject

# As long as the id of a user may be; the label of a key may be longer.
MAX_AUTHOR_CHARACTERS = 255

Role = Literal["read", "write", "admin"]
ROLES: tuple[Role, ...] = ("read", "write", "admin")
"""Each may do what the ones before it may. To write is to add and to change; to delete for good is left to an admin."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The only user, the only agent, or both, whose memory a key is for."""

    user: str | None = None
    agent: str | None = None
    seen: set[tuple[str, str]] = field(default_factory=set, compare=False)
    """What the present request was shown, by kind and id: see `recollect.storage.limits.limited`."""

    def __str__(self) -> str:
        named = (("user", self.user), ("agent", self.agent))
        return " and ".join(f"{name} {value}" for name, value in named if value is not None)

    def cover(self, user_id: object, agent_id: object) -> bool:
        """Whether something of a user and an agent is within them."""
        return self.user in (None, user_id) and self.agent in (None, agent_id)


@dataclass(slots=True)
class TouchedItems:
    """The number of items of a kind that were touched, and the first ids."""

    ids: dict[str, None] = field(default_factory=dict)
    count: int = 0

    def add(self, item_id: str, count: int) -> None:
        """Add an item, or several under one id. While ids are kept, an item counts once."""
        if count == 1 and item_id in self.ids:
            return
        self.count += count
        if len(self.ids) < MAX_TOUCHED_IDS:
            self.ids[item_id] = None


class Touched:
    """The items that an operation reads and changes, by namespace, event and kind."""

    def __init__(self) -> None:
        self._items: dict[str, dict[tuple[str, str], TouchedItems]] = {}
        self.has_failed = False
        """Whether the server is at fault for an answer that says that the operation did not succeed."""
        self.namespace: str | None = None
        """The namespace of the operation, if the operation chose it."""
        self._under_way: set[asyncio.Task[Any]] = set()

    def __bool__(self) -> bool:
        return bool(self._items or self._under_way)

    def wait_for(self, write: "asyncio.Task[Any]") -> None:
        """A write that outlasts a caller who is cancelled: only at its end is it known what it touched."""
        self._under_way.add(write)
        write.add_done_callback(self._under_way.discard)

    async def complete(self) -> None:
        """Return when nothing more will be added."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    def note(self, namespace: str, event: str, kind: str, ids: Iterable[object], each: int = 1) -> None:
        """Add items; `each` is how many items an id stands for."""
        for item_id in ids:
            if item_id is not None:
                items = self._items.setdefault(namespace, {}).setdefault((event, kind), TouchedItems())
                items.add(str(item_id), each)

    def taken(self) -> dict[str, list[dict[str, Any]]]:
        """Take what was touched since the last call, by namespace. A changed item is not also listed as read."""
        taken, self._items = self._items, {}
        for kinds in taken.values():
            for (event, kind), items in kinds.items():
                if event != READ and (read := kinds.get((READ, kind))) is not None:
                    for item_id in read.ids.keys() & items.ids.keys():
                        read.count -= 1
                        del read.ids[item_id]
        return {
            namespace: [
                {"event": event, "kind": kind, "count": items.count, "ids": list(items.ids)}
                for (event, kind), items in sorted(kinds.items())
                if items.count
            ]
            for namespace, kinds in taken.items()
        }


@dataclass(frozen=True, slots=True)
class Reach:
    """The namespace of a caller over HTTP, and the others that its key may read."""

    own: str
    granted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Origin:
    """A door, the label of the key or the user of the gateway if there is one, and what the key allows."""

    door: str
    author: str | None = None
    role: Role = "admin"
    limits: Limits | None = None
    reach: Reach | None = None
    """None for operators, who may name any namespace: the library, the command line and MCP over stdio."""
    key_id: str | None = None
    spender: Subject | None = None
    """The key whose quota counts what is stored."""
    key_role: Role | None = None
    """The role of the key itself, if the caller is a client that somebody connected with it."""
    connection_id: str | None = None
    """The connection of a client that signed in with OAuth."""
    touched: Touched | None = field(default=None, compare=False, repr=False)
    """Collects what the call touches; None if the audit log is off."""


READ = "read"
"""The event for items that are shown but not changed."""

USE = "use"
"""The event for the connection through which a client asks."""

# Ids kept for each event and kind; further items are only counted.
MAX_TOUCHED_IDS = 100

# What no other door has begun comes from a program that uses the library.
_LIBRARY = Origin("library")

_current: ContextVar[Origin] = ContextVar("recollect_origin", default=_LIBRARY)


@contextmanager
def acting(
    door: str,
    author: str | None = None,
    role: Role | None = None,
    limits: Limits | None = None,
    reach: Reach | None = None,
    key_id: str | None = None,
    spender: Subject | None = None,
    key_role: Role | None = None,
    connection_id: str | None = None,
) -> Iterator[None]:
    """Set the origin of the block and of the tasks that it starts.

    Without a role, limits, a reach, a spender or a key's role, those of the block around it hold.
    """
    by = None if author is None else author[:MAX_AUTHOR_CHARACTERS]
    outer = _current.get()
    within = role or outer.role, limits or outer.limits, reach or outer.reach
    behind = spender or outer.spender, key_role or outer.key_role
    before = _current.set(Origin(door, by, *within, key_id, *behind, connection_id, outer.touched))
    try:
        yield
    finally:
        _current.reset(before)


@contextmanager
def own_work() -> Iterator[None]:
    """What the engine does within the block it does for itself, whatever its present caller may do."""
    before = _current.set(replace(_current.get(), role="admin", limits=None, reach=None, spender=None, touched=None))
    try:
        yield
    finally:
        _current.reset(before)


@contextmanager
def resumed(caller: Origin) -> Iterator[None]:
    """Act as the caller who asked for this earlier: the block may do what that caller may, and no more."""
    before = _current.set(replace(caller, touched=None))
    try:
        yield
    finally:
        _current.reset(before)


@contextmanager
def touching() -> Iterator[Touched]:
    """Collect what is touched in the block and in tasks that it starts."""
    touched = Touched()
    before = _current.set(replace(_current.get(), touched=touched))
    try:
        yield touched
    finally:
        _current.reset(before)


def touch(namespace: str, event: str, kind: str, ids: Iterable[object]) -> None:
    """Note that the present call reads or changes items, if the audit log is on."""
    if (touched := _current.get().touched) is not None:
        touched.note(namespace, event, kind, ids)


def note_failure() -> None:
    """Note that the server is at fault for what the present call answers, if the audit log is on."""
    if (touched := _current.get().touched) is not None:
        touched.has_failed = True


def current() -> Origin:
    """Where the present call comes from."""
    return _current.get()


def may(role: Role) -> bool:
    """Whether the caller has a role, or one that may do more."""
    held = _current.get().role
    return held == "admin" or ROLES.index(held) >= ROLES.index(role)


def require(role: Role, namespace: str | None = None) -> None:
    """Refuse a caller who has only a role that may do less, or does not reach the namespace."""
    caller = _current.get()
    reach = caller.reach
    if reach is not None and namespace is not None and namespace != reach.own:
        if namespace not in reach.granted:
            limited = f"it is limited to {caller.limits}, so use a key without limits"
            advice = limited if caller.limits else "an operator can grant it with `recollect keys grant`"
            raise Forbidden(f"Namespace {namespace} is not open to this key: {advice}")
        if role != "read":
            raise Forbidden(f"This key may only read namespace {namespace}: use a key of that namespace")
    if may(role):
        return
    raise Forbidden(refusal_of_client(role, caller.key_role) if caller.key_role else refusal_of_key(role, caller.role))


def refusal_of_key(role: Role, held: Role) -> str:
    """What is said to a key that lacks a role."""
    # Many a request that deletes begins with a lock, for which `write` would do.
    needed = "write, or admin to delete for good" if role == "write" else role
    return f"This needs a key with role {needed}; this key has role {held}"


def refusal_of_client(role: Role, key_role: Role) -> str:
    """What is said to a connected client that lacks a role; no connection has the role admin."""
    if role == "admin":
        return "A connected client cannot delete for good or manage keys: use a key with role admin over REST"
    if key_role == "read":
        return "This connection may only read, like its key: connect again with a key with role write"
    return "This connection was allowed only to read: connect again and let the client write"


def require_no_limits() -> None:
    """Refuse a caller whose key is for one user or agent."""
    if (limits := _current.get().limits) is not None:
        raise Forbidden(beyond(limits))


def require_no_quota() -> None:
    """Refuse a caller whose key has a quota."""
    if _current.get().spender is not None:
        raise Forbidden(
            "This key has a quota, so it cannot create or replace keys or change quotas: use a key that has none, or "
            "`recollect keys` on the server"
        )


def beyond(limits: Limits) -> str:
    """What is said of a request that is not known to keep within limits, or asks for what is beyond them."""
    return f"This request is not allowed with a key that is limited to {limits}: use a key without limits"


def narrowed(user_id: str | None, agent_id: str | None = None) -> tuple[str | None, str | None]:
    """The user and the agent that a caller names, or else those of the key; others are refused."""
    limits = _current.get().limits
    if limits is None:
        return user_id, agent_id
    user, agent = user_id or limits.user, agent_id or limits.agent
    if not limits.cover(user, agent):
        raise Forbidden(f"This key is limited to {limits}: it cannot be used for others")
    return user, agent
