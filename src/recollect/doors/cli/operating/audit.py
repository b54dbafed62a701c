"""`recollect audit`: lists, exports, verifies and prunes the lines of the audit log."""

import sys
from pathlib import Path

import click

from recollect.doors.audits import AuditLine, AuditPage
from recollect.doors.cli.memories.export import write
from recollect.doors.cli.memories.forget import ask
from recollect.doors.cli.one_command import chosen_namespace, command, opened_engine
from recollect.doors.cli.printing import Styled, echo, one_line, print_json
from recollect.doors.recalls import moment
from recollect.errors import Invalid
from recollect.flows.accounts.audit_trail import Verified
from recollect.memory.accounts.audit import AuditFilter
from recollect.origin import USE

# Ids printed for each kind.
SHOWN_IDS = 3

OFF = "Not recorded: RECOLLECT_AUDIT is off in this shell. Set it for every process, servers included."


@command
async def show(namespace: str | None, chosen: AuditFilter, before: int | None, limit: int, as_json: bool) -> None:
    """Print lines, newest first; with a filter, search back until there are enough."""
    lines: list[AuditLine] = []
    async with opened_engine() as engine:
        where = chosen_namespace(engine, namespace)
        page = await engine.audit_trail.page(where, chosen, before, limit)
        lines += AuditPage.of(page, where).lines
        while page.before is not None and len(lines) < limit:
            page = await engine.audit_trail.page(where, chosen, page.before, limit - len(lines))
            lines += AuditPage.of(page, where).lines
    if not engine.audit.is_on:
        echo(OFF, err=True)
    if as_json:
        print_json({"lines": [line.model_dump(mode="json") for line in lines], "next": page.before})
        return
    for line in lines:
        _print(line)
    if not lines:
        echo("No lines found.", err=True)


def _print(line: AuditLine) -> None:
    who = one_line(line.author or "no key") + (f" ({line.key_id})" if line.key_id not in (None, line.author) else "")
    head = f"{line.number:>6}  {line.at:%Y-%m-%d %H:%M:%S}  {line.outcome:<7}  "
    echo(Styled(head, dim=True), f"{line.door}  {one_line(line.action)}", Styled(f"  by {who}", dim=True))
    for items in line.touched:
        ids = ", ".join(map(one_line, items.ids[:SHOWN_IDS])) + (", ..." if items.count > SHOWN_IDS else "")
        told = items.event if line.outcome == "done" or items.event == USE else f"attempted: {items.event}"
        echo(f"        {told} {items.kind} ({items.count:,}): {ids}")


def export(namespace: str | None, path: Path, overwrite: bool) -> None:
    """Write all lines to a file, and say so unless it is standard output."""
    written = write(path, overwrite, lambda engine: engine.audit_trail.exported(chosen_namespace(engine, namespace)))
    if written is not None:
        echo(f"Wrote {written - 2:,} line(s) to {path}.")


@command
async def verify(namespace: str | None, against: Path | None) -> None:
    """Report whether the chain is intact, and exit with 1 if not."""
    file = None if against is None else against.open(encoding="utf-8")
    try:
        async with opened_engine() as engine:
            where = chosen_namespace(engine, namespace)
            # Hidden where there is no terminal; on standard error, so that the verdict can be piped on.
            with click.progressbar(length=1, label="Verifying", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:

                def progress(done: int, total: int) -> None:
                    bar.length = max(total, 1)
                    bar.update(done - bar.pos)

                verdict = await engine.audit_trail.verify(where, file, progress)
            # Before this command's own line is stored: a log that was altered may not take it.
            _tell(verdict, where, against, is_on=engine.audit.is_on)
    except UnicodeDecodeError as problem:
        raise Invalid(
            f"{against} is not an export of the audit log: make one with `recollect audit export`"
        ) from problem
    finally:
        if file is not None:
            file.close()
    if verdict.fault is not None:
        sys.exit(1)


def _tell(verdict: Verified, namespace: str, against: Path | None, *, is_on: bool) -> None:
    if verdict.fault is not None:
        echo(f"The audit log of namespace {namespace} was altered. First wrong line: {verdict.number}.")
        echo(f"{verdict.fault}.")
        return
    last = verdict.head.last
    if last.number == 0:
        echo(f"The audit log of namespace {namespace} is empty: nothing was ever recorded.")
        if not is_on:
            echo(OFF, err=True)
        return
    echo(f"Verified {verdict.lines:,} line(s) of namespace {namespace}: the log is intact.")
    echo(f"Last line: {last.number}. Hash: {last.hash.hex()}.")
    if against is not None:
        echo(f"Every line of {against} that was not pruned is unchanged.")
    if not is_on:
        echo(OFF, err=True)


@command
async def prune(namespace: str | None, before: str, dry_run: bool, yes: bool) -> None:
    """Delete lines before a moment."""
    until = moment(before, "--before")
    assert until is not None
    async with opened_engine() as engine:
        where = chosen_namespace(engine, namespace)
        expected = await engine.audit_trail.count_before(where, until)
        if dry_run:
            echo(f"{expected:,} line(s) would be deleted.")
            return
        if not yes:
            ask(where, [f"{expected:>12,}  lines of the audit log"])
        removed = await engine.audit_trail.prune(where, until)
    echo(f"Deleted {removed:,} line(s) of the audit log.")
