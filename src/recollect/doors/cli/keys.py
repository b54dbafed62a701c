"""`recollect keys`: makes, lists and revokes the keys with which clients come in over HTTP."""

import click

from recollect.doors.cli.one_command import with_engine
from recollect.engine import Engine


def create(namespace: str | None, label: str | None) -> None:
    """Print a new key on standard output, and what to do with it beside."""
    key = with_engine(lambda engine: engine.access.create_key(namespace or engine.settings.namespace, label))
    click.echo("Keep it: it is shown only this once. Send it as the header  Authorization: Bearer KEY", err=True)
    click.echo("From now on the namespace is closed to HTTP clients that send none.", err=True)
    click.echo(key.secret)


def show(namespace: str | None) -> None:
    """Print a table of keys, without their secrets."""
    keys = with_engine(lambda engine: engine.access.keys(namespace or engine.settings.namespace))
    for key in keys:
        state = "revoked" if key.revoked_at else "in use"
        whose = f"gateway user {key.user_id}" if key.user_id else key.label or ""
        click.echo(f"{key.id}  {key.created_at:%Y-%m-%d %H:%M}  {state:<8} {whose}".rstrip())
    if not keys:
        click.echo("There are no keys: `recollect keys create` makes one.", err=True)


def revoke(namespace: str | None, key_id: str) -> None:
    """Make a key useless; servers notice within two seconds."""
    if with_engine(lambda engine: _revoke(engine, namespace or engine.settings.namespace, key_id)):
        click.echo("No key is left: whoever reaches this machine's loopback may use the namespace again.", err=True)
    click.echo(f"Revoked {key_id}.")


async def _revoke(engine: Engine, namespace: str, key_id: str) -> bool:
    """Whether the namespace is open after that."""
    await engine.access.revoke(namespace, key_id)
    return await engine.access.is_open(namespace)
