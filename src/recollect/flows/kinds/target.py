"""Target: the name of an item of any kind, or of everything that somebody has."""

from dataclasses import dataclass
from typing import Self

from recollect import checks
from recollect.flows.kinds import registry

SESSION, USER, NAMESPACE = ("session", "user", "namespace")


@dataclass(frozen=True, slots=True)
class Target:
    """An item by its kind and id, or all that a session, a user or a namespace has.

    An item whose kind is not known (None) is looked for.
    """

    kind: str | None
    id: str

    @classmethod
    def named(cls, name: str) -> Self:
        """What is called `insight:12`, `session:S` or `user:U`, or, as recall shows it, by its id alone."""
        kind, colon, bare_id = name.strip().partition(":")
        if not colon:
            return cls(None, checks.short_name(name, "id").strip())
        checks.one_of(kind, (*registry.items(), SESSION, USER), "the kind before the colon of an id")
        return cls(kind, bare_id)

    def __str__(self) -> str:
        return self.id if self.kind is None else f"{self.kind}:{self.id}"
