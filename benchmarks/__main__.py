"""`make bench`: every benchmark, each against a yardstick of the same run, on a database of its own."""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks import (
    agent,
    console,
    fairness,
    graph,
    hybrid,
    large_bodies,
    mcp,
    namespaces,
    page,
    recall,
    rest,
    spine,
    startup,
    summaries,
)
from benchmarks.report import Report
from benchmarks.sizes import QUICK
from recollect import Settings
from recollect.storage import migrate
from recollect.storage.opening import connected

Benchmark = Callable[[Report, Path], Awaitable[None]]

SUMMARIES = "summaries"
YARDSTICKS = "yardsticks"
FITTING = ("ranking", "relevance")
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"

# Conversations that summaries are measured on: files, separated as in PATH. They are not ours to give away.
CORPORA = "RECOLLECT_BENCH_CORPORA"


def benchmarks(corpora: Sequence[Path]) -> dict[str, Benchmark]:
    """Every part by its name, in the order of the page."""

    async def on_corpora(report: Report, home: Path) -> None:
        print(SUMMARIES)
        for corpus in corpora:
            summaries.measure(report, corpus)

    return {
        "startup": startup.run,
        "agent": agent.run,
        "spine": spine.run,
        "recall": recall.run,
        "graph": graph.run,
        "hybrid": hybrid.run,
        "mcp": mcp.run,
        "rest": rest.run,
        "console": console.run,
        "fairness": fairness.run,
        "large_bodies": large_bodies.run,
        "namespaces": namespaces.run,
        SUMMARIES: on_corpora,
    }


async def main(names: Sequence[str], parts: dict[str, Benchmark], out: Path) -> None:
    """Each part is on the page as soon as it is measured: a later one that fails takes nothing away."""
    of = await this_machine()
    print(of)
    table = Report()
    for name in names:
        report = Report()
        async with new_home() as home:
            await parts[name](report, home)
        page.update(out, of, name, report, list(dict.fromkeys([*parts, YARDSTICKS])))
        table.rows += report.rows
    print(table.table())
    print(f"\nWritten to {out}")


def compared(arguments: Sequence[str]) -> tuple[Benchmark, Path]:
    """The part that needs a conversation, and what else `python -m benchmarks yardsticks` is given."""
    from benchmarks.yardsticks import comparison, conversation

    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {YARDSTICKS}", description=comparison.__doc__)
    parser.add_argument("corpus", type=Path, nargs="?", help="turns, as `recollect bench retrieval` reads them")
    parser.add_argument("questions", type=Path, nargs="?", help="questions with gold_turns")
    parser.add_argument("--conversation", help="the one that is stored (default: the first of the corpus)")
    parser.add_argument("--out", type=Path, default=PAGE, help="page to write (default: docs/benchmarks.md)")
    given = parser.parse_args(arguments)
    if given.questions is None and (given.corpus is not None or not os.environ.get(QUICK)):
        parser.error("give a file of turns and one of questions")
    if given.corpus is None:
        talk = conversation.invented()
    else:
        talk = conversation.read(given.corpus, given.questions, given.conversation)
    if not talk.turns or not talk.questions:
        parser.error(f"there are no turns, or no questions with gold_turns, of the conversation {talk.name}")
    return lambda report, home: comparison.run(report, home, talk), given.out


async def this_machine() -> str:
    """Described by itself, and by the server that it runs."""
    async with new_home() as home, connected(Settings(data_dir=home)) as database:
        versions = await migrate.prepare(database)
    return page.machine(versions.postgres, versions.pgvector)


@asynccontextmanager
async def new_home() -> AsyncIterator[Path]:
    """A place for a database of a part's own."""
    home = Path(tempfile.mkdtemp(prefix="recollect-bench-"))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def given_corpora() -> list[Path]:
    return [Path(name) for name in os.environ.get(CORPORA, "").split(os.pathsep) if name]


if __name__ == "__main__":
    if sys.argv[1:2] == [YARDSTICKS]:
        comparing, page_to_write = compared(sys.argv[2:])
        asyncio.run(main([YARDSTICKS], benchmarks([]) | {YARDSTICKS: comparing}, page_to_write))
        sys.exit()
    if len(sys.argv) > 1 and sys.argv[1] in FITTING:
        from benchmarks.fitting import command

        command.run(sys.argv[1], sys.argv[2:])
        sys.exit()
    every = benchmarks(given_corpora())
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which of: {', '.join(every)} (default: all)")
    parser.add_argument("--out", type=Path, default=PAGE, help="page to write (default: docs/benchmarks.md)")
    given = parser.parse_args()
    if unknown := set(given.names) - every.keys():
        parser.error(f"unknown benchmark: {', '.join(sorted(unknown))}")
    chosen = given.names or list(every)
    if SUMMARIES in chosen and not given_corpora():
        if given.names:
            parser.error(f"{SUMMARIES} needs conversations: set {CORPORA} to files as benchmarks/summaries.py says")
        print(f"Without {CORPORA}, {SUMMARIES} are not measured.")
        chosen.remove(SUMMARIES)
    asyncio.run(main(chosen, every, given.out))
