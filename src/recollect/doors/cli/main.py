"""The `recollect` command: each subcommand translates arguments, calls the engine, and prints."""

import gc
import os
import sys
from pathlib import Path
from typing import Any

import click

from recollect import __version__
from recollect.doors.cli.audit_commands import audit
from recollect.doors.cli.coding_commands import install, uninstall
from recollect.doors.cli.key_commands import keys
from recollect.doors.cli.memory_commands import memories, remember
from recollect.doors.cli.namespace_option import namespace_option
from recollect.doors.cli.recall_options import recall_options
from recollect.doors.cli.review_commands import review
from recollect.doors.cli.watch_command import watch
from recollect.doors.cli.why_command import why
from recollect.errors import Invalid, RecollectError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_DRIFT = 3


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="recollect")
def cli() -> None:
    """Recollect: memory for AI agents.

    Works with no configuration: an embedded PostgreSQL starts on first use and stops when nothing uses it.
    Settings are environment variables with the prefix RECOLLECT_, for example RECOLLECT_DATABASE_URL.
    """


@cli.command()
@click.option("--host", help="Address to bind.  [default: 127.0.0.1, or RECOLLECT_HOST]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port to bind; 0 picks a free one.  [default: 8000, or RECOLLECT_PORT]",
)
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Server processes.")
@click.option(
    "--toolsets",
    help="MCP tools to offer, comma-separated: core, context, cognitive, golden, working, memories "
    "(default: these), graph-reference (the tools of the MCP reference memory server).",
)
@click.option("--require-key", is_flag=True, help="Require a key for every request, even on loopback.")
def serve(host: str | None, port: int | None, workers: int, toolsets: str | None, require_key: bool) -> None:
    """Start the server: REST and MCP on one port, with the embedded database unless another is configured."""
    from recollect.doors.cli.serving.serve import run

    run(host, port, workers, toolsets, require_key)


@cli.command()
@click.option("--keep", is_flag=True, help="Keep what the demo stored and print how to look at it.")
def demo(keep: bool) -> None:
    """Store a short story over the library, MCP and REST, recall it, and delete it again."""
    from recollect.doors.cli.demo.play import run

    if not run(keep):
        sys.exit(EXIT_FAILED)


@cli.command()
@click.option(
    "--toolsets",
    help="Tools to offer, comma-separated: core, context, cognitive, golden, working, memories "
    "(default: these), graph-reference (the tools of the MCP reference memory server).",
)
@click.option("--describe", is_flag=True, help="Print the tools and the token cost of their schemas, then exit.")
def mcp(toolsets: str | None, describe: bool) -> None:
    """Run an MCP server over standard input and output, for desktop clients and coding agents."""
    from recollect.doors.cli.serving import mcp as command

    command.describe(toolsets) if describe else command.run(toolsets)


cli.add_command(keys)
cli.add_command(audit)
cli.add_command(install)
cli.add_command(uninstall)
cli.add_command(remember)


@cli.command()
@click.argument("question")
@recall_options
def recall(question: str, **options: Any) -> None:
    """Search memory for QUESTION, by keyword and semantic search combined, best match first.

    Scores rank the results of one question; do not compare them between questions. The percentage is the relevance:
    the chance that a result bears on the question.
    """
    from recollect.doors.cli.model_loading import model_loading

    with model_loading():
        from recollect.doors.cli.memories import remember_recall as memory

        memory.recall(question, **options)


@cli.command()
@click.argument("item_id", metavar="[ID]", required=False)
@namespace_option
@click.option("--session", help="Everything in this session.")
@click.option("--user", help="Everything that belongs to this user.")
@click.option("--whole-namespace", metavar="NAME", help="Everything in this namespace, including its keys.")
@click.option("--twins", is_flag=True, help="With an ID: also delete duplicates, which recall shows as one result.")
@click.option("--dry-run", is_flag=True, help="Count what would be deleted; delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print the receipt as JSON.")
def forget(item_id: str | None, **options: Any) -> None:
    """Permanently delete one item (ID as recall prints it, such as insight:12), or a session, user or namespace.

    Lists what will be deleted, asks for confirmation, and prints a receipt. If interrupted, run it again to continue.
    """
    from recollect.doors.cli.memories.forget import run

    run(item_id, **options)


cli.add_command(why)
cli.add_command(watch)
cli.add_command(review)


@cli.command()
@namespace_option
@click.option("--wait", is_flag=True, help="Embed them now, with a progress bar, and return when done.")
def index(wait: bool) -> None:
    """Show how many passages are waiting to be embedded; --wait embeds them. A running server does so by itself."""
    from recollect.doors.cli.operating.index import run

    run(wait)


