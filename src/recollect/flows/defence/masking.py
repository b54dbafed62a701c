"""Masking: what callers give is stored without its secrets, which are counted by kind.

A flow names the arguments that hold what somebody wrote. They are masked before anything else is done with them, so
that no secret is stored, hashed, embedded, sent to a model or logged. Ids stay as they are: others name items by them.
"""

import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

from recollect import checks, origin
from recollect.errors import Invalid, RecollectError
from recollect.flows.kinds.kind import Kind
from recollect.flows.kinds.rules import own_session
from recollect.language.masking.masking import MaskedText, masking
from recollect.memory.index.held import Held
from recollect.memory.store_files import digest
from recollect.steps import in_steps
from recollect.storage.database import Database

_log = logging.getLogger(__name__)

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

_counted: ContextVar[Counter[str] | None] = ContextVar("recollect_masked", default=None)
_gathered: ContextVar[Counter[str] | None] = ContextVar("recollect_masked_by_import", default=None)


@contextmanager
def counting_masked() -> Iterator[Counter[str]]:
    """What is masked within the block, in tasks that it starts, too, by kind."""
    found: Counter[str] = Counter()
    before = _counted.set(found)
    try:
        yield found
    finally:
        _counted.reset(before)


def described(found: Mapping[str, int]) -> str:
    """Counts in a line: `card number=2, GitHub token=1`."""
    return ", ".join(f"{kind}={count}" for kind, count in sorted(found.items()))


