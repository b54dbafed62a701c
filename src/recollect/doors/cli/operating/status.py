"""`recollect status`: sizes, rates, activity, lag, giants, models and budget, as a table or as JSON."""

import dataclasses
from collections.abc import Iterator

from recollect import __version__
from recollect.doors.cli.one_command import command, loaded, told
from recollect.doors.cli.printing import Styled, echo, print_json
from recollect.engine import Engine
from recollect.flows.status import Report, Size
from recollect.memory.index.giants import THRESHOLD
from recollect.memory.index.sizes import Count
from recollect.settings import Settings
from recollect.storage import migrate
from recollect.storage.opening import connected

# Each process has its own settings; those of a running server may differ.
HERE = "for this command"


@dataclasses.dataclass(frozen=True, slots=True)
class _Found:
    """The report is missing while the schema is behind: its tables may be, too."""

    namespace: str
    applied: int
    known: int
    report: Report | None
    attention: list[str]


@command
async def run(as_json: bool) -> int:
    """Print the status of the namespace; 1 if something needs attention."""
    settings = loaded()
    with told(settings):
        found = await _look(settings)
    if as_json:
        # Field names are a promise: docs/operations.md lists them.
        head = {
            "namespace": found.namespace,
            "version": __version__,
            "schema": {"applied": found.applied, "known": found.known},
            "attention": found.attention,
        }
        print_json(head if found.report is None else head | dataclasses.asdict(found.report))
        return 1 if found.attention else 0
    echo(f"Recollect {__version__}, namespace {found.namespace!r}, schema version {found.applied}")
    if found.report is not None:
        for title, text in _lines(found.report):
            echo(f"{title:<14} {text}")
    for sentence in found.attention:
        echo(Styled("ATTENTION".ljust(14), fg="red"), f" {sentence}")
    if not found.attention:
        echo("Nothing needs attention.")
    return 1 if found.attention else 0


async def _look(settings: Settings) -> _Found:
    """Other commands upgrade the schema; this one only reports that it is behind."""
    versions = [0, *(step.version for step in migrate.migrations())]
    async with connected(settings) as database:
        missing = await migrate.pending(database)
        applied, newest = versions[-1 - len(missing)], versions[-1]
        # A database without any schema is not behind but new, and the first command of any kind sets it up.
        if missing and applied:
            sentence = (
                f"The database is at schema version {applied}; this Recollect needs {newest}. Make a backup with "
                "`recollect backup`, then run `recollect migrate` or restart the server."
            )
            return _Found(settings.namespace, applied, newest, None, [sentence])
        engine = await Engine.open(settings.model_copy(update={"indexer": False}))
        try:
            report = await engine.status.report(settings.namespace)
            degraded = await engine.degraded()
            if degraded is not None:
                report = dataclasses.replace(report, attention=[*report.attention, degraded])
        finally:
            await engine.close()
    return _Found(settings.namespace, newest, newest, report, report.attention)


def _lines(report: Report) -> Iterator[tuple[str, str]]:
    server, indexer, embeddings, llm = report.server, report.indexer, report.embeddings, report.llm
    yield "server", f"PostgreSQL {server.postgres}, pgvector {server.pgvector}"
    yield "database", f"{_bytes(report.database_bytes)}, all namespaces together"
    for kind, size in report.memory.items():
        yield kind.replace("_", " "), f"{_count(size):>15}   about {_bytes(size.bytes)}" if size.rows else f"{0:>15}"
    rates = ", ".join(f"{_count(count)} in the last {period}" for period, count in report.messages.items())
    yield "new messages", rates
    day = report.activity[-24:]
    recalls = (sum(hour.recalls for hour in day), sum(hour.degraded for hour in day), sum(hour.failed for hour in day))
    searched = "{:,} recall(s), {:,} degraded, {:,} failed".format(*recalls)
    yield "last 24 hours", f"{sum(hour.writes for hour in day):,} write(s), {searched}"
    waiting = f"{'' if indexer.exact else 'more than '}{indexer.waiting:,}"
    yield "indexer", f"{waiting} passage(s) waiting to be embedded, the oldest for {indexer.oldest_seconds:,.0f} s"
    yield "giants", f"with their own index: {_owners(report.giants.indexed)}"
    if report.giants.without_index:
        yield "", f"above {THRESHOLD:,} vectors, no index yet: {_owners(report.giants.without_index)}"
    moving = f", switching to {embeddings.next}" if embeddings.next else ""
    swept = ", old vectors not deleted yet" if embeddings.leftovers else ""
    yield "embeddings", f"{embeddings.active or 'no model, keyword search only'}{moving}{swept}"
    features = "".join(f", {feature} {tokens:,}" for feature, tokens in llm.features.items())
    yield "LLM budget", f"{llm.spent_today:,} of {llm.daily_tokens:,} tokens today (UTC){features}"
    standing = report.defence
    waits = ", ".join(f"{count:,} {state}" for state, count in sorted(standing.waiting.items())) or "nothing waits"
    yield "defence", f"{standing.defence} {HERE}, {waits}"
    written_over = "".join(f", {kind} {count:,}" for kind, count in standing.masked.items())
    yield "masking", f"{'on' if standing.masking else 'off'} {HERE}{written_over}"
    yield "audit", f"{standing.audit} {HERE}"
    yield "keys", f"{_count(report.keys)} of the namespace, {_count(report.users)} of gateway users"


def _count(count: Count | Size) -> str:
    return f"{'' if count.exact else 'about '}{count.rows:,}"


def _owners(owners: list[str | None]) -> str:
    if not owners:
        return "none"
    return ", ".join("the whole namespace" if owner is None else repr(owner) for owner in owners)


def _bytes(number: float) -> str:
    units = iter(("bytes", "kB", "MB", "GB", "TB"))
    unit = next(units)
    while number >= 1000 and unit != "TB":
        number, unit = number / 1000, next(units)
    return f"{number:,.0f} {unit}" if unit == "bytes" else f"{number:,.1f} {unit}"