@cli.command()
@click.option("--config", type=click.Path(dir_okay=False, path_type=Path), help="JSON configuration file of the agent.")
@click.option(
    "--workspace",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder with MEMORY.md, USER.md, sessions and skills.  [default: as configured, or the folder of --config]",
)
@click.option("--session", help="Id of the session to continue or create.  [default: a new one]")
@click.option("--message", help="Send one message, print the answer and exit.")
def chat(config: Path | None, workspace: Path | None, session: str | None, message: str | None) -> None:
    """Chat with an agent that remembers. Without configuration, it works offline and answers only from memory."""
    from recollect.doors.cli.serving.chat import run

    run(config, workspace, session, message)


cli.add_command(memories)


@cli.group()
def golden() -> None:
    """Measure search precision on queries with known answers, and detect drift."""


_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@golden.command("add")
@namespace_option
@click.argument("query")
@click.option(
    "--expect",
    "expected",
    multiple=True,
    help="Ids of the insights it should find, such as 12,15. Can be repeated; `none` clears the list.",
)
@_AS_JSON
def add_golden(query: str, expected: tuple[str, ...], as_json: bool) -> None:
    """Add QUERY to the golden set, or update its expected insights, and print its id.

    Without --expect, an existing query keeps its expected insights; a new query has none and is not measured until
    it has some.
    """
    from recollect.doors.cli.memories import golden

    golden.add(query, expected, as_json)


@golden.command("import")
@namespace_option
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_AS_JSON
def import_golden(file: Path, as_json: bool) -> None:
    """Add the queries in FILE, all or none. Each line is {"query": "...", "expect": [12, 15]}."""
    from recollect.doors.cli.memories import golden

    golden.import_file(file, as_json)


@golden.command("accept")
@namespace_option
@click.argument("query_id", type=int)
@_AS_JSON
def accept_judgements(query_id: int, as_json: bool) -> None:
    """Add the documents that both judges found relevant to the expected insights of query QUERY_ID."""
    from recollect.doors.cli.memories import golden

    golden.accept(query_id, as_json)


@golden.command("list")
@namespace_option
@_AS_JSON
def list_golden(as_json: bool) -> None:
    """List the queries of the golden set."""
    from recollect.doors.cli.memories import golden

    golden.show(as_json)


@golden.command("remove")
@namespace_option
@click.argument("query_id", type=int)
def remove_golden(query_id: int) -> None:
    """Remove the query QUERY_ID and its judgements from the golden set."""
    from recollect.doors.cli.memories import golden

    golden.remove(query_id)


@golden.command("run")
@namespace_option
@click.option("--new-baseline", is_flag=True, help="Make this run the baseline.")
@_AS_JSON
def run_golden(new_baseline: bool, as_json: bool) -> None:
    """Measure precision at 5. A query's first run sets its baseline; the last run of each day is kept.

    Exits with 3 if precision is more than 5 % below the baseline, compared on queries whose expected insights are
    unchanged. Does not run while the embedding model is unavailable.
    """
    from recollect.doors.cli.memories import golden

    if golden.run(new_baseline, as_json):
        sys.exit(EXIT_DRIFT)


@golden.command("plot")
@namespace_option
@click.option("--days", type=int, default=90, show_default=True, help="Maximum number of daily runs.")
@click.option("--svg", "image", type=click.Path(dir_okay=False, path_type=Path), help="Also write it to an SVG file.")
@_AS_JSON
def plot_golden(days: int, image: Path | None, as_json: bool) -> None:
    """Plot the precision of the daily runs."""
    from recollect.doors.cli.memories import golden

    golden.plot(days, image, as_json)


@golden.command("judgements")
@namespace_option
@click.argument("query_id", type=int)
@_AS_JSON
def golden_judgements(query_id: int, as_json: bool) -> None:
    """Show every score the two judges gave for the query QUERY_ID."""
    from recollect.doors.cli.memories import golden

    golden.judgements(query_id, as_json)


@cli.group()
def embeddings() -> None:
    """Show the embedding model, or switch to another."""


@embeddings.command("switch")
@click.argument("model")
def switch_embeddings(model: str) -> None:
    """Re-embed everything with MODEL (local, onnx:FOLDER or openai:MODEL), then switch to it.

    Searches use the old model until then. If interrupted, run it again to continue.
    """
    from recollect.doors.cli.operating.embeddings import switch

    switch(model)


@embeddings.command("status")
def embeddings_status() -> None:
    """Show the model in use, the one a switch is moving to, and the number of vectors of each."""
    from recollect.doors.cli.operating.embeddings import status

    status()


