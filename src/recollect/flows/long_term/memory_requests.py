"""What callers ask of long-term memory: a chat to remember, which memories to find, what to change in one."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from recollect import checks, origin, trust
from recollect.errors import Invalid
from recollect.flows.kinds import registry
from recollect.flows.search.metadata_where import json_path
from recollect.memory.memories import CATEGORIES, Filter, MemoryScope, StoredMemory
from recollect.trust import Trust


@dataclass(frozen=True, slots=True)
class ChatLine:
    """One message of a chat that is to be remembered; the name takes the place of the role."""

    role: str
    content: str
    name: str | None = None


def as_text(lines: Sequence[ChatLine]) -> str:
    """A chat as one text; the words of the user alone stand for themselves."""
    if len(lines) == 1 and lines[0].role == "user" and lines[0].name is None:
        return lines[0].content
    return "\n".join(f"{line.name or line.role}: {line.content}" for line in lines)


def trust_of(lines: Sequence[ChatLine]) -> Trust | None:
    """The lowest class of trust in a chat."""
    said = ((line.role, trust.of_callers_message(line.role)) for line in lines)
    return trust.lowest(trust.of_item("message", role, stated) for role, stated in said)


MAX_SOURCES = 100
MAX_SUPERSEDED = 100


NO_SCOPE = "At least one of user_id, agent_id, or session_id must be provided"


def check_scope(scope: MemoryScope, *, needed: bool = True) -> MemoryScope:
    """The scope, within the limits of the caller's key; refused without any id, if one is needed, or with a bad one."""
    user_id, agent_id = origin.narrowed(scope.user_id, scope.agent_id)
    scope = replace(scope, user_id=user_id, agent_id=agent_id)
    ids = {name: value for name, value in asdict(scope).items() if value is not None}
    if needed and not ids:
        raise Invalid(NO_SCOPE)
    for name, value in ids.items():
        checks.identifier(value, name)
    return scope


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may say of a new memory besides its text. None leaves a part out.

    `valid_from` and `valid_until` are when it is true in the world. In one scope at most one memory of a `key` is in
    force. `supersedes` are ids of memories that it replaces, unless they have changed since `if_since`; `sources` what
    it was made from, such as `message:ID`. `expires_in` are seconds from now, another way to say `expires_at`. `trust`
    says where the text comes from.
    """

    valid_from: datetime | None = None
    valid_until: datetime | None = None
    key: str | None = None
    expires_at: datetime | None = None
    pinned: bool | None = None
    supersedes: Sequence[str] = ()
    sources: Sequence[str] = ()
    expires_in: float | None = None
    if_since: datetime | None = None
    trust: str | None = None

    def checked(self) -> Self:
        """The same in UTC, or Invalid."""
        checks.between(len(self.supersedes), 0, MAX_SUPERSEDED, "the number of superseded memories")
        checks.between(len(self.sources), 0, MAX_SOURCES, "the number of sources")
        for source in self.sources:
            kind, colon, item_id = checks.short_name(source, "sources").partition(":")
            if not colon or not item_id:
                raise Invalid(f"sources must be names such as message:ID or document:ID, not {source!r}")
            checks.one_of(kind, tuple(registry.items()), "the kind before the colon of a source")
        said = self.details() | ({} if self.expires_in is None else {"expires_in": self.expires_in})
        checked = replace(self, **checked_details(said), expires_in=None)
        check_validity(checked.valid_from, checked.valid_until)
        trust.stated(self.trust)
        return checked

    def details(self) -> dict[str, Any]:
        """What becomes a part of the memory, as far as it was said."""
        given = {name: getattr(self, name) for name in ("valid_from", "valid_until", "key", "expires_at", "pinned")}
        return {name: value for name, value in given.items() if value is not None}


def checked_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Details of a memory in UTC, or Invalid; `expires_in` becomes `expires_at`."""
    checked = dict(details)
    for name in ("valid_from", "valid_until"):
        if name in checked:
            checked[name] = checks.storable_utc(checked[name], name)
    if "expires_in" in checked:
        if "expires_at" in checked:
            raise Invalid("expires_at and expires_in both say when the memory expires: pass only one of them")
        checked["expires_at"] = checks.from_now(checked.pop("expires_in"), "expires_in")
    elif "expires_at" in checked:
        checked["expires_at"] = checks.future(checked["expires_at"], "expires_at")
    if checked.get("key") is not None:
        checked["key"] = checks.short_name(checked["key"], "key").strip()
    _check_pinned(checked.get("pinned", False))
    return checked


