"""`recollect doctor`: what works, what is missing and how to fix it, in plain words."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

import click

from recollect import settings as environment
from recollect.engine import connected
from recollect.errors import Misconfigured, RecollectError
from recollect.settings import Settings
from recollect.storage import migrate
from recollect.storage.database import Database

REDIS_SECONDS = 2.0
REDIS_PORT = 6379

_SIGNS = {"ok": ("ok     ", "green"), "note": ("note   ", "yellow"), "missing": ("MISSING", "red")}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. Only what is `missing` makes the exit code 1."""

    state: Literal["ok", "note", "missing"]
    subject: str
    text: str


def run() -> int:
    """Print every finding as it is made; 1 if something needed is missing."""
    return asyncio.run(_print_findings())


async def _print_findings() -> int:
    missing = 0
    async for finding in _examine():
        label, colour = _SIGNS[finding.state]
        click.echo(f"{click.style(label, fg=colour)}  {finding.subject:<10} {finding.text}")
        missing += finding.state == "missing"
    click.echo("Everything needed is there." if not missing else f"{missing} needed thing(s) missing: see above.")
    return 1 if missing else 0


async def _examine() -> AsyncIterator[Finding]:
    try:
        settings = environment.load()
    except Misconfigured as problem:
        yield Finding("missing", "settings", str(problem))
        return
    yield Finding("ok", "settings", f"namespace {settings.namespace!r}, pooling {settings.database_pooling}")
    async for finding in _examine_database(settings):
        yield finding
    yield _redis(settings)


async def _examine_database(settings: Settings) -> AsyncIterator[Finding]:
    place = "external (RECOLLECT_DATABASE_URL)" if settings.database_url else "embedded"
    async with AsyncExitStack() as resources:
        try:
            database = await resources.enter_async_context(connected(settings))
            versions = await migrate.migrate(database)
        except RecollectError as problem:
            yield Finding("missing", "database", f"{place}: {problem}")
            return
        yield Finding("ok", "database", f"{place}, PostgreSQL {versions.postgres}")
        yield Finding("ok", "extension", f"pgvector {versions.pgvector}")
        yield Finding("ok", "schema", f"version {migrate.migrations()[-1].version}")
        yield await _row_security(database)


async def _row_security(database: Database) -> Finding:
    async with database.unscoped() as connection:
        exempt = await connection.fetchval("select rolsuper or rolbypassrls from pg_roles where rolname = current_user")
    if exempt:
        return Finding(
            "note",
            "isolation",
            "this database role bypasses row-level security (superuser or BYPASSRLS), so the second wall between "
            "namespaces is off. Use an ordinary role that owns the database.",
        )
    return Finding("ok", "isolation", "row-level security binds this role")


def _redis(settings: Settings) -> Finding:
    if settings.redis_url is None:
        return Finding("note", "redis", "not set; short-term memory lives in PostgreSQL, which is fine")
    target = urlsplit(settings.redis_url.get_secret_value())
    try:
        with socket.create_connection((target.hostname or "localhost", target.port or REDIS_PORT), REDIS_SECONDS):
            return Finding("ok", "redis", "answers")
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        return Finding("missing", "redis", f"RECOLLECT_REDIS_URL is set but nothing answers there ({reason})")
