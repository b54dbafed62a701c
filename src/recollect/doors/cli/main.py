"""The `recollect` command: each subcommand translates arguments, calls the engine, and prints."""

import sys
from pathlib import Path
from typing import Any

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
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port to bind; 0 takes a free one.  [default: 8000, or RECOLLECT_PORT]",
)
@click.option("--toolsets", help="MCP tools to offer: core, context, cognitive, separated by commas.  [default: all]")
def serve(host: str | None, port: int | None, toolsets: str | None) -> None:
    """Start the server, REST and MCP on one port, and the embedded database if no other is set."""
    from recollect.doors.cli.serve import run

    run(host, port, toolsets)


@cli.command()
@click.option("--toolsets", help="Tools to offer: core, context, cognitive, separated by commas.  [default: all]")
@click.option("--describe", is_flag=True, help="Print the tools and what their schemas cost in tokens, and leave.")
def mcp(toolsets: str | None, describe: bool) -> None:
    """Speak MCP over standard input and output: the command for desktop clients and coding agents."""
    from recollect.doors.cli import mcp as command

    command.describe() if describe else command.run(toolsets)


@cli.command()
@click.argument("text")
def remember(text: str) -> None:
    """Store TEXT, to be recalled later. Prints its id. With - the text is read from standard input."""
    from recollect.doors.cli import memory

    memory.remember(sys.stdin.read() if text == "-" else text)


@cli.command()
@click.argument("question")
@click.option("--user", help="Only what belongs to this user.")
@click.option("--session", help="Only what was said in this session.")
@click.option("--kind", "kinds", multiple=True, help="Only this kind: message, document, ... May be repeated.")
@click.option("--top-k", type=int, default=10, show_default=True, help="How many memories at most.")
@click.option("--token-budget", type=int, help="Stop before the texts together exceed so many tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--explain", is_flag=True, help="Show the parts of every score.")
def recall(question: str, **options: Any) -> None:
    """Recall what answers QUESTION, by words and by meaning together."""
    from recollect.doors.cli import memory

    memory.recall(question, **options)


@cli.command()
@click.option("--wait", is_flag=True, help="Return when nothing is left to do, with a progress bar.")
def index(wait: bool) -> None:
    """Give stored passages their meaning. Servers do this by themselves; this helps with a large backlog."""
    from recollect.doors.cli.index import run

    run(wait)


@cli.group()
def bench() -> None:
    """Measure the quality of recall on conversations of your own."""


@bench.command()
@click.argument("corpus", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("questions", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Run file to write.")
@click.option("--namespace", help="Where to keep the corpus; one that holds it is only asked.  [default: a new name]")
def retrieval(corpus: Path, questions: Path, out: Path, namespace: str | None) -> None:
    """Store CORPUS, ask QUESTIONS of each conversation, and write the turns recalled, best first.

    Both files are JSON Lines, gzipped or not: a turn has conversation, session, turn, speaker, time and text; a
    question has conversation, id and question. The corpus stays in the database, in a namespace of its own.
    """
    from recollect.doors.cli.bench import run

    run(corpus, questions, out, namespace)


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
