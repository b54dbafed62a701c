"""The commands `recollect keys ...`."""

from collections.abc import Callable

import click

from recollect.origin import ROLES, Limits, Role


@click.group()
def keys() -> None:
    """Create, list, rotate and revoke API keys for HTTP clients, and let them read other namespaces.

    On loopback, a namespace without keys is open to everyone on this machine. Once it has a key, every request needs
    one.
    """


_NAMESPACE = click.option(
    "--namespace", help="Namespace that a key gives access to.  [default: default, or RECOLLECT_NAMESPACE]"
)


def _quota_options(command: Callable[..., None]) -> Callable[..., None]:
    for name, what in (
        ("--bytes-per-day", "Bytes the key may store per day (UTC), texts and metadata."),
        ("--rows-per-day", "Items the key may store per day (UTC)."),
        ("--requests-per-minute", "Requests the key may make per minute."),
    ):
        text = f"{what} A number, `unlimited`, or `default` for the deployment's setting."
        command = click.option(name, metavar="N", help=text)(command)
    return command


@keys.command("create")
@_NAMESPACE
@click.option("--label", help="What the key is for; `recollect keys list` shows it.")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="admin",
    show_default=True,
    help="`read` reads, `write` also adds and changes, `admin` also deletes for good and manages keys.",
)
@click.option(
    "--expires",
    metavar="WHEN",
    help="When the key stops working: a time from now such as 30d, or a date, which begins at 00:00 UTC.  [never]",
)
@click.option("--user", metavar="ID", help="Limit the key to the memory of this user.")
@click.option("--agent", metavar="ID", help="Limit the key to the memory of this agent.")
@_quota_options
def create_key(
    namespace: str | None,
    label: str | None,
    role: Role,
    expires: str | None,
    user: str | None,
    agent: str | None,
    **quota: str | None,
) -> None:
    """Create a key and print it. It is not shown again."""
    from recollect.doors.cli.operating import keys

    keys.create(namespace, label, role, expires, Limits(user, agent), keys.numbers(quota))


@keys.command("quota")
@_NAMESPACE
@click.argument("key_id")
@_quota_options
def change_quota(namespace: str | None, key_id: str, **quota: str | None) -> None:
    """Change the quota of the key KEY_ID, and print how much is used. Running servers apply it within two seconds."""
    from recollect.doors.cli.operating import keys

    keys.change_quota(namespace, key_id, keys.numbers(quota))


@keys.command("list")
@_NAMESPACE
def list_keys(namespace: str | None) -> None:
    """List the keys of a namespace, without their secrets, and the clients connected with them."""
    from recollect.doors.cli.operating import keys

    keys.show(namespace)


@keys.command("rotate")
@_NAMESPACE
@click.argument("key_id")
@click.option(
    "--overlap",
    metavar="TIME",
    default="24h",
    show_default=True,
    help="How long the old key keeps working: seconds, or such as 12h, 2d or 1w; 0 ends it at once.",
)
def rotate_key(namespace: str | None, key_id: str, overlap: str) -> None:
    """Create a key with the label, role, limits, grants and quota of KEY_ID, which stops working after --overlap."""
    from recollect.doors.cli.operating import keys

    keys.rotate(namespace, key_id, overlap)


@keys.command("revoke")
@_NAMESPACE
@click.argument("key_id")
@click.option("--yes", is_flag=True, help="Revoke without asking, even the last key.")
def revoke_key(namespace: str | None, key_id: str, yes: bool) -> None:
    """Revoke the key KEY_ID. Running servers reject it within two seconds.

    Asks before it revokes the last key: without one, every process on this machine can access the namespace.
    """
    from recollect.doors.cli.operating import keys

    keys.revoke(namespace, key_id, yes)


@keys.command("disconnect")
@_NAMESPACE
@click.argument("connection_id")
def disconnect(namespace: str | None, connection_id: str) -> None:
    """End the connection CONNECTION_ID of an MCP client that signed in with a key. The key keeps working."""
    from recollect.doors.cli.operating import keys

    keys.disconnect(namespace, connection_id)


_READ = click.option("--read", "opened", metavar="NAMESPACE", required=True, help="The other namespace.")


@keys.command("grant")
@_NAMESPACE
@click.argument("key_id")
@_READ
@click.option("--expires", metavar="WHEN", help="When the grant ends: a time from now such as 30d, or a date.  [never]")
def grant(namespace: str | None, key_id: str, opened: str, expires: str | None) -> None:
    """Let the key KEY_ID also read another namespace, so that a recall can search both."""
    from recollect.doors.cli.operating import keys

    keys.grant(namespace, key_id, opened, expires)


@keys.command("ungrant")
@_NAMESPACE
@click.argument("key_id")
@_READ
def ungrant(namespace: str | None, key_id: str, opened: str) -> None:
    """Take back a grant of KEY_ID. Running servers refuse the other namespace within two seconds."""
    from recollect.doors.cli.operating import keys

    keys.ungrant(namespace, key_id, opened)
