"""`recollect watch`: prints changes as they happen."""

import sys

import click

from recollect.doors.changes import Change
from recollect.doors.cli.one_command import command, opened_engine
from recollect.doors.cli.printing import Styled, echo, one_line, shortened
from recollect.flows.feed import Page
from recollect.language import controls

MAX_SHOWN_CHARACTERS = 100

EXPIRED = "expired"


@command
async def run(since: int | None, once: bool, as_json: bool) -> None:
    """Print the changes behind a number; then wait for more, unless those are enough."""
    async with opened_engine() as engine:
        namespace = engine.settings.namespace
        if since is None:
            since = 0 if once else await engine.feed.last(namespace)
        if not once:
            async for page in engine.feed.follow(namespace, since):
                _print(page, as_json)
        while once and (page := await engine.feed.page(namespace, since)).entries:
            _print(page, as_json)
            since = page.next


def _print(page: Page, as_json: bool) -> None:
    for change in map(Change.of, page.entries):
        if as_json:
            click.echo(controls.escaped_json(change.model_dump_json()))
        else:
            _print_line(change)
    # Whoever reads from a pipe wants each as it comes.
    sys.stdout.flush()


def _print_line(change: Change) -> None:
    by = change.door if change.author is None else f"{one_line(change.author)} ({change.door})"
    head = f"{change.number:>6}  {change.at:%Y-%m-%d %H:%M:%S}  {change.event:<6}  "
    what = f"  {one_line(change.note)}" if change.note else ""
    whose = "" if change.note == EXPIRED else f"  by {by}"
    echo(Styled(head, dim=True), f"{change.kind}:{one_line(change.item_id)}{what}", Styled(whose, dim=True))
    if change.text is not None:
        echo("        ", shortened(change.text, MAX_SHOWN_CHARACTERS))
