"""`recollect review`: lists what screening has found, and releases or forgets it."""

import sys

import click

from recollect.doors.cli.memories.forget import ask, print_receipt, receipt_lines
from recollect.doors.cli.one_command import command, opened_engine, with_engine
from recollect.doors.cli.printing import Styled, echo, one_line, print_json, shortened
from recollect.doors.reviews import ReviewedItems

MAX_SHOWN_CHARACTERS = 200


def show(state: str | None, limit: int, as_json: bool) -> None:
    """Print the list."""
    page = with_engine(lambda engine: engine.review.page(engine.settings.namespace, state, limit))
    if as_json:
        print_json(ReviewedItems.of(page).model_dump(mode="json"))
        return
    for each in page.items:
        item = each.item
        who = "" if item.author is None else f" by {one_line(item.author)}"
        echo(f"{each.name}  {item.state}  {item.at:%Y-%m-%d %H:%M} UTC  {item.trust}{who} ({item.door})")
        echo(f"    {'; '.join(item.reasons)}")
        text = "(deleted)" if each.text is None else f'"{shortened(each.text, MAX_SHOWN_CHARACTERS)}"'
        echo(Styled(f"    {text}", dim=True))
    if not page.items:
        echo("Nothing to review.")
    elif page.next is not None:
        echo("There are more: pass a larger --limit.")


@command
async def screen() -> None:
    """Screen everything, and print how many items are held or warned about."""
    async with opened_engine() as engine:
        namespace = engine.settings.namespace
        engine.rescreening.require_on()
        report = await engine.status.report(namespace)
        rows = sum(size.rows for size in report.memory.values())
        with click.progressbar(length=rows, label="Screening", show_pos=True, file=sys.stderr) as bar:
            screened = await engine.rescreening.run(namespace, lambda items: bar.update(items - bar.pos))
            bar.update(rows - bar.pos)  # Some rows have no text to screen.
    echo(f"{screened.items:,} items screened: {screened.held:,} held, {screened.warned:,} warned about.")
    if screened.held or screened.warned:
        echo("See `recollect review list`.", err=True)


def release(item: str) -> None:
    """Release an item."""
    with_engine(lambda engine: engine.review.release(engine.settings.namespace, item))
    echo(f"{one_line(item)} is released: recall finds it.")


@command
async def forget(item: str, dry_run: bool, yes: bool) -> None:
    """Forget an item."""
    async with opened_engine() as engine:
        namespace = engine.settings.namespace
        expected = await engine.review.count(namespace, item)
        if dry_run:
            print_receipt(expected, "would be forgotten")
            return
        if not yes:
            ask(namespace, receipt_lines(expected))
        print_receipt(await engine.review.forget(namespace, item), "forgotten")
