"""The comparison: each store is given the same conversation and the same questions, one store after the other."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.costs import Server
from benchmarks.report import Report
from benchmarks.sizes import sized
from benchmarks.yardsticks.conversation import Conversation, Turn
from benchmarks.yardsticks.stores import CALLERS, TOP, Opening, Place, Store, available, vacuum
from recollect import Settings
from recollect.doors.cli.operating.bench import Question
from recollect.doors.cli.operating.retrieval_scores import CUTS, score
from recollect.engine import Engine
from recollect.storage import embedded

ROUNDS = sized(3)

# What is measured, how a figure is shown, and whether more is better.
ROWS = (
    (f"frac@{TOP}", "{:.3f}", True),
    (f"turns acknowledged a second, {CALLERS} callers", "{:,.0f}", True),
    (f"seconds from the first write to all searchable, {CALLERS} callers", "{:.2f}", False),
    (f"queries a second, {CALLERS} callers", "{:.1f}", True),
    ("p50 of a query, one caller, ms", "{:.1f}", False),
    ("CPU a query (user and system of the client and of PostgreSQL), one caller, ms", "{:.1f}", False),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one store, in the order of ROWS, and the form of text that they are of."""

    figures: tuple[float, ...]
    form: str


async def run(report: Report, home: Path, talk: Conversation) -> None:
    """Measure every store that is installed; of two forms of text, the better one counts."""
    print(f"yardsticks: {talk.name}, {len(talk.turns)} turns, {len(talk.questions)} questions")
    lease = await asyncio.to_thread(embedded.start, home)
    engine = await Engine.open(Settings(data_dir=home))
    place = Place(engine, lease.superuser.target, home)
    results: dict[str, Measured] = {}
    try:
        assert engine.embedders.local is not None
        await engine.embedders.local.load()
        for name, forms in available().items():
            tried = [await measured(place, opening, form, talk) for form, opening in forms.items()]
            results[name] = max(tried, key=lambda each: each.figures[0])
    finally:
        await engine.close()
        lease.release()
    print(table(results))
    for row, (what, _, more) in enumerate(ROWS):
        report.add(f"{talk.name}: {what}", line(results, row), "more is better" if more else "less is better")


async def measured(place: Place, opening: Opening, form: str, talk: Conversation) -> Measured:
    """Write the conversation and ask its questions."""
    server = await Server.of(place.engine)
    async with opening(place) as store:
        began = time.perf_counter()
        await by_callers(store_session(store, session) for session in talk.sessions())
        acknowledged = time.perf_counter() - began
        await store.searchable()
        searchable = time.perf_counter() - began
        await vacuum(place.superuser)
        quality = await quality_of(store, talk)
        asked = talk.questions * ROUNDS
        began = time.perf_counter()
        await by_callers(store.search(question) for question in asked)
        rate = len(asked) / (time.perf_counter() - began)
        p50, cpu = await one_by_one(server, store, asked)
    return Measured((quality, len(talk.turns) / acknowledged, searchable, rate, p50, cpu), form)


async def store_session(store: Store, session: Iterable[Turn]) -> None:
    """The turns of a session in their order, as they are said."""
    for turn in session:
        await store.write(turn)


async def by_callers(work: Iterable[Awaitable[object]]) -> None:
    """All of it, by so many callers at once."""
    waiting = iter(work)

    async def caller() -> None:
        for one in waiting:
            await one

    await asyncio.gather(*(caller() for _ in range(CALLERS)))


async def quality_of(store: Store, talk: Conversation) -> float:
    """The mean of the fractions, which also warms the store up."""
    scores = [score(None, await store.search(question), question.gold) for question in talk.questions]
    return statistics.fmean(one.fractions[CUTS.index(TOP)] for one in scores)


async def one_by_one(server: Server, store: Store, asked: Sequence[Question]) -> tuple[float, float]:
    """The median time of a query and its mean CPU, in milliseconds."""
    times = []
    cpu = time.process_time() + server.cpu_seconds()
    for question in asked:
        began = time.perf_counter()
        await store.search(question)
        times.append(time.perf_counter() - began)
    cpu = time.process_time() + server.cpu_seconds() - cpu
    return statistics.median(times) * 1000, cpu * 1000 / len(asked)


def table(results: Mapping[str, Measured]) -> str:
    """A column of figures for each store, with ours divided by theirs."""
    (ours, own), *others = results.items()
    heads = ["", ours]
    for name, other in others:
        heads += [f"{name} ({other.form})", f"{ours} / {name}"]
    rows = [heads, ["---"] * len(heads)]
    for place, (what, form, more) in enumerate(ROWS):
        figure = own.figures[place]
        cells = [f"{what} ({'more' if more else 'less'} is better)", form.format(figure)]
        for _, other in others:
            cells += [form.format(other.figures[place]), f"{figure / other.figures[place]:.2f}"]
        rows.append(cells)
    return "\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def line(results: Mapping[str, Measured], place: int) -> str:
    """The same in one cell of the page."""
    form = ROWS[place][1]
    (ours, own), *others = results.items()
    cells = [f"{ours} {form.format(own.figures[place])}"]
    for name, other in others:
        theirs = other.figures[place]
        cells.append(f"{name} {form.format(theirs)} (ours / theirs {own.figures[place] / theirs:.2f})")
    return ", ".join(cells)