def _check_pinned(pinned: object) -> None:
    if not isinstance(pinned, bool):
        raise Invalid(f"pinned must be true or false, not {pinned!r}")


def check_validity(valid_from: datetime | None, valid_until: datetime | None) -> None:
    """Refuse a memory that would stop being true before it begins."""
    if valid_from is not None and valid_until is not None and valid_until <= valid_from:
        raise Invalid("valid_until must be later than valid_from")


@dataclass(frozen=True, slots=True)
class Change:
    """What to change of a memory; None leaves it. Metadata is merged (RFC 7396): a key with null goes.

    `details` are those of Options that are part of a memory, such as `key`; None there takes one away. `expires_in` may
    stand for `expires_at`.
    """

    text: str | None = None
    category: str | None = None
    metadata: Mapping[str, Any] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def checked(self) -> Self:
        """The same with its times in UTC, or Invalid; `expires_in` becomes `expires_at`."""
        if self.text is not None:
            checks.text(self.text, "data")
        if self.category is not None:
            checks.one_of(self.category, CATEGORIES, "category")
        checks.metadata(self.metadata)
        return replace(self, details=checked_details(self.details))

    def of(self, memory: StoredMemory) -> StoredMemory:
        """The memory as it is to be, by a change that was checked."""
        category = self.category or memory.category
        metadata = dict(self.metadata or {})
        # Answers show the category in the metadata, so it may come back from there.
        if metadata.pop("category", category) != category:
            raise Invalid("metadata.category is read-only: change the field category")
        merged = _merged(memory.metadata, metadata)
        checks.metadata(merged)
        changed = replace(memory, text=self.text or memory.text, category=category, metadata=merged, **self.details)
        if (changed.text, changed.metadata) != (memory.text, memory.metadata):
            changed = replace(changed, trust=trust.of_callers_change(memory.trust))
        check_validity(changed.valid_from, changed.valid_until)
        return changed


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which memories of a scope; None leaves a filter out. Metadata is what theirs must contain.

    `as_of`: what was in force then. `valid_at`: what is true then in the world. `where`: conditions on the metadata.
    `superseded`: those that are no longer in force, instead of those that are.
    """

    categories: Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None
    since: datetime | None = None
    until: datetime | None = None
    key: str | None = None
    pinned: bool | None = None
    as_of: datetime | None = None
    valid_at: datetime | None = None
    where: Mapping[str, Any] | None = None
    expires_before: datetime | None = None
    superseded: bool = False

    def checked(self) -> Filter:
        """The same, or Invalid."""
        if self.categories is not None and not self.categories:
            raise Invalid("categories is empty and would match nothing: omit it to match all")
        for category in self.categories or ():
            checks.one_of(category, CATEGORIES, "categories")
        if self.pinned is not None:
            _check_pinned(self.pinned)
        if "category" in (self.metadata or {}):
            raise Invalid("metadata.category is read-only: filter by categories")
        if self.superseded and self.as_of is not None:
            raise Invalid("as_of finds what was in force then: omit it, or do not ask for superseded memories")
        since, until = self.since, self.until
        if since is not None and until is not None:
            since, until = checks.time_range(since, until, ("since", "until"))
        return Filter(
            tuple(self.categories) if self.categories else None,
            checks.metadata_filter(self.metadata, "metadata"),
            checks.optional_utc(since, "since"),
            checks.optional_utc(until, "until"),
            None if self.key is None else checks.short_name(self.key, "key").strip(),
            self.pinned,
            checks.as_of(self.as_of),
            checks.optional_utc(self.valid_at, "valid_at"),
            json_path(self.where, "where"),
            checks.optional_utc(self.expires_before, "expires_before"),
            self.superseded,
        )


def _merged(old: Any, patch: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON merge patch (RFC 7396)."""
    merged = dict(old) if isinstance(old, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value) if isinstance(value, Mapping) else value
    return merged


def metadata_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that turns metadata into other metadata; what is null there cannot be told from what is gone."""
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        if name in old and isinstance(value, Mapping) and isinstance(old[name], Mapping):
            if value != old[name]:
                patch[name] = metadata_patch(old[name], value)
        elif name not in old or value != old[name]:
            patch[name] = value
    return patch
