"""`recollect keys`: API keys for HTTP clients, their quotas, and which other namespaces they may read."""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from recollect import checks
from recollect.doors.cli.durations import UNITS, seconds
from recollect.doors.cli.one_command import chosen_namespace, command, confirmed, opened_engine
from recollect.doors.cli.printing import echo, one_line
from recollect.doors.recalls import moment
from recollect.errors import Invalid
from recollect.flows.accounts.access import NewKey
from recollect.memory.accounts.access import Key
from recollect.memory.accounts.grants import Grant
from recollect.memory.accounts.quotas import Used
from recollect.origin import Limits, Role
from recollect.quotas import MAX_QUOTA, UNLIMITED, Quota

# Of other namespaces, by name.
SHOWN = 20

MAX_DIGITS = 20

_OPENS = "Without a key, every process on this machine can access the namespace."


@command
async def create(
    namespace: str | None,
    label: str | None,
    role: Role,
    expires: str | None,
    limits: Limits,
    quota: Mapping[str, int | None],
) -> None:
    """Print a new key on standard output, and how to use it on standard error."""
    until = None if expires is None else expiry(expires)
    async with opened_engine() as engine:
        name = chosen_namespace(engine, namespace)
        was_open = await engine.access.is_open(name)
        key = await engine.access.create_key(name, label, role, until, limits, Quota(**quota))
        has_admin = await engine.access.has_admin(name)
    only = f", only {limits}" if str(limits) else ""
    echo(one_line(f"Key {key.id} of namespace {name}, role {role}{only}."), err=True)
    show_secret(key)
    if was_open:
        echo("From now on, HTTP requests to this namespace need a key.", err=True)
    if not has_admin:
        echo("No key of this namespace may delete for good or manage keys: `--role admin` creates one.", err=True)
    echo(key.secret)


def numbers(given: Mapping[str, str | None]) -> dict[str, int | None]:
    """The parts of a quota that were given, by name: a number, `unlimited` or `default`."""
    words = {"default": None, "unlimited": UNLIMITED}
    parts: dict[str, int | None] = {}
    for name, text in given.items():
        if text in words:
            parts[name] = words[text]
        elif text is not None:
            option = f"--{name.replace('_', '-')}"
            if not text.isdecimal() or len(text) > MAX_DIGITS or not 1 <= int(text) <= MAX_QUOTA:
                raise Invalid(
                    f"{option} must be a whole number of at least 1 and at most {MAX_QUOTA:,}, `unlimited` for no "
                    "limit, or `default`"
                )
            parts[name] = int(text)
    return parts


def expiry(text: str) -> datetime | None:
    """A moment, given as a time from now or as a date."""
    if not text.strip().lower().endswith(tuple(UNITS)):
        try:
            return checks.optional_future(moment(text, "--expires"), "--expires")
        except Invalid as problem:
            hint = "A date begins at 00:00 UTC; a time from now looks like 12h, 30d or 2w."
            raise Invalid(f"{problem}. {hint}") from problem
    try:
        return datetime.now(UTC) + timedelta(seconds=seconds(text, "--expires"))
    except OverflowError as problem:
        raise Invalid("--expires is too far in the future: choose a shorter time, or omit it") from problem


def show_secret(key: NewKey) -> None:
    """What to do with a key that is shown only once."""
    echo("Save this key: it is not shown again. Send it as the header  Authorization: Bearer KEY", err=True)
    if key.expires_at is not None:
        echo(f"It expires on {key.expires_at:%Y-%m-%d at %H:%M} UTC.", err=True)


@command
async def rotate(namespace: str | None, key_id: str, overlap: str) -> None:
    """Print a key that takes the place of another."""
    length = seconds(overlap, "--overlap", {"": 1, **UNITS})
    async with opened_engine() as engine:
        name = chosen_namespace(engine, namespace)
        key = await engine.access.rotate(name, key_id, length)
    echo(f"Key {key.id} of namespace {name} replaces key {key_id}.", err=True)
    show_secret(key)
    if length == 0:
        echo(f"The old key {key_id} no longer works.", err=True)
    else:
        end = datetime.now(UTC) + timedelta(seconds=length)
        echo(f"The old key {key_id} expires on {end:%Y-%m-%d at %H:%M} UTC.", err=True)
    echo(key.secret)


