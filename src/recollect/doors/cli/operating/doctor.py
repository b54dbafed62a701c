"""`recollect doctor`: what works, what is missing and how to fix it."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from recollect import settings as environment
from recollect.doors.cli.operating.model_check import Checked, check, without_model
from recollect.doors.cli.printing import Styled, echo
from recollect.doors.loopback import is_loopback
from recollect.errors import Misconfigured, RecollectError
from recollect.flows.capabilities import Capabilities
from recollect.flows.indexing.indexer import MAX_WAITING
from recollect.inference.embedding.embedders import is_of_provider
from recollect.settings import Settings
from recollect.storage import catalogue, citus, migrate, roles
from recollect.storage.citus import Cluster
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
    pooling, masking = settings.database_pooling, "on" if settings.masking else "off"
    yield Finding("ok", "settings", f"namespace {settings.namespace!r}, pooling {pooling}")
    yield Finding(
        "ok", "defence", f"{settings.defence}, masking {masking}, audit log {settings.audit}, for this process"
    )
    model = None
    try:
        model = await check(settings)
        yield Finding("note", "model", without_model()) if model is None else Finding("ok", "model", str(model))
    except RecollectError as problem:
        yield Finding("missing", "model", str(problem))
    async with aclosing(_examine_database(settings, model)) as findings:
        async for finding in findings:
            yield finding
    provider = (settings.llm or "").partition(":")[0]
    if settings.llm is None:
        yield Finding("note", "llm", "RECOLLECT_LLM is not set; summaries are extractive and memories verbatim")
    elif provider not in settings.usable_providers:
        yield Finding("missing", "llm", f"RECOLLECT_LLM is {settings.llm}: set RECOLLECT_{provider.upper()}_API_KEY")
    else:
        budget = f"at most {settings.llm_daily_tokens:,} tokens per day and namespace"
        yield Finding("ok", "llm", f"{settings.llm}, {budget}")
    yield _redis(settings)


async def _examine_database(settings: Settings, model: Checked | None) -> AsyncGenerator[Finding]:
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
        try:
            await roles.check(database)
        except Misconfigured as problem:
            yield Finding("missing", "roles", str(problem))
            return
        async with database.unscoped() as connection:
            exempt = await catalogue.bypasses_row_security(connection)
        if exempt:
            text = (
                "this database role bypasses row-level security (superuser or BYPASSRLS), so the second layer of "
                "isolation is off. Use an ordinary role that owns the database."
            )
            yield Finding("note", "isolation", text)
        else:
            yield Finding("ok", "isolation", "row-level security applies to this role")
        if missing_steps:
            text = f"{len(missing_steps)} pending migration(s): applied at the next start or by `recollect migrate`"
            yield Finding("note", "schema", text)
            return
        yield Finding("ok", "schema", f"version {migrate.migrations()[-1].version}")
        if database.replica is not None and await database.replica.current() is None:
            yield Finding("note", "replica", "does not answer or has fallen behind; the primary answers searches")
        elif database.replica is not None:
            yield Finding("ok", "replica", "has everything that is committed, and answers searches")
        if (cluster := await citus.inspect(database)) is not None:
            yield _cluster(cluster)
        async with aclosing(_examine_namespace(database, settings, model)) as findings:
            async for finding in findings:
                yield finding


def _cluster(cluster: Cluster) -> Finding:
    """The first thing that keeps a Citus cluster from working, or what it consists of."""
    again = "run `recollect migrate --distribute`"
    if not cluster.is_distributed:
        return Finding("note", "cluster", f"Citus is installed, but the tables are not distributed: {again}")
    if cluster.unset:
        return Finding("missing", "cluster", f"this role lacks the setting {cluster.unset[0]}: {again} as its owner")
    for worker, reason in cluster.unreachable.items():
        return Finding("missing", "cluster", f"worker {worker} does not answer: {reason}")
    if cluster.undistributed:
        return Finding("missing", "cluster", f"{cluster.undistributed[0]} is not distributed: {again}")
    if cluster.leftovers:
        text = f"rows of {cluster.leftovers[0]} are still on the coordinator, after they were moved: {again}"
        return Finding("missing", "cluster", text)
    workers = ", ".join(cluster.workers)
    return Finding("ok", "cluster", f"Citus, {cluster.shards} shards on {len(cluster.workers)} worker(s): {workers}")


def _account(home: Path) -> Finding:
    """Root hands the embedded server to another account; whatever else runs as that account can reach the server."""
    from recollect.storage.embedded.account import DEDICATED, SHARED, is_shared

    if is_shared(home.stat().st_uid):
        return Finding(
            "note",
            "account",
            f"you are root, so the server runs as {SHARED}, and any program running as {SHARED} can read its data. "
            f"Create an account (`useradd --system {DEDICATED}`), give it {home} (`chown -R`), "
            "and run Recollect under that account.",
        )
    return Finding("note", "account", "you are root: run Recollect as the account that owns the data instead")


async def _examine_namespace(database: Database, settings: Settings, model: Checked | None) -> AsyncGenerator[Finding]:
    namespace, keys = settings.namespace, CAPABILITIES.keys
    async with database.reading(namespace) as db:
        waiting = await CAPABILITIES.passages.waiting(db, MAX_WAITING)
    if waiting:
        text = f"{waiting:,} passage(s) are waiting to be embedded; until then, only keyword search finds them. "
        yield Finding("note", "index", text + "Run `recollect index --wait`.")
    else:
        yield Finding("ok", "index", "all passages are embedded")

    yield await _embeddings(database, settings, model)

    async with database.reading(namespace) as db:
        guarded = await keys.guard(db)
    if guarded:
        yield Finding("ok", "keys", f"namespace {namespace!r} requires a key over HTTP")
    elif is_loopback(settings.host):
        yield Finding("note", "keys", f"none; not needed on loopback ({settings.host})")
    elif await keys.guard_anything(database):
        yield Finding("note", "keys", f"namespace {namespace!r} has none; other namespaces do")
    else:
        text = f"RECOLLECT_HOST is {settings.host}, which needs a key: run `recollect keys create`"
        yield Finding("missing", "keys", text)


async def _embeddings(database: Database, settings: Settings, model: Checked | None) -> Finding:
    """The model of the namespace, and what it would take to embed all of it with the one that is set up here."""
    async with database.reading(settings.namespace) as db:
        state = await CAPABILITIES.embedding_models.state(db)
        sizes = await CAPABILITIES.embedding_models.sizes(db)
        active = settings.embedding_model if state is None else state.active
        stored = await CAPABILITIES.embedding_models.dimensions(db, active)
    if is_of_provider(active) and "openai" not in settings.usable_providers:
        return Finding("missing", "embeddings", f"{active} is this namespace's model: set RECOLLECT_OPENAI_API_KEY")
    if state is not None and state.next is not None:
        return Finding("note", "embeddings", f"{active}, switching to {state.next}: `recollect embeddings status`")
    if model is not None and model.model_id == active and stored not in (None, model.dimensions):
        text = (
            f"{active} has {model.dimensions:,} dimensions, and the stored vectors have {stored:,}, so it is another "
        )
        return Finding("missing", "embeddings", text + "model: use the old one, or run `recollect embeddings switch`")
    if model is None or active not in sizes:
        return Finding("ok", "embeddings", active)
    return Finding("ok", "embeddings", f"{active}; {model.cost(active, sizes[active])}")


def _redis(settings: Settings) -> Finding:
    if settings.redis_url is None:
        return Finding("note", "redis", "not set; short-term memory is in PostgreSQL, which is fine")
    try:
        address = urlsplit(settings.redis_url.get_secret_value())
        if address.scheme == "unix":
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(REDIS_SECONDS)
            connection.connect(address.path)
        else:
            place = (address.hostname or "localhost", address.port or REDIS_PORT)
            connection = socket.create_connection(place, REDIS_SECONDS)
        if address.scheme == "rediss":
            connection = ssl.create_default_context().wrap_socket(connection, server_hostname=address.hostname)
        with connection:
            connection.sendall(b"PING\r\n")
            # An error is an answer too: a server that wants a password says so.
            if connection.recv(1) in (b"+", b"-"):
                return Finding("ok", "redis", "answers")
            reason = "the server there is not Redis"
    except ValueError:
        reason = "malformed URL; it looks like redis://host:6379/0"
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
    return Finding("missing", "redis", f"RECOLLECT_REDIS_URL is set but nothing answers there ({reason})")
