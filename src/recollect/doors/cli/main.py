"""The `recollect` command: each subcommand translates arguments, calls the engine, and prints."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from recollect import __version__
from recollect.errors import Invalid, RecollectError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_DRIFT = 3


class _KindOption(click.Option):
    """Names the kinds when help is asked for: to know them takes an import that no other help should wait for."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from recollect.flows.kinds import registry

        *others, last = registry.recalled()
        self.help = f"Only this kind: {', '.join(others)} or {last}. May be repeated."
        return super().get_help_record(ctx)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
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
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Server processes.")
@click.option(
    "--toolsets", help="MCP tools to offer: core, context, cognitive, golden, working, by commas.  [default: all]"
)
@click.option("--require-key", is_flag=True, help="Let nobody in without a key, also on loopback.")
def serve(host: str | None, port: int | None, workers: int, toolsets: str | None, require_key: bool) -> None:
    """Start the server, REST and MCP on one port, and the embedded database if no other is set."""
    from recollect.doors.cli.serving.serve import run

    run(host, port, workers, toolsets, require_key)


@cli.command()
@click.option("--keep", is_flag=True, help="Keep what was remembered, and say how to look at it.")
def demo(keep: bool) -> None:
    """Play a short story through several doors and recall it, in a namespace of its own that is forgotten again."""
    from recollect.doors.cli.demo.play import run

    if not run(keep):
        sys.exit(EXIT_FAILED)


@cli.group()
def keys() -> None:
    """Make, list and revoke the keys with which clients come in over HTTP.

    On loopback a namespace without keys is open to whoever can reach this machine; with a key it is not.
    """


_NAMESPACE = click.option("--namespace", help="Whose memory the key opens.  [default: default, or RECOLLECT_NAMESPACE]")


@keys.command("create")
@_NAMESPACE
@click.option("--label", help="What the key is for, to know it again in the list.")
def create_key(namespace: str | None, label: str | None) -> None:
    """Make a key and print it, this once."""
    from recollect.doors.cli.operating import keys

    keys.create(namespace, label)


@keys.command("list")
@_NAMESPACE
def list_keys(namespace: str | None) -> None:
    """Show the keys of a namespace, without their secrets."""
    from recollect.doors.cli.operating import keys

    keys.show(namespace)


@keys.command("revoke")
@_NAMESPACE
@click.argument("key_id")
def revoke_key(namespace: str | None, key_id: str) -> None:
    """Make the key KEY_ID useless; running servers notice within two seconds."""
    from recollect.doors.cli.operating import keys

    keys.revoke(namespace, key_id)


@cli.command()
@click.option(
    "--toolsets", help="Tools to offer: core, context, cognitive, golden, working, by commas.  [default: all]"
)
@click.option("--describe", is_flag=True, help="Print the tools and what their schemas cost in tokens, and leave.")
def mcp(toolsets: str | None, describe: bool) -> None:
    """Speak MCP over standard input and output: the command for desktop clients and coding agents."""
    from recollect.doors.cli.serving import mcp as command

    command.describe(toolsets) if describe else command.run(toolsets)


@cli.command()
@click.argument("text")
@click.option("--user", help="Whose memory it is: a fact that `recollect memories` lists. Otherwise nobody's.")
def remember(text: str, user: str | None) -> None:
    """Store TEXT, to be recalled later. Prints its id. With - the text is read from standard input."""
    from recollect.doors.cli.memories import remember_recall as memory

    memory.remember(sys.stdin.read() if text == "-" else text, user)


@cli.command()
@click.argument("question")
@click.option("--user", help="Only what belongs to this user.")
@click.option("--session", help="Only what was said in this session.")
@click.option("--kind", "kinds", cls=_KindOption, multiple=True)
@click.option("--top-k", type=int, default=10, show_default=True, help="How many memories at most.")
@click.option("--token-budget", type=int, help="Stop before the texts together exceed so many tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--explain", is_flag=True, help="Show the parts of every score.")
def recall(question: str, **options: Any) -> None:
    """Recall what answers QUESTION, by words and by meaning together, the best first.

    The scores put one answer in order; between two questions they say nothing.
    """
    from recollect.doors.cli.memories import remember_recall as memory

    memory.recall(question, **options)


@cli.command()
@click.argument("item_id", metavar="[ID]", required=False)
@click.option("--session", help="Everything of this session.")
@click.option("--user", help="Everything that is known to be of this user.")
@click.option("--whole-namespace", metavar="NAME", help="Everything in the namespace of this name, keys included.")
@click.option("--twins", is_flag=True, help="With an ID: also the items that say the same, which recall shows as one.")
@click.option("--dry-run", is_flag=True, help="Only count what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print the receipt as JSON.")
def forget(item_id: str | None, **options: Any) -> None:
    """Forget for good what ID names (insight:12, or as recall shows it), or all of a session, user or namespace.

    Shows first what would go, and asks. Prints a receipt. Stopped or killed, the same command goes on where it was.
    """
    from recollect.doors.cli.memories.forget import run

    run(item_id, **options)