@command
async def show(namespace: str | None) -> None:
    """Print keys without their secrets, and connections; on standard error, which other namespaces have keys."""
    async with opened_engine() as engine:
        name = chosen_namespace(engine, namespace)
        elsewhere = await engine.access.keys_elsewhere(name, SHOWN + 1)
        keys = await engine.access.keys(name)
        held = await engine.grants.held(name, [key.id for key in keys])
        readers = await engine.grants.readers(name, SHOWN + 1)
        used = await engine.quotas.used(name, keys)
        quotas = {key.id: used[key.id].described(engine.quotas.effective(key)) for key in keys if key.id in used}
        connections = await engine.connections.of_namespace(name, SHOWN + 1)
    if keys:
        echo(f"Keys of namespace {name}:")
    for key in keys:
        whose = one_line(f"gateway user {key.user_id}" if key.user_id else key.label or "")
        line = f"{key.id}  {key.created_at:%Y-%m-%d %H:%M}  {key.state:<8} {key.role:<6} {whose}"
        echo(f"{line}{details(key, held.get(key.id, ()), quotas.get(key.id, ()))}".rstrip())
    if not keys:
        echo(f"Namespace {name} has no keys. Create one with `recollect keys create`.", err=True)
    for reader in readers[:SHOWN]:
        label = one_line(f" ({reader.label})" if reader.label else "")
        whose = f"key {reader.key_id}{label} of namespace {reader.key_namespace}"
        echo(f"Namespace {name} is also read by {whose}{until(reader)}.")
    if len(readers) > SHOWN:
        echo("More keys of other namespaces may read it: see /console/access.", err=True)
    for connection in connections[:SHOWN]:
        client = one_line(f"{connection.client_name or 'A client without a name'} ({connection.place})")
        last = f", last used {connection.last_used_at:%Y-%m-%d %H:%M}" if connection.last_used_at else ""
        since = f"since {connection.created_at:%Y-%m-%d %H:%M}{last}"
        echo(f"Connection {connection.id} with key {connection.key_id}: {client}, {connection.role}, {since}")
    if len(connections) > SHOWN:
        echo("More clients are connected: see /console/access.", err=True)
    if elsewhere:
        listed = ", ".join(f"{other} ({count})" for other, count in list(elsewhere.items())[:SHOWN])
        more = " and more" if len(elsewhere) > SHOWN else ""
        echo(f"Other namespaces with keys: {listed}{more}. See `recollect keys list --namespace NAME`.", err=True)


@command
async def change_quota(namespace: str | None, key_id: str, quota: Mapping[str, int | None]) -> None:
    """Change parts of a key's quota, if any are given, and print the quota and what is used."""
    async with opened_engine() as engine:
        name = chosen_namespace(engine, namespace)
        key = await engine.quotas.change(name, key_id, quota)
        used = await engine.quotas.used(name, [key])
        quota_now = engine.quotas.effective(key)
    for line in used.get(key.id, Used()).described(quota_now) or ["This key has no quota."]:
        echo(line)


@command
async def revoke(namespace: str | None, key_id: str, yes: bool) -> None:
    """Revoke a key; servers reject it within two seconds. Ask first if it is the last one."""
    async with opened_engine() as engine:
        name = chosen_namespace(engine, namespace)
        if not yes and await engine.access.is_last(name, key_id):
            _ask_about_last(name, key_id)
        await engine.access.revoke(name, key_id)
        is_open = await engine.access.is_open(name)
    if is_open:
        echo("That was the last key: every process on this machine can access the namespace again.", err=True)
    echo(f"Revoked {key_id}.")


def _ask_about_last(namespace: str, key_id: str) -> None:
    echo(f"{key_id} is the last key of namespace {namespace}. {_OPENS}", err=True)
    if not sys.stdin.isatty():
        raise Invalid("Nothing was revoked: no terminal to confirm on. Use --yes to revoke the last key.")
    if not confirmed("Revoke it?"):
        echo("Nothing was revoked.", err=True)
        sys.exit(1)


@command
async def disconnect(namespace: str | None, connection_id: str) -> None:
    """End a client's connection; servers reject its tokens within two seconds."""
    async with opened_engine() as engine:
        await engine.connections.end(chosen_namespace(engine, namespace), connection_id)
    echo(f"Disconnected {connection_id}.")


@command
async def grant(namespace: str | None, key_id: str, opened: str, expires: str | None) -> None:
    """Let a key read another namespace."""
    end = None if expires is None else expiry(expires)
    async with opened_engine() as engine:
        own = chosen_namespace(engine, namespace)
        granted = await engine.grants.grant(opened, own, key_id, end)
        if await engine.grants.has_nothing(opened):
            echo(f"Namespace {opened} has nothing stored yet.", err=True)
    echo(f"Key {key_id} of namespace {own} may read namespace {opened}{until(granted)}.")


@command
async def ungrant(namespace: str | None, key_id: str, opened: str) -> None:
    """Take back a grant."""
    async with opened_engine() as engine:
        own = chosen_namespace(engine, namespace)
        await engine.grants.end(opened, own, key_id)
    echo(f"Key {key_id} of namespace {own} may no longer read namespace {opened}.")


def until(grant: Grant) -> str:
    """When a grant ends, if it does."""
    return "" if grant.expires_at is None else f" until {grant.expires_at:%Y-%m-%d %H:%M} UTC"


def details(key: Key, held: Sequence[Grant], quota: Sequence[str]) -> str:
    """A key's limits, grants, times and quota, in parentheses; empty if it has none."""
    limits = str(Limits(key.only_user, key.only_agent))
    said = [one_line(f"only {limits}")] if limits else []
    said += [f"also reads {grant.namespace}{until(grant)}" for grant in held]
    moments = (("last used", key.last_used_at), ("expires", key.expires_at))
    said += [f"{name} {at:%Y-%m-%d %H:%M}" for name, at in moments if at is not None]
    said += quota
    return f"  ({', '.join(said)})" if said else ""
