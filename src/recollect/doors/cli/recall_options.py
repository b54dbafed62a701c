"""The options of `recollect recall`: its filters, and how the answer is printed."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import click


class _KindOption(click.Option):
    """Names the kinds when help is asked for: to know them takes an import that no other help should wait for."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from recollect.flows.kinds import registry

        *others, last = registry.recalled()
        self.help = f"Only this kind: {', '.join(others)} or {last}. Can be repeated."
        return super().get_help_record(ctx)


_OPTIONS = (
    click.option("--user", "user_id", help="Only this user's items."),
    click.option("--agent", "agent_id", help="Only this agent's items."),
    click.option("--session", "session_id", help="Only items of this session."),
    click.option("--exclude-session", help="No items of this session."),
    click.option("--role", "roles", multiple=True, help="Only messages of this role, such as user. Can be repeated."),
    click.option("--kind", "kinds", cls=_KindOption, multiple=True),
    click.option("--category", "categories", multiple=True, help="Only memories of this category. Can be repeated."),
    click.option(
        "--since", metavar="TIME", help="Only what was said or stored then or later, such as 2026-02-14T12:00Z."
    ),
    click.option("--until", metavar="TIME", help="Only what was said or stored then or earlier."),
    click.option("--as-of", metavar="TIME", help="Answer as this memory would have answered then."),
    click.option("--valid-at", metavar="TIME", help="Only what is true in the world then."),
    click.option("--metadata", metavar="JSON", help="Only items whose metadata contains this object."),
    click.option("--min-relevance", metavar="NUMBER", help="Only results this relevant, from 0 to 1, or `default`."),
    click.option("--min-trust", metavar="CLASS", help="Only from this class of trust or a higher one, such as user."),
    click.option(
        "--namespace",
        "namespaces",
        multiple=True,
        help="Search this namespace instead of RECOLLECT_NAMESPACE. Can be repeated: the results are one ranking.",
    ),
    click.option("--now", metavar="TIME", help='What "yesterday" in the question counts from.  [default: now]'),
    click.option(
        "--half-life-days",
        type=float,
        metavar="DAYS",
        help="Halve scores each time an item gets this much older; pinned memories do not age.",
    ),
    click.option("--top-k", type=int, default=10, show_default=True, help="Maximum number of results."),
    click.option("--token-budget", type=int, help="Maximum total number of tokens in all texts."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table."),
    click.option("--explain", is_flag=True, help="Show how each score is computed."),
)


def recall_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with all of them, which help lists in this order."""
    return reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), command)
