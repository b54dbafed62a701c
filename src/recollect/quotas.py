"""Quotas: how many requests a key or a user may make per minute, and how much it may store per day."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Self

from recollect import checks
from recollect.errors import LimitReached

# The owner of sessions without a user. It is not a person, so it has no quota.
ANONYMOUS = "anonymous"

UNLIMITED = 0
"""In a key's own quota: no limit, whatever the deployment's default."""

MAX_QUOTA = 2**53
"""The largest number that JSON holds exactly."""

MINUTE, DAY = 60, 86_400

Resource = Literal["requests", "rows", "bytes"]
Text = str | bytes | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of a key or a user; None where none is set. Minutes and days follow UTC."""

    requests_per_minute: int | None = None
    rows_per_day: int | None = None
    bytes_per_day: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the form used in settings: `requests_per_minute=600, rows_per_day=10000`."""
        names = [field.name for field in fields(cls)]
        given: dict[str, int] = {}
        for part in filter(None, map(str.strip, text.split(","))):
            name, _, number = map(str.strip, part.partition("="))
            if name not in names or name in given or not number.isdecimal() or not 1 <= int(number) <= MAX_QUOTA:
                forms = ", ".join(f"{each}=N" for each in names)
                raise ValueError(f"write {forms}, or some of them, each N at least 1")
            given[name] = int(number)
        return cls(**given)

    def over(self, default: "Quota") -> "Quota":
        """This quota, with the default for each part that it leaves out."""
        own, other = self.numbers(), default.numbers()
        return Quota(*(other[name] if own[name] is None else own[name] or None for name in own))

    def numbers(self) -> dict[str, int | None]:
        """Its fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def limits_storage(self) -> bool:
        """Whether it limits what is stored."""
        return self.rows_per_day is not None or self.bytes_per_day is not None

    def most(self, resource: Resource) -> int | None:
        """The limit for a resource."""
        return {"requests": self.requests_per_minute, "rows": self.rows_per_day, "bytes": self.bytes_per_day}[resource]


NO_QUOTA = Quota()


class Subject(NamedTuple):
    """A key or a user whose quota counts something."""

    kind: Literal["key", "user"]
    id: str
    quota: Quota

    def __str__(self) -> str:
        return f"The key {self.id}" if self.kind == "key" else f"User {self.id}"


class QuotaReached(LimitReached):
    """A quota is used up, or a request needs more than is left. Nothing was stored."""

    def __init__(self, subject: Subject, resource: Resource, used: int, wanted: int = 1) -> None:
        most, what = subject.quota.most(resource) or 0, "make" if resource == "requests" else "store"
        length, period = (MINUTE, "minute") if resource == "requests" else (DAY, "day")
        told = f"{subject} may {what} {most:,} {resource if most != 1 else resource[:-1]} per {period}"
        if wanted > most:
            super().__init__(f"{told}, and this needs {wanted:,}: send less at once, or ask for a larger quota")
            return
        self.retry_after = max(1, int(length - datetime.now(UTC).timestamp() % length))
        more = "" if resource == "requests" else f"; this needs {wanted:,} more"
        resets = f"The quota resets in {duration_text(self.retry_after)}."
        super().__init__(f"{told} and has used {used:,}{more}. {resets}")


def check(quota: Quota) -> None:
    """Refuse numbers out of range."""
    for name, number in quota.numbers().items():
        if number is not None:
            checks.between(number, 0, MAX_QUOTA, name)


def duration_text(seconds: int) -> str:
    """A duration in words: seconds, minutes or hours."""
    if seconds < 2 * MINUTE:
        return f"{seconds} second{'' if seconds == 1 else 's'}"
    return f"{seconds // 60} minutes" if seconds < 7200 else f"{seconds // 3600} hours"


def period_start(length: int, now: datetime) -> datetime:
    """When the minute or day of a moment began."""
    return datetime.fromtimestamp(now.timestamp() // length * length, UTC)


def text_bytes(*texts: Text) -> int:
    """The size of texts in UTF-8, and of metadata as JSON."""
    total = 0
    for text in filter(None, texts):
        plain = json.dumps(text, ensure_ascii=False) if isinstance(text, Mapping) else text
        if isinstance(plain, str) and not plain.isascii():
            total += len(plain.encode(errors="replace"))
        else:
            total += len(plain)
    return total
