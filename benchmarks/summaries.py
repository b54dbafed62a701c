"""What the extractive summary keeps of real conversations, and how short it is.

    python -m benchmarks.summaries CORPUS.jsonl[.gz] ...

A corpus has one message a line: an object with the texts `conversation`, `speaker` and `text`, in the order said. Each
conversation goes through a window with the default threshold, as a client that asks for its context after every message
would see it; kept is the share of distinct names, numbers and dates that the summary still holds. They are found by
expressions of this benchmark, not by those of the summary.
"""

import argparse
import gzip
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import NamedTuple
from uuid import uuid4

from benchmarks.report import Report
from recollect.flows.short_term.context_window import budget, to_compact
from recollect.flows.short_term.summaries import said_by
from recollect.language.summary import summarise
from recollect.memory.windows import WindowMessage
from recollect.settings import Settings

MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
DAYS = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
FACTS = re.compile(
    rf"\b(?:{MONTHS}|{DAYS})\b|\d+(?:[.,:/-]\d+)*|(?<=[a-z] )[A-Z][A-Za-z]+|(?<=[a-z], )[A-Z][A-Za-z]+"
    r"|(?i:\b(?:yesterday|today|tomorrow|tonight|last (?:week|month|year|night)|next (?:week|month|year))\b)"
)
START = datetime(2024, 1, 1, tzinfo=UTC)
THRESHOLD = Settings.model_fields["stm_max_tokens"].default


class Compaction(NamedTuple):
    """One summary: what it kept of the messages it replaced, of all that was said before, its length and time."""

    kept: float
    kept_of_all: float
    length: float
    milliseconds: float


def conversations(corpus: Path) -> list[list[WindowMessage]]:
    found: dict[str, list[WindowMessage]] = defaultdict(list)
    with gzip.open(corpus, "rt") if corpus.suffix == ".gz" else corpus.open() as lines:
        for row in map(json.loads, lines):
            found[row["conversation"]].append(WindowMessage.of(uuid4(), row["speaker"], row["text"], None, START))
    return list(found.values())


def compactions(messages: Sequence[WindowMessage], again: bool) -> Iterator[Compaction]:
    """Each time the window is over its threshold; `again` says whether a summary is a part of the next one."""
    window: list[WindowMessage] = []
    gone: list[str] = []
    for message in messages:
        window.append(message)
        if part := to_compact(window, THRESHOLD):
            started = time.perf_counter()
            text = summarise([line for m in part for line in said_by(m)], budget(part, window[len(part) :], THRESHOLD))
            milliseconds = (time.perf_counter() - started) * 1000
            summary = WindowMessage.of(uuid4(), "summary", text, None, START, compacted=True)
            gone += [m.content for m in part if not m.compacted]
            length = summary.tokens / sum(m.tokens for m in part)
            yield Compaction(share([m.content for m in part], text), share(gone, text), length, milliseconds)
            window = ([summary] if again else []) + window[len(part) :]


def share(texts: Sequence[str], summary: str) -> float:
    wanted = {fact.lower() for text in texts for fact in FACTS.findall(text)}
    held = summary.lower()
    return sum(bool(re.search(rf"\b{re.escape(fact)}\b", held)) for fact in wanted) / len(wanted) if wanted else 1.0


def measure(report: Report, corpus: Path) -> None:
    name = corpus.name.split(".")[0]
    found = conversations(corpus)
    first = [one for messages in found for one in compactions(messages, again=False)]
    again = [one for messages in found for one in compactions(messages, again=True)]
    worst = sorted(one.kept for one in first)[len(first) // 10]
    report.add(
        f"{name}: names, numbers and dates kept in {len(first)} summaries",
        f"{mean(one.kept for one in first):.1%} on average, {worst:.1%} or more in nine of ten",
        ">= 90 %",
    )
    report.add(f"{name}: length of the summary over what it stands for", f"{mean(one.length for one in first):.2f}")
    report.add(
        f"{name}: summary upon summary, kept of the part / of everything before",
        f"{mean(one.kept for one in again):.1%} / {mean(one.kept_of_all for one in again):.1%} ({len(again)} times)",
    )
    report.add(f"{name}: time", f"{mean(one.milliseconds for one in first):.0f} ms a summary")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.summaries", description=__doc__)
    parser.add_argument("corpora", nargs="+", type=Path, metavar="CORPUS")
    figures = Report()
    for path in parser.parse_args().corpora:
        measure(figures, path)
    print(figures.table())
