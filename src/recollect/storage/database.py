"""The connection pool, transactions bound to one namespace, and the mapping of database errors to our categories."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, Protocol, Self, cast

import asyncpg

from recollect import checks, origin, tasks
from recollect.errors import Misconfigured, Unavailable
from recollect.origin import Limits
from recollect.storage.failures import translated
from recollect.storage.limits import limited
from recollect.storage.limits.meter import Meter, Tally
from recollect.storage.sql import Query

Pooling = Literal["session", "transaction"]

MAX_IDLE_SECONDS = 300.0

# A server that may be away must not keep others waiting for a connection.
OPTIONAL_SECONDS = 1.0

# Connections come back when the calls that use them end; a call that hangs must not keep the process.
CLOSE_SECONDS = 0.5

# Stands in the place of a namespace; no namespace can have this name.
SHARED = "*"

_SEARCH_SETTINGS = "set local plan_cache_mode = force_custom_plan; set local hnsw.ef_search = {near:d}"

NEAR = 200
"""How many rows an HNSW index brings at most, unless a search says otherwise."""
MAX_NEAR = 1000
"""The most that it can bring."""

_SESSION_SETTINGS = f"""
select set_config('recollect.namespace', $1, false), set_config('plan_cache_mode', $2, false),
       set_config('hnsw.ef_search', '{NEAR}', false),
       set_config('recollect.only_user', $3, false), set_config('recollect.only_agent', $4, false)
