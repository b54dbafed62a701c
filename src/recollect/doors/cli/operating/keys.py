"""`recollect keys`: makes, lists and revokes the keys with which clients come in over HTTP."""

from recollect.doors.cli.one_command import with_engine
from recollect.doors.cli.printing import echo, one_line
from recollect.engine import Engine
from recollect.memory.accounts.access import Key

# Of other namespaces, by name.
SHOWN = 20


def create(namespace: str | None, label: str | None) -> None:
    """Print a new key on standard output, and what to do with it beside."""
    key = with_engine(lambda engine: engine.access.create_key(namespace or engine.settings.namespace, label))
    echo("Keep it: it is shown only this once. Send it as the header  Authorization: Bearer KEY", err=True)
    echo("From now on the namespace is closed to HTTP clients that send none.", err=True)
    echo(key.secret)


def show(namespace: str | None) -> None:
    """Print a table of keys, without their secrets; beside it, which namespace it is of and which others have some."""
    name, keys, elsewhere = with_engine(lambda engine: _keys(engine, namespace or engine.settings.namespace))
    if keys:
        echo(f"Keys of the namespace {name}:", err=True)
    for key in keys:
        state = "revoked" if key.revoked_at else "in use"
        whose = one_line(f"gateway user {key.user_id}" if key.user_id else key.label or "")
        echo(f"{key.id}  {key.created_at:%Y-%m-%d %H:%M}  {state:<8} {whose}".rstrip())
    if not keys:
        echo(f"There are no keys in the namespace {name}: `recollect keys create` makes one.", err=True)
    if elsewhere:
        listed = ", ".join(f"{other} ({count})" for other, count in list(elsewhere.items())[:SHOWN])
        more = " and more" if len(elsewhere) > SHOWN else ""
        echo(f"Others have keys, too: {listed}{more}. `recollect keys list --namespace NAME` shows them.", err=True)


async def _keys(engine: Engine, namespace: str) -> tuple[str, list[Key], dict[str, int]]:
    elsewhere = await engine.access.keys_elsewhere(namespace, SHOWN + 1)
    return namespace, await engine.access.keys(namespace), elsewhere


def revoke(namespace: str | None, key_id: str) -> None:
    """Make a key useless; servers notice within two seconds."""
    if with_engine(lambda engine: _revoke(engine, namespace or engine.settings.namespace, key_id)):
        echo("No key is left: whoever reaches this machine's loopback may use the namespace again.", err=True)
    echo(f"Revoked {key_id}.")


async def _revoke(engine: Engine, namespace: str, key_id: str) -> bool:
    """Whether the namespace is open after that."""
    await engine.access.revoke(namespace, key_id)
    return await engine.access.is_open(namespace)
