"""Masking: what callers give is stored without its secrets, which are counted by kind.

A flow names the arguments that hold what somebody wrote. They are masked before anything else is done with them, so
that no secret is stored, hashed, embedded, sent to a model or logged. Ids stay as they are: others name items by them.
"""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

from recollect import checks, origin, tasks
from recollect.flows.kinds.kind import Kind
from recollect.flows.kinds.rules import own_session
from recollect.language.masking.masking import masked
from recollect.memory.index.held import Held
from recollect.memory.store_files import digest
from recollect.storage.database import Database

Method = TypeVar("Method", bound=Callable[..., Awaitable[Any]])
Value = TypeVar("Value")

IDS = frozenset(
    (
        *("id", "user_id", "agent_id", "session_id", "sender_id", "thread_id", "store_id", "memory_id", "place"),
        *("owner", "owner_if_new", "realm", "role", "sources", "supersedes", "expected_sha256", "embedding", "vectors"),
    )
)
"""Fields that name something, or are no text."""

AS_TEXT = frozenset(("metadata", "payload"))
"""Fields that may hold JSON as text."""

# A longer text is looked through in a thread.
AT_ONCE = 20_000

_told: ContextVar[Counter[str] | None] = ContextVar("recollect_masked", default=None)


@contextmanager
def telling() -> Iterator[Counter[str]]:
    """What is masked within the block, in tasks that it starts, too, by kind."""
    found: Counter[str] = Counter()
    before = _told.set(found)
    try:
        yield found
    finally:
        _told.reset(before)


def described(found: Mapping[str, int]) -> str:
    """Counts in a line: `card number=2, GitHub token=1`."""
    return ", ".join(f"{kind}={count}" for kind, count in sorted(found.items()))


class Masking:
    """Writes over secrets, and adds up how many there were."""

    def __init__(self, database: Database, held: Held) -> None:
        self._database = database
        self._held = held

    async def of(self, namespace: str, value: Value, name: str = "") -> Value:
        """A value without its secrets: a text, JSON, or records of both."""
        found: Counter[str] = Counter()
        is_long = isinstance(value, str) and len(value) > AT_ONCE
        clean = await tasks.in_thread(clear, value, name, found) if is_long else clear(value, name, found)
        if found:
            if (told := _told.get()) is not None:
                told.update(found)
            with origin.own_work():
                async with self._database.transaction(namespace) as tx:
                    await self._held.add_masked(tx, found)
        return cast(Value, clean)

    async def record(self, namespace: str, kind: Kind, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """A record of an import without its secrets; what it is named by stays."""
        named = {name for name, rule in kind.rules.items() if rule in (checks.identifier, own_session)}
        # The id of a record under a key follows from its path and key.
        addressed = {"path", "key"} if kind.name == "record" else set()
        kept = named | addressed | kind.references.keys() | set(kind.record.key) | IDS | {"kind"}
        told = {name: value for name, value in record.items() if name not in kept and not isinstance(value, int)}
        clean = await self.of(namespace, told)
        if clean == told:
            return record
        # A file is known by the hash of what it says.
        hashed = {"sha256": digest(clean["content"])} if record.get("sha256") and clean.get("content") else {}
        return {**record, **clean, **hashed}


class Masked:
    """A flow whose methods mask what they are given; not one does where no masking was chosen."""

    masking: Masking | None = None


def masks(*names: str) -> Callable[[Method], Method]:
    """Mask some arguments of a flow's method, which takes a namespace or an owner first."""

    def decorated(method: Method) -> Method:
        parameters = list(signature(method).parameters)
        assert set(names) <= set(parameters), f"{method.__qualname__} has no such parameters"

        @wraps(method)
        async def masking(self: Masked, namespace: Any, *args: Any, **named: Any) -> Any:
            if self.masking is None:
                return await method(self, namespace, *args, **named)
            given = dict(zip(parameters[2:], args, strict=False)) | named
            where = namespace if isinstance(namespace, str) else namespace.namespace
            clean = {
                name: await self.masking.of(where, value, name) if name in names else value
                for name, value in given.items()
            }
            return await method(self, namespace, **clean)

        return cast(Method, masking)

    return decorated


def clear(value: Any, name: str, found: Counter[str]) -> Any:
    """The same without secrets; `name` is the field that it is in."""
    if isinstance(value, str):
        return _as_json(value, found) if name in AS_TEXT else _text(value, "", found)
    if isinstance(value, Mapping):
        return {_text(key, "", found): _under(key, inner, found) for key, inner in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(clear(inner, each, found) for each, inner in zip(value._fields, value, strict=True)))
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        inner = [_under("", each, found) for each in value]
        return tuple(inner) if isinstance(value, tuple) else inner
    if is_dataclass(value) and not isinstance(value, type):
        told = [each.name for each in fields(value) if each.init and each.name not in IDS]
        return replace(value, **{each: clear(getattr(value, each), each, found) for each in told})
    return value


def _under(key: str, value: Any, found: Counter[str]) -> Any:
    """A value of a JSON object, of which the key may say that it is a secret."""
    if key == "user_id":
        return value
    if isinstance(value, str):
        return _text(value, key, found)
    if isinstance(value, int) and not isinstance(value, bool):
        shown = _text(str(value), key, found)
        return value if shown == str(value) else shown
    return clear(value, "", found)


def _text(text: str, key: str, found: Counter[str]) -> str:
    begin = f"{key}=" if key else ""
    result = masked(begin + text)
    if not result.found or not result.text.startswith(begin):
        return text
    found.update(result.found)
    return result.text[len(begin) :]


def _as_json(text: str, found: Counter[str]) -> str:
    """JSON that comes as text stays as it is written, unless it has a secret."""
    try:
        value = json.loads(text)
    except ValueError:
        return _text(text, "", found)
    before = found.total()
    clean = clear(value, "", found)
    return json.dumps(clean, ensure_ascii=False) if found.total() > before else text