@cli.command()
@namespace_option
@click.option("--days", type=int, default=7, show_default=True, help="Number of days, including today.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def usage(days: int, as_json: bool) -> None:
    """Show LLM usage by day, feature and model, and what is left of today's token budget."""
    from recollect.doors.cli.operating.usage import run

    run(days, as_json)


@cli.group()
def bench() -> None:
    """Measure recall quality on your own conversations."""


@bench.command()
@click.argument("corpus", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("questions", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Run file to write.")
@click.option("--namespace", help="Namespace to use; reused if it already contains the corpus.  [default: a new one]")
@click.option(
    "--through",
    type=click.Choice(["engine", "library"]),
    default="engine",
    show_default=True,
    help="What stores and recalls.",
)
def retrieval(corpus: Path, questions: Path, out: Path, namespace: str | None, through: str) -> None:
    """Store CORPUS, ask QUESTIONS, and write the turns recalled for each, best first.

    Both files are JSON Lines, optionally gzipped. A turn has conversation, session, turn, speaker, time and text, all
    strings; a question has conversation, id and question. With "until", only turns said by then may be recalled. With
    "gold_turns", a list, the command prints the fraction of them that was recalled, and with "category" the same for
    each category. The corpus stays in the database, in its own namespace.
    """
    from recollect.doors.cli.operating.bench import run

    run(corpus, questions, out, namespace, through)


@cli.command("status")
@namespace_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def show_status(as_json: bool) -> None:
    """Show sizes, rates, the indexing backlog, models and budget. Exits with 1 if something needs attention."""
    from recollect.doors.cli.operating.status import run

    sys.exit(run(as_json))


@cli.command()
def doctor() -> None:
    """Check the installation and say how to fix what is missing. Exits with 1 if a required item is missing."""
    from recollect.doors.cli.operating.doctor import run

    sys.exit(run())


@cli.command()
@click.option("--distribute", is_flag=True, help="Distribute the tables over the workers of a Citus cluster.")
@click.option("--shards", type=click.IntRange(1, 4096), help="Number of shards, with --distribute.  [default: 32]")
def migrate(distribute: bool, shards: int | None) -> None:
    """Upgrade the database schema to this version. Recollect also does this at every start."""
    from recollect.doors.cli.operating.migrate import run

    run(distribute, shards)


@cli.command()
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path), default="-")
@click.option("--namespace", help="Namespace to export.  [default: default, or RECOLLECT_NAMESPACE]")
@click.option("--user", help="Only this user's items.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def export(file: Path, namespace: str | None, user: str | None, force: bool) -> None:
    """Export a namespace, or one user in it, to FILE or standard output as JSON Lines.

    The same state produces the same bytes. Keys, usage, the feed of changes and derived data (passages, embeddings)
    are not exported.
    """
    from recollect.doors.cli.memories import export

    export.run(file, namespace, user, force)


@cli.command("import")
@click.argument("file", type=click.Path(exists=True, allow_dash=True, path_type=Path))
@click.option("--namespace", help="Target namespace.  [default: the one that was exported, or RECOLLECT_NAMESPACE]")
@click.option(
    "--from",
    "origin",
    type=click.Choice(["chatgpt", "claude", "claude-code", "markdown", "letta", "mem0", "memory-json"]),
    help="Format of FILE, if not a Recollect export.",
)
@click.option("--user", help="With --from: whose memory it becomes; with mem0, for records without an owner.")
@click.option("--dry-run", is_flag=True, help="With --from, but not mem0 and memory-json: count and store nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def import_(file: Path, **options: Any) -> None:
    """Import FILE, as written by `recollect export`, keeping its ids; or with --from, what another program exported.

    Existing records are not changed, so it can be run again: to continue after an interruption, or to add what is new
    in a later export. Exits with 1 if a record was rejected.

    \b
    chatgpt      ChatGPT data export: the zip, its folder or conversations.json
    claude       Claude data export: the zip, its folder, conversations.json or projects.json
    claude-code  session transcripts: a .jsonl file, or a folder such as ~/.claude/projects
    markdown     notes with [[links]] and tags: an Obsidian vault, another folder or one note
    letta        agent file (.af)
    mem0         what mem0's get_all returned, or an export of it
    memory-json  knowledge graph of the MCP reference memory server
    """
    from recollect.doors.cli.memories import imports

    if imports.run(file, **options):
        sys.exit(EXIT_FAILED)


@cli.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def backup(file: Path, force: bool) -> None:
    """Back up the whole database to FILE: every namespace and the hashes of keys. Servers can keep running."""
    from recollect.doors.cli.operating import backup

    backup.back_up(file, force)


@cli.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def restore(file: Path) -> None:
    """Restore FILE, as written by `recollect backup`, into an empty database, in one transaction."""
    from recollect.doors.cli.operating import backup

    backup.restore(file)


def main() -> None:
    """Run the command; a failure is one sentence on standard error and an exit code, never a traceback."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does; flushing what is still buffered must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except RecollectError as problem:
        from recollect.doors.cli.printing import echo

        echo(f"recollect: {problem}", err=True)
        sys.exit(EXIT_USAGE if isinstance(problem, Invalid) else EXIT_FAILED)
    finally:
        # At its end Python looks for garbage in everything that is loaded, which takes longer than to print an answer.
        gc.freeze()
