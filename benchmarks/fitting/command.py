"""The commands `python -m benchmarks ranking` and `python -m benchmarks relevance`."""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fitting import ranking, relevance
from benchmarks.fitting.observations import Source
from recollect.errors import RecollectError

COMMANDS = {"ranking": ranking, "relevance": relevance}


def run(name: str, arguments: Sequence[str]) -> None:
    """Read the arguments and do the work in the memory that the environment names."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=COMMANDS[name].__doc__)
    parser.add_argument("files", type=Path, nargs="+", help="of each set: its turns, then its questions")
    parser.add_argument("--namespace", action="append", help="holds a set or will; once for each set, in their order")
    given = parser.parse_args(arguments)
    corpora, questions = given.files[::2], given.files[1::2]
    if len(corpora) != len(questions):
        parser.error("give for each set a file of turns and one of questions")
    namespaces = given.namespace or [None] * len(corpora)
    if len(namespaces) != len(corpora):
        parser.error("give --namespace once for each set")
    try:
        sources = [Source.of(*each) for each in zip(corpora, questions, namespaces, strict=True)]
        asyncio.run(COMMANDS[name].run(sources))
    except (RecollectError, OSError) as problem:
        parser.exit(1, f"{problem}\n")
