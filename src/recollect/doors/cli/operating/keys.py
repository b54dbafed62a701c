"""`recollect keys`: create, list and revoke API keys for HTTP clients."""

from recollect.doors.cli.one_command import chosen_namespace, command, opened_engine, with_engine
from recollect.doors.cli.printing import echo, one_line

# Of other namespaces, by name.
SHOWN = 20


def create(namespace: str | None, label: str | None) -> None:
    """Print a new key on standard output, and how to use it on standard error."""
    key = with_engine(lambda engine: engine.access.create_key(chosen_namespace(engine, namespace), label))
    echo("Save this key: it is not shown again. Send it as the header  Authorization: Bearer KEY", err=True)
    echo("From now on, HTTP requests to this namespace need a key.", err=True)
    echo(key.secret)


@command
async def show(namespace: str | None) -> None:
    """Print the keys without their secrets, and on standard error which other namespaces have keys."""
    async with opened_engine() as engine:
        name = chosen_namespace(engine, namespace)
        elsewhere = await engine.access.keys_elsewhere(name, SHOWN + 1)
        keys = await engine.access.keys(name)
    if keys:
        echo(f"Keys of namespace {name}:", err=True)
    for key in keys:
        state = "revoked" if key.revoked_at else "in use"
        whose = one_line(f"gateway user {key.user_id}" if key.user_id else key.label or "")
        echo(f"{key.id}  {key.created_at:%Y-%m-%d %H:%M}  {state:<8} {whose}".rstrip())
    if not keys:
        echo(f"Namespace {name} has no keys. Create one with `recollect keys create`.", err=True)
    if elsewhere:
        listed = ", ".join(f"{other} ({count})" for other, count in list(elsewhere.items())[:SHOWN])
        more = " and more" if len(elsewhere) > SHOWN else ""
        echo(f"Other namespaces with keys: {listed}{more}. See `recollect keys list --namespace NAME`.", err=True)


@command
async def revoke(namespace: str | None, key_id: str) -> None:
    """Revoke a key; servers reject it within two seconds."""
    async with opened_engine() as engine:
        name = chosen_namespace(engine, namespace)
        await engine.access.revoke(name, key_id)
        is_open = await engine.access.is_open(name)
    if is_open:
        echo("That was the last key: every process on this machine can access the namespace again.", err=True)
    echo(f"Revoked {key_id}.")