"""

# Citus passes only SET on to its workers. SET takes no parameters, so the server quotes the values.
_LOCAL_LIMITS = """
select format('set local recollect.only_user = %L', $1::text), format('set local recollect.only_agent = %L', $2::text)
"""

# One moment for all statements; and what a value looks like as text must not depend on settings of the server.
_SNAPSHOT_SETTINGS = """
set transaction isolation level repeatable read, read only;
set local plan_cache_mode = force_custom_plan; set local timezone = 'UTC'; set local bytea_output = 'hex';
set local extra_float_digits = 3; set local idle_in_transaction_session_timeout = 0
"""


class Connection(asyncpg.Connection):
    """A connection that remembers what it was last set to, so that setting it again costs nothing."""

    namespace: str | None = None
    is_for_search = False
    limits: Limits | None = None

    def get_reset_query(self) -> str:
        """Nothing to reset on release: open transactions are rolled back anyway, and the namespace must stay."""
        return ""

    async def _reset(self) -> None:
        """Roll back what a cancelled caller left open; asyncpg would report it as a fault first."""
        self._top_xact = None
        if self.is_in_transaction():
            await self.execute("rollback")
        await super()._reset()


class Statements:
    """Runs named statements for one namespace, which is always the first parameter, as the caller may."""

    __slots__ = ("_connection", "namespace", "on_worker")

    def __init__(self, connection: Connection, namespace: str, *, on_worker: bool = False) -> None:
        self._connection = connection
        self.namespace = namespace
        # Whether a call may be handed to the worker of a cluster that has the namespace.
        self.on_worker = on_worker

    async def all(self, query: Query, /, **values: object) -> list[asyncpg.Record]:
        """Every row that the caller may see."""
        origin.require(query.role, self.namespace)
        if (limits := origin.current().limits) is not None:
            rows = list(await limited.run(query, values, limits, self._fetch))
        else:
            rows = await self._fetch(query, values)
        self._audit(query, values, rows)
        return rows

    async def first(self, query: Query, /, **values: object) -> asyncpg.Record | None:
        """The first row that the caller may see, or none."""
        if origin.current().limits is not None:
            return next(iter(await self.all(query, **values)), None)
        origin.require(query.role, self.namespace)
        with translated(query.name):
            row = await self._connection.fetchrow(query.text, self.namespace, *query.values(values))
        self._audit(query, values, [] if row is None else [row])
        return row

    def _audit(self, query: Query, values: Mapping[str, object], rows: Sequence[asyncpg.Record]) -> None:
        """Note the items that a statement shows or changes."""
        if query.audit is None or (touched := origin.current().touched) is None:
            return
        event, kind, name = query.audit
        is_given = name in query.parameters
        touched.note(self.namespace, event, kind, limited.listed(values[name]) if is_given else [r[name] for r in rows])

    async def _fetch(self, query: Query, values: Mapping[str, object]) -> list[asyncpg.Record]:
        with translated(query.name):
            return await self._connection.fetch(query.text, self.namespace, *query.values(values))

    async def one(self, query: Query, /, **values: object) -> asyncpg.Record:
        """The row that a statement always returns."""
        row = await self.first(query, **values)
        if row is None:
            raise LookupError(f"{query.name} returned no row")
        return row


class Transaction(Statements):
    """Statements that commit together or not at all. Capabilities add what they store to its tally."""

    __slots__ = ("tally",)

    def __init__(self, connection: Connection, namespace: str, meter: Meter) -> None:
        super().__init__(connection, namespace)
        self.tally = Tally(meter, namespace)


class Replica(Protocol):
    """Another server with the same rows, for searches."""

    async def current(self) -> "Database | None":
        """The replica, if it has everything committed so far; otherwise None."""

    def failed(self, problem: Unavailable) -> None:
        """Stop using it for a while."""


class Database:
    """One pool of connections; hands out statements that are bound to a namespace."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", pooling: Pooling, timeout: float) -> None:
        self._pool = pool
        self.pooling: Pooling = pooling
        # Changes tables and builds indexes; another role where the one that works with rows does not own the tables.
        self.owner: Database = self
        self.replica: Replica | None = None
        # Whether Citus has the tables on several workers; whoever opens the database finds out.
        self.distributed = False
        self.meter = Meter()
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(
        cls,
        target: Mapping[str, Any],
        *,
        pooling: Pooling = "session",
        connections: int = 10,
        timeout: float = 30.0,
        setting: str = "RECOLLECT_DATABASE_URL",
        optional: bool = False,
    ) -> Self:
        """Connect; `target` is what asyncpg.connect takes: a dsn, or host, port, user and database.

        `setting` names where it comes from, for the one who must correct it. An optional server need not answer yet.
        """
        with translated("connect"):
            try:
                pool = await asyncpg.create_pool(
                    **target,
                    # asyncpg would keep up a minimum, and log a traceback for every try while the server is away.
                    min_size=0,
                    max_size=connections,
                    timeout=min(timeout, OPTIONAL_SECONDS) if optional else timeout,
                    command_timeout=timeout,
                    max_inactive_connection_lifetime=MAX_IDLE_SECONDS,
                    # Behind a transaction pooler the next statement may meet a server that knows no prepared ones.
                    statement_cache_size=0 if pooling == "transaction" else 1024,
                    connection_class=Connection,
                    init=_prepare_connection,
                )
                try:
                    with translated("connect"):
                        await pool.release(await pool.acquire())
                except Unavailable:
                    if not optional:
                        raise
            except (ValueError, OverflowError):
                # asyncpg refuses a malformed address with errors that may quote a part of its password.
                raise Misconfigured(
                    f"{setting}, or its TLS options, cannot be used: "
                    "it must look like postgresql://user:password@host:5432/database, with special characters escaped. "
                    "With sslmode=verify-ca or verify-full, add sslrootcert=FILE."
                ) from None
        return cls(pool, pooling, timeout)

    async def close(self) -> None:
        """Return every connection; one that is in use for long is cut off."""
        with translated("close"):
            await tasks.ended_within(CLOSE_SECONDS, self._pool.close())

    @asynccontextmanager
    async def transaction(self, namespace: str) -> AsyncIterator[Transaction]:
        """Statements of one namespace that commit together when the block ends without an error; for writing."""
        checks.namespace(namespace)
        origin.require("write", namespace)
        async with self._transaction(namespace) as transaction:
            yield transaction

    @asynccontextmanager
    async def shared_transaction(self) -> AsyncIterator[Transaction]:
        """The same for rows that belong to no namespace: limits that hold for the whole deployment."""
        async with self._transaction(SHARED) as transaction:
            yield transaction

    @asynccontextmanager
    async def _transaction(self, namespace: str, settings: str = "") -> AsyncIterator[Transaction]:
        """Begins in one round trip, with the settings that hold until its end."""
        async with self._connection() as connection:
            if self._sets_namespace_each_time:
                settings = f"{settings}; {_setting_of(namespace)}"
            else:
                await _set_session(connection, namespace)
            try:
                with translated("begin"):
                    if self.distributed:
                        # Citus hands the whole message of a SET on to its workers, which have begun already.
                        await connection.execute("begin")
                        await connection.execute(settings)
                    else:
                        await connection.execute(f"begin; {settings}")
                    if self._sets_namespace_each_time and (limits := origin.current().limits) is not None:
                        for setting in await connection.fetchrow(_LOCAL_LIMITS, *_only(limits)) or ():
                            await connection.execute(setting)
                transaction = Transaction(connection, namespace, self.meter)
                yield transaction
                if transaction.tally:
                    await transaction.tally.charge(transaction.all)
            except BaseException as problem:
                try:
                    with translated("rollback"):
                        if not self._is_left_behind() and not connection.is_closed():
                            await connection.execute("rollback")
                except Unavailable as failure:
                    problem.add_note(str(failure))
                raise
            with translated("commit"):
                await connection.execute("commit")

    @property
    def _sets_namespace_each_time(self) -> bool:
        """Whether a connection would forget its namespace, or workers behind it would not hear of it."""
        return self.distributed or self.pooling == "transaction"

    @asynccontextmanager
    async def reading(self, namespace: str) -> AsyncIterator[Statements]:
        """Statements that each stand alone: one round trip where the connection is ours, a transaction otherwise."""
        checks.namespace(namespace)
        if self._sets_namespace_each_time:
            async with self._transaction(namespace) as transaction:
                yield transaction
            return
        async with self._connection() as connection:
            await _set_session(connection, namespace)
            yield Statements(connection, namespace)

    @asynccontextmanager
    async def calling(self, namespace: str) -> AsyncIterator[Statements]:
        """For one call of a function that sets the namespace itself, and so needs no transaction around it."""
        checks.namespace(namespace)
        async with self._connection() as connection:
            if not self._sets_namespace_each_time:
                await _set_session(connection, None)
            yield Statements(connection, namespace, on_worker=self.distributed)

    @asynccontextmanager
    async def searching(self, namespace: str, near: int = NEAR) -> AsyncIterator[Statements]:
        """Statements that only read, on a replica if there is one that is up to date."""
        if self.replica is None or (replica := await self.replica.current()) is None:
            async with self.planned(namespace, near) as db:
                yield db
            return
        try:
            async with replica.planned(namespace, near) as db:
                yield db
        except Unavailable as problem:
            self.replica.failed(problem)
            raise

    @asynccontextmanager
    async def planned(self, namespace: str, near: int = NEAR) -> AsyncIterator[Statements]:
        """Statements planned for the very values they are given: a plan for any owner is a bad one for most.

        A connection of our own stays set to that, so a search needs no transaction around its statements.
        """
        checks.namespace(namespace)
        if self._sets_namespace_each_time or near != NEAR:
            async with self._transaction(namespace, _SEARCH_SETTINGS.format(near=near)) as transaction:
                yield transaction
            return
        async with self._connection() as connection:
            await _set_session(connection, namespace, is_for_search=True)
            yield Statements(connection, namespace)

    @asynccontextmanager
    async def snapshot(self, namespace: str) -> AsyncIterator[Statements]:
        """Statements that all see what was there when the first of them ran, and show it in the same form anywhere."""
        checks.namespace(namespace)
        async with self._transaction(namespace, _SNAPSHOT_SETTINGS) as transaction:
            yield transaction

    @asynccontextmanager
    async def unscoped(self) -> AsyncIterator[Connection]:
        """A connection in a transaction, in whatever namespace it was last: for the schema and the server, not content.

        A migration that changes rows must lift `force row level security` from their table while it does.
        """
        origin.require_no_limits()
        async with self._connection() as connection:
            with translated("server"):
                async with connection.transaction():
                    yield connection

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Connection]:
        """A connection outside any transaction: for statements that must not be in one, such as concurrent indexing."""
        origin.require_no_limits()
        async with self._connection() as connection:
            with translated("server"):
                yield connection

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        # A timer costs as much as all the rest of this, and only a caller that must wait needs one.
        timeout = None if self._pool.get_idle_size() else self._timeout
        with translated("connect"):
            connection = await self._pool.acquire(timeout=timeout)
        try:
            yield connection  # type: ignore[misc]  # the pool's proxy forwards to our class
        finally:
            if not self._is_left_behind():
                with translated("release"):
                    await self._pool.release(connection)

    def _is_left_behind(self) -> bool:
        """Whether our event loop was closed under us: nothing can be awaited any more, and the server will notice."""
        try:
            return asyncio.get_running_loop() is not self._loop
        except RuntimeError:
            return True


