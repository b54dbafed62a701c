"""The form of a question: what the address says, as every other door is asked it."""

from dataclasses import dataclass, fields, replace

from recollect import checks, origin, trust
from recollect.doors.console.visit import Visit
from recollect.doors.recalls import DEFAULT_TOP_K, Asked, floor_of_text, metadata_of_text
from recollect.errors import Invalid
from recollect.flows.kinds import registry
from recollect.flows.search.recall import MAX_TOP_K
from recollect.memory.memories import CATEGORIES

# What is asked for less often.
FOLDED = (
    "agent_id",
    "exclude_session",
    "roles",
    "since",
    "until",
    "valid_at",
    "now",
    "metadata",
    "token_budget",
    "half_life_days",
    "kinds",
    "categories",
    "include_pinned",
    "min_trust",
    "namespaces",
)
COMPARED = ("compare", "other_query", "other_as_of")

MAX_TOKENS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Form:
    """What stands in the fields, as it was typed."""

    visit: Visit

    def __getitem__(self, name: str) -> str:
        return self.visit.asked(name)

    def words(self, name: str) -> list[str]:
        """A list: repeated, or with commas."""
        return [word for given in self.visit.all_asked(name) for each in given.split(",") if (word := each.strip())]

    @property
    def filters(self) -> int:
        """How many are set of the filters that are folded away."""
        return sum(bool(self[name]) for name in FOLDED)

    @property
    def compares(self) -> bool:
        """Whether something is asked beside the question."""
        return any(self[name] for name in COMPARED)

    @property
    def kinds(self) -> list[str]:
        """What can be recalled."""
        return registry.recalled()

    @property
    def trust_choices(self) -> list[tuple[str, str]]:
        """The classes of trust, the most trusted first."""
        return [("", "any"), *((each, each) for each in trust.CLASSES)]

    @property
    def categories(self) -> tuple[str, ...]:
        """Of long-term memories."""
        return CATEGORIES

    @property
    def namespaces(self) -> list[str]:
        """What the key may read; none if that is its own namespace alone."""
        reach = origin.current().reach
        return [reach.own, *sorted(reach.granted)] if reach is not None and reach.granted else []

    def local(self, name: str) -> str | None:
        """A time as a browser's own field for times has it, in UTC; None if it has no way to show it."""
        text = self[name]
        if not text:
            return ""
        try:
            at = checks.utc(checks.moment(text), name)
        except ValueError:
            return None
        return None if at.microsecond else at.replace(tzinfo=None).isoformat()

    def asked(self) -> Asked:
        """The question. What it must be besides, the engine says."""
        self.visit.require_known(*(field.name for field in fields(Asked)), *COMPARED)
        metadata = self["metadata"]
        return Asked(
            query=self["query"],
            user_id=self["user_id"] or None,
            agent_id=self["agent_id"] or None,
            session_id=self["session_id"] or None,
            exclude_session=self["exclude_session"] or None,
            roles=self.words("roles") or None,
            kinds=self.words("kinds") or None,
            categories=self.words("categories") or None,
            since=self["since"] or None,
            until=self["until"] or None,
            as_of=self["as_of"] or None,
            valid_at=self["valid_at"] or None,
            now=self["now"] or None,
            metadata=metadata_of_text(metadata) if metadata else None,
            min_relevance=floor_of_text(self["min_relevance"] or None),
            top_k=self.visit.number_asked("top_k", DEFAULT_TOP_K, 1, MAX_TOP_K),
            token_budget=self.visit.number_asked("token_budget", 0, 1, MAX_TOKENS) or None,
            half_life_days=self.days("half_life_days"),
            include_pinned=bool(self["include_pinned"]),
            min_trust=self["min_trust"] or None,
            namespaces=self.words("namespaces") or None,
        )

    def other(self, first: Asked) -> Asked | None:
        """What to compare it with: another question, or the same at another time."""
        if not self.compares:
            return None
        return replace(first, query=self["other_query"] or first.query, as_of=self["other_as_of"] or None)

    def days(self, name: str) -> float | None:
        """A number of days."""
        try:
            return float(self[name]) if self[name] else None
        except ValueError as problem:
            raise Invalid(f"{name} must be a number of days, such as 30") from problem