@cli.command()
@click.option("--wait", is_flag=True, help="Return when nothing is left to do, with a progress bar.")
def index(wait: bool) -> None:
    """Give stored passages their meaning. Servers do this by themselves; this helps with a large backlog."""
    from recollect.doors.cli.operating.index import run

    run(wait)


@cli.command()
@click.option("--config", type=click.Path(dir_okay=False, path_type=Path), help="The agent's JSON configuration.")
@click.option(
    "--workspace",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of MEMORY.md, USER.md, sessions and skills.  [default: as configured, or the configuration's folder]",
)
@click.option("--session", help="Go on in this session, or begin one of this name.  [default: a new one]")
@click.option("--message", help="Say this, print the answer, and leave.")
def chat(config: Path | None, workspace: Path | None, session: str | None, message: str | None) -> None:
    """Talk to an agent that remembers. Without a configuration it answers offline, from memory alone."""
    from recollect.doors.cli.serving.chat import run

    run(config, workspace, session, message)


@cli.group()
def memories() -> None:
    """Look at long-term memories, what happened to them, and undo what a newer one replaced."""


@memories.command("list")
@click.option("--user", help="Only what belongs to this user.")
@click.option("--agent", help="Only what belongs to this agent.")
@click.option("--session", help="Only what belongs to this session.")
@click.option("--limit", type=int, default=20, show_default=True, help="How many at most.")
def list_memories(user: str | None, agent: str | None, session: str | None, limit: int) -> None:
    """Show memories, newest first."""
    from recollect.doors.cli.memories import memories

    memories.show(user, agent, session, limit)


@memories.command("history")
@click.argument("memory_id")
def memory_history(memory_id: str) -> None:
    """Show what happened to the memory MEMORY_ID, also if it is deleted."""
    from recollect.doors.cli.memories import memories

    memories.history(memory_id)


@memories.command("undo")
@click.argument("memory_id")
def undo_memory(memory_id: str) -> None:
    """Bring back the memory MEMORY_ID, which a newer one superseded."""
    from recollect.doors.cli.memories import memories

    memories.undo(memory_id)


@cli.group()
def golden() -> None:
    """Measure hybrid search on queries whose answers are known, and see it drift."""


_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@golden.command("add")
@click.argument("query")
@click.option(
    "--expect",
    "expected",
    multiple=True,
    help="Ids of insights it should find: 12,15. May be repeated; `none` takes its expectations away.",
)
@_AS_JSON
def add_golden(query: str, expected: tuple[str, ...], as_json: bool) -> None:
    """Add QUERY to the golden set and print its id; one that is there already gets the new expectation.

    Without --expect a query that is there already keeps what it expects; a new one is there to be judged, and is not
    measured.
    """
    from recollect.doors.cli.memories import golden

    golden.add(query, expected, as_json)


@golden.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_AS_JSON
def import_golden(file: Path, as_json: bool) -> None:
    """Add the queries of FILE, all or none. It is JSON Lines: {"query": "...", "expect": [12, 15]}."""
    from recollect.doors.cli.memories import golden

    golden.import_file(file, as_json)


@golden.command("accept")
@click.argument("query_id", type=int)
@_AS_JSON
def accept_judgements(query_id: int, as_json: bool) -> None:
    """Let the query QUERY_ID expect what both judges found relevant, beside what it expects already."""
    from recollect.doors.cli.memories import golden

    golden.accept(query_id, as_json)


@golden.command("list")
@_AS_JSON
def list_golden(as_json: bool) -> None:
    """Show the golden set."""
    from recollect.doors.cli.memories import golden

    golden.show(as_json)


@golden.command("remove")
@click.argument("query_id", type=int)
def remove_golden(query_id: int) -> None:
    """Take the query QUERY_ID out of the golden set, with what judges said of it."""
    from recollect.doors.cli.memories import golden

    golden.remove(query_id)


@golden.command("run")
@click.option("--new-baseline", is_flag=True, help="Hold this and later runs to the precision of this one.")
@_AS_JSON
def run_golden(new_baseline: bool, as_json: bool) -> None:
    """Measure precision at 5. The first run of a query sets its baseline; one run a day is kept, the last.

    Exits with 3 if precision is more than 5 % below the baseline, on the queries that both have with the same
    expectations. Nothing is run while the embedding model cannot be asked.
    """
    from recollect.doors.cli.memories import golden

    if golden.run(new_baseline, as_json):
        sys.exit(EXIT_DRIFT)


@golden.command("plot")
@click.option("--days", type=int, default=90, show_default=True, help="How many daily runs at most.")
@click.option("--svg", "image", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture to this file.")
@_AS_JSON
def plot_golden(days: int, image: Path | None, as_json: bool) -> None:
    """Draw the trend of the daily runs."""
    from recollect.doors.cli.memories import golden

    golden.plot(days, image, as_json)


@golden.command("judgements")
@click.argument("query_id", type=int)
@_AS_JSON
def golden_judgements(query_id: int, as_json: bool) -> None:
    """Show every score that the two judges gave to documents for the query QUERY_ID."""
    from recollect.doors.cli.memories import golden

    golden.judgements(query_id, as_json)


@cli.group()
def embeddings() -> None:
    """Which model gives memories their meaning, and the move to another."""


@embeddings.command("switch")
@click.argument("model")
def switch_embeddings(model: str) -> None:
    """Embed everything anew with MODEL, local or openai:text-embedding-3-small, then switch at once.

    Searches go on with the old model meanwhile. Stopped or killed, the same command goes on where it was.
    """
    from recollect.doors.cli.operating.embeddings import switch

    switch(model)


@embeddings.command("status")
def embeddings_status() -> None:
    """Show the model in use, the one being moved to, and how many vectors there are of each."""
    from recollect.doors.cli.operating.embeddings import status

    status()


@cli.command()
@click.option("--days", type=int, default=7, show_default=True, help="How many days, today included.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def usage(days: int, as_json: bool) -> None:
    """Show what was asked of LLM providers, by day, feature and model, and what is left of today's budget."""
    from recollect.doors.cli.operating.usage import run

    run(days, as_json)


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
    from recollect.doors.cli.operating.bench import run

    run(corpus, questions, out, namespace)


@cli.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def show_status(as_json: bool) -> None:
    """Show sizes, rates, what the indexer has to do, models and budget. Exits with 1 if something needs attention."""
    from recollect.doors.cli.operating.status import run

    sys.exit(run(as_json))


@cli.command()
def doctor() -> None:
    """Say in plain words what works, what is missing and how to fix it. Exits with 1 if something needed is missing."""
    from recollect.doors.cli.operating.doctor import run

    sys.exit(run())


@cli.command()
def migrate() -> None:
    """Bring the database to this version's schema. Starting Recollect does the same by itself."""
    from recollect.doors.cli.operating.migrate import run

    run()


@cli.command()
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path), default="-")
@click.option("--namespace", help="Whose memory to write out.  [default: default, or RECOLLECT_NAMESPACE]")
@click.option("--user", help="Only what belongs to this user.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def export(file: Path, namespace: str | None, user: str | None, force: bool) -> None:
    """Write a namespace, or one user of it, to FILE or standard output as JSON Lines.

    The same state gives the same bytes. Keys, usage and what can be made anew from the rest are left out.
    """
    from recollect.doors.cli.memories import export

    export.run(file, namespace, user, force)


@cli.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--namespace", help="Where to put it.  [default: where the export came from, or RECOLLECT_NAMESPACE]")
@click.option("--from", "origin", type=click.Choice(["memory-json", "mem0"]), help="The program that wrote FILE.")
@click.option("--user", help="With --from mem0: whose memories are that name nobody.")
def import_(file: Path, namespace: str | None, origin: str | None, user: str | None) -> None:
    """Read FILE, which `recollect export` wrote, with the ids it has. What is there already stays as it is.

    Stopped or killed, the same command goes on. memory-json is the knowledge graph of the MCP reference server, mem0
    what mem0 exports. Exits with 1 if a record was refused.
    """
    from recollect.doors.cli.memories import imports

    if imports.run(file, namespace, origin, user):
        sys.exit(EXIT_FAILED)


@cli.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def backup(file: Path, force: bool) -> None:
    """Write all of the database, every namespace and the hashes of keys, to FILE. Servers may go on meanwhile."""
    from recollect.doors.cli.operating import backup

    backup.back_up(file, force)


@cli.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def restore(file: Path) -> None:
    """Fill an empty database from FILE, which `recollect backup` wrote: all of it, or nothing."""
    from recollect.doors.cli.operating import backup

    backup.restore(file)


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
    except BrokenPipeError:
        # Whoever read the output has left, as `head` does; what is still buffered must not fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except RecollectError as problem:
        from recollect.doors.cli.printing import echo

        echo(f"recollect: {problem}", err=True)
        sys.exit(EXIT_USAGE if isinstance(problem, Invalid) else EXIT_FAILED)