async def _prepare_connection(connection: Any) -> None:
    for kind in ("json", "jsonb"):
        await connection.set_type_codec(kind, schema="pg_catalog", encoder=json.dumps, decoder=json.loads)


async def _set_session(connection: Connection, namespace: str | None, *, is_for_search: bool = False) -> None:
    """Set what is not set yet, for as long as the connection lives; without a namespace, leave that as it is."""
    own: Connection = cast(Any, connection)._con  # ours, behind the pool's proxy
    namespace = own.namespace if namespace is None else namespace
    limits = origin.current().limits
    if own.namespace == namespace and own.is_for_search == is_for_search and own.limits == limits:
        return
    # Forgotten first: a caller that is cancelled in between cannot know what the server has set.
    own.namespace = None
    with translated("set namespace"):
        plans = "force_custom_plan" if is_for_search else "auto"
        await connection.execute(_SESSION_SETTINGS, namespace or "", plans, *_only(limits))
    own.namespace, own.is_for_search, own.limits = namespace, is_for_search, limits


def _only(limits: Limits | None) -> tuple[str, str]:
    """The user and agent to whose rows the policies limit a connection; empty if it is not limited."""
    return ("", "") if limits is None else (limits.user or "", limits.agent or "")


async def set_local_namespace(connection: Connection, namespace: str) -> None:
    """Set the namespace until the transaction ends; its name must have been checked."""
    with translated("set namespace"):
        await connection.execute(_setting_of(namespace))


def _setting_of(namespace: str) -> str:
    """SET takes no parameters, and it must be SET: Citus hands only that on to its workers."""
    return f"set local recollect.namespace = '{namespace}'"
