"""The `recollect` command: each subcommand translates arguments, calls the engine, and prints."""

import sys

import click

from recollect import __version__
from recollect.errors import Invalid, RecollectError

EXIT_FAILED = 1
EXIT_USAGE = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="recollect")
def cli() -> None:
    """Recollect: memory for AI agents.

    Works with no configuration: an embedded PostgreSQL starts by itself and stops when nobody uses it.
    Settings are environment variables with the prefix RECOLLECT_, for example RECOLLECT_DATABASE_URL.
    """


@cli.command()
@click.option("--host", help="Address to bind.  [default: 127.0.0.1, or RECOLLECT_HOST]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to bind; 0 takes a free one.  [default: 8000]")
def serve(host: str | None, port: int | None) -> None:
    """Start the server, and the embedded database if no other is set."""
    from recollect.doors.cli.serve import run

    run(host, port)


@cli.command()
def doctor() -> None:
    """Say in plain words what works, what is missing and how to fix it. Exits with 1 if something needed is missing."""
    from recollect.doors.cli.doctor import run

    sys.exit(run())


@cli.command()
def migrate() -> None:
    """Bring the database to this version's schema. Starting Recollect does the same by itself."""
    from recollect.doors.cli.migrate import run

    run()


def main() -> None:
    """Run the command; a failure is one sentence on standard error and an exit code, never a traceback."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except RecollectError as problem:
        click.echo(f"recollect: {problem}", err=True)
        sys.exit(EXIT_USAGE if isinstance(problem, Invalid) else EXIT_FAILED)