class Masking:
    """Masks secrets, and adds up how many there were."""

    def __init__(self, database: Database, held: Held) -> None:
        self._database = database
        self._held = held

    async def of(self, namespace: str, value: Value) -> Value:
        """A value without its secrets (a text, JSON, or records of both), for imports and for what is told of jobs."""
        origin.require("write", namespace)
        clean, found = await masked(value)
        await self.count(namespace, found)
        return clean

    async def count(self, namespace: str, found: Mapping[str, int]) -> None:
        """Add up what was masked. What is stored by now stays so without it."""
        if not found:
            return
        if (gathered := _gathered.get()) is not None:
            gathered.update(found)
            return
        if (counted := _counted.get()) is not None:
            counted.update(found)
        try:
            with origin.own_work():
                async with self._database.transaction(namespace) as tx:
                    await self._held.add_masked(tx, found)
        except RecollectError as problem:
            _log.warning("The number of masked secrets is too low, because it could not be stored: %s", problem)

    @asynccontextmanager
    async def counting_once(self, namespace: str) -> AsyncIterator[None]:
        """Store what is masked within the block at its end: an import has many records."""
        found: Counter[str] = Counter()
        before = _gathered.set(found)
        try:
            yield
        finally:
            _gathered.reset(before)
            await self.count(namespace, found)

    async def record(self, namespace: str, kind: Kind, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """A record of an import without its secrets; what it is named by stays."""
        origin.require("write", namespace)
        named = {name for name, rule in kind.rules.items() if rule in (checks.identifier, own_session)}
        # The id of a record under a key follows from its path and key.
        addressed = {"path", "key"} if kind.name == "record" else set()
        kept = named | addressed | kind.references.keys() | set(kind.record.key) | IDS | {"kind"}
        told = {name: value for name, value in record.items() if name not in kept and not isinstance(value, int)}
        clean, found = await _masked_in_steps(lambda found: _fields(told, found))
        await self.count(namespace, found)
        if clean == told:
            return record
        # A file is known by the hash of what it says.
        hashed = {"sha256": digest(clean["content"])} if record.get("sha256") and clean.get("content") else {}
        return {**record, **clean, **hashed}


async def masked(value: Value, name: str = "") -> tuple[Value, Counter[str]]:
    """A value without its secrets, and how many there were."""
    clean, found = await _masked_in_steps(lambda found: without_secrets(value, name, found))
    return cast(Value, clean), found


async def _masked_in_steps(work: Callable[[Counter[str]], "Steps"]) -> tuple[Any, Counter[str]]:
    found: Counter[str] = Counter()

    def steps() -> Iterator[tuple[Any] | None]:
        clean = yield from work(found)
        yield (clean,)

    try:
        ((clean,),) = await in_steps(steps())
    except RecursionError:
        raise Invalid("A value is nested too deeply to look for secrets in it: flatten it") from None
    return clean, found


class MasksSecrets:
    """A flow whose methods mask what they are given; not one does where no masking was chosen."""

    masking: Masking | None = None

    async def cleaned(self, namespace: str, value: Value) -> Value:
        """A value as it may be stored."""
        return value if self.masking is None else await self.masking.of(namespace, value)

    def counting_once(self, namespace: str) -> AbstractAsyncContextManager[None]:
        """See Masking."""
        return nullcontext() if self.masking is None else self.masking.counting_once(namespace)


def masks(*names: str, counts: bool = True) -> Callable[[Method], Method]:
    """Mask some arguments of a flow's method, which takes a namespace or an owner first.

    What was masked is counted once the method has done its work. A read does not count: `counts=False`.
    """

    def decorated(method: Method) -> Method:
        parameters = list(signature(method).parameters)
        assert set(names) <= set(parameters), f"{method.__qualname__} has no such parameters"

        @wraps(method)
        async def without_their_secrets(self: MasksSecrets, namespace: Any, *args: Any, **named: Any) -> Any:
            if self.masking is None:
                return await method(self, namespace, *args, **named)
            given = dict(zip(parameters[2:], args, strict=False)) | named
            found: Counter[str] = Counter()
            for name in given.keys() & set(names):
                given[name], of_argument = await masked(given[name], name)
                found.update(of_argument)
            answer = await method(self, namespace, **given)
            if counts and origin.may("write"):
                where = namespace if isinstance(namespace, str) else namespace.namespace
                await self.masking.count(where, found)
            return answer

        return cast(Method, without_their_secrets)

    return decorated


Steps = Generator[None, None, Any]
"""Short steps of long work, which return its outcome."""


def without_secrets(value: Any, name: str, found: Counter[str]) -> Steps:
    """The same without secrets; `name` is the field that it is in."""
    if isinstance(value, str):
        return (yield from (_json_text if name in AS_TEXT else _text)(value, found))
    if isinstance(value, Mapping):
        return (yield from _object(value, found))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        changed = {}
        for each, inner in zip(value._fields, value, strict=True):
            changed[each] = yield from without_secrets(inner, each, found)
        return type(value)(**changed)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return (yield from _list(value, "", found))
    if is_dataclass(value) and not isinstance(value, type):
        changed = {}
        for each in fields(value):
            if each.init and each.name not in IDS:
                changed[each.name] = yield from without_secrets(getattr(value, each.name), each.name, found)
        return replace(value, **changed)
    return value


def _fields(fields: Mapping[str, Any], found: Counter[str]) -> Steps:
    """Fields of a record, each looked at as what it is."""
    clean: dict[str, Any] = {}
    for name, value in fields.items():
        clean[name] = yield from without_secrets(value, name, found)
    return clean


def _object(value: Mapping[str, Any], found: Counter[str]) -> Steps:
    clean: dict[str, Any] = {}
    repeats: Counter[str] = Counter()
    for key, inner in value.items():
        masked_key = name = yield from _text(key, found)
        while name in clean:
            # Two secrets of a kind are two keys.
            repeats[masked_key] += 1
            name = f"{masked_key} {repeats[masked_key] + 1}"
        clean[name] = yield from _under(key, inner, found)
    return clean


def _list(values: Sequence[Any], key: str, found: Counter[str]) -> Steps:
    clean: list[Any] = []
    for each in values:
        clean += [(yield from _under(key, each, found))]
    return tuple(clean) if isinstance(values, tuple) else clean


def _under(key: str, value: Any, found: Counter[str]) -> Steps:
    """A value of a JSON object, of which the key may say that it is a secret."""
    if isinstance(value, str):
        return (yield from _value(key, value, found))
    if isinstance(value, int | float) and not isinstance(value, bool):
        digits = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        shown = yield from _value(key, digits, found)
        return value if shown == digits else shown
    if type(value) in (list, tuple):
        return (yield from _list(value, key, found))
    return (yield from without_secrets(value, "", found))


def _value(key: str, text: str, found: Counter[str]) -> Steps:
    """A text behind its key, which may say that it is a password."""
    begin = f"{key}=" if key else ""
    result = yield from _masked(begin + text)
    if not result.text.startswith(begin):
        # The key is a secret itself, and says nothing of what stands behind it.
        return (yield from _text(text, found))
    found.update(result.found)
    return result.text[len(begin) :]


def _text(text: str, found: Counter[str]) -> Steps:
    result = yield from _masked(text)
    found.update(result.found)
    return result.text


def _masked(text: str) -> Generator[None, None, MaskedText]:
    for done in masking(text):
        if done is not None:
            return done
        yield
    raise AssertionError("the last step has the text")


def _json_text(text: str, found: Counter[str]) -> Steps:
    """JSON that comes as text stays as it is written, unless it has a secret."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return (yield from _text(text, found))
    before = found.total()
    clean = yield from _under("", value, found)
    return json.dumps(clean, ensure_ascii=False) if found.total() > before else text
