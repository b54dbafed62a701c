"""`recollect remember` and `recollect recall`: store a memory, and find the memories that answer a question."""

import re
import shutil
import textwrap
from typing import Any

from recollect import checks, trust
from recollect.doors.cli.durations import UNITS, seconds
from recollect.doors.cli.one_command import command, opened_engine
from recollect.doors.cli.printing import Styled, echo, embed_if_short, one_line, print_json, shortened
from recollect.doors.memories import DEFAULT_CATEGORY
from recollect.doors.recalls import Asked, Recalled, floor_of_text, metadata_of_text, moment
from recollect.flows.long_term.memory_requests import Options
from recollect.flows.search.recollection import Memory, Recollection
from recollect.language.words import is_spaceless
from recollect.memory.memories import MemoryScope
from recollect.storage.opening import place

MAX_SHOWN_CHARACTERS = 300
MAX_SHOWN_REPEATS = 5
TIMES = ("valid_from", "valid_until", "expires_at")

KNOWN_ALREADY = "Already stored: nothing was added."


@command
async def remember(text: str, user: str | None, *, category: str = DEFAULT_CATEGORY, **options: Any) -> None:
    """Store one text: for a user as a long-term memory, otherwise as a document."""
    times: dict[str, Any] = {name: moment(options[name], name) for name in TIMES if name in options}
    if "expires_in" in options:
        times["expires_in"] = seconds(options["expires_in"], "--expires-in", {"": 1, **UNITS})
    checks.text(text, "text")
    async with opened_engine() as engine:
        namespace = engine.settings.namespace
        degraded: str | None = None
        if user is None:
            document = await engine.remember.text(namespace, text)
            stored_id, known = document.id, document.what == "existing"
        else:
            said = Options(**options | times)
            added = await engine.memories.add(namespace, text, category, MemoryScope(user_id=user), options=said)
            stored_id, known, degraded = added.memory.id, added.what == "existing", added.degraded
            for superseded in added.superseded:
                echo(f"Superseded: {superseded}", err=True)
        if known:
            echo(KNOWN_ALREADY, err=True)
        if degraded is not None:
            echo(degraded, err=True)
        else:
            await embed_if_short(engine.indexer, namespace)
    echo(stored_id)


@command
async def recall(
    question: str, *, as_json: bool, explain: bool, metadata: str | None, min_relevance: str | None, **filters: Any
) -> None:
    """Print what was recalled. An option that was not given is no filter."""
    given = {name: value for name, value in filters.items() if value not in (None, ())}
    async with opened_engine(will_search=True) as engine:
        own = engine.settings.namespace
        asked = Asked(
            query=question,
            metadata=None if metadata is None else metadata_of_text(metadata),
            min_relevance=floor_of_text(min_relevance),
            explain=explain or not as_json,
            **given,
        )
        found = await asked.recall(engine, own)
        # Other namespaces that have nothing are refused.
        is_empty = not found.memories and await engine.grants.has_nothing(own)
    empty = None
    if is_empty and set(given.get("namespaces", (own,))) == {own}:
        empty = f"Nothing to recall is stored in namespace {own} of {place(engine.settings)} yet."
    if not as_json:
        _print_table(found, explain, empty, floored=min_relevance is not None)
        return
    if empty is not None:
        echo(empty, err=True)
    unasked = {"memories": {"__all__": {"explanation"}}}
    print_json(Recalled.of(found).model_dump(mode="json", exclude=None if explain else unasked))


def _print_table(found: Recollection, explain: bool, empty: str | None, *, floored: bool) -> None:
    width = max(shutil.get_terminal_size().columns - 6, 20)
    for rank, memory in enumerate(found.memories, 1):
        said_by = one_line(memory.speaker or memory.role or memory.kind)
        figures = f"{memory.score:5.2f}  {memory.relevance:4.0%}"
        where = "" if memory.namespace is None else f"  in {memory.namespace}"
        head = f"{rank:>3}  {figures}  {memory.at:%Y-%m-%d %H:%M}  {said_by}  {memory.kind}:{memory.id}{where}"
        echo(Styled(head + _trust(memory, said_by, explain), dim=True))
        for line in textwrap.wrap(shortened(memory.text, MAX_SHOWN_CHARACTERS), width) or [""]:
            echo("     ", *_highlighted(line, memory))
        if memory.repeats:
            shown = ", ".join(f"{memory.kind}:{repeat}" for repeat in memory.repeats[:MAX_SHOWN_REPEATS])
            more = len(memory.repeats) - MAX_SHOWN_REPEATS
            echo(Styled(f"     Duplicates: {shown}" + (f" and {more} more" if more > 0 else ""), dim=True))
        if explain and (explanation := memory.explanation) is not None:
            values = explanation.parts._asdict()
            parts = "  ".join(f"{name} {value:.2f}" for name, value in values.items() if value)
            by_words, by_meaning = explanation.rank_by_words or "-", explanation.rank_by_meaning or "-"
            echo(Styled(f"     {parts}  | keyword rank {by_words}, semantic rank {by_meaning}", dim=True))
    if empty is not None:
        echo(empty)
    elif not found.memories:
        echo("Nothing is relevant enough: omit --min-relevance to see all results." if floored else "Nothing found.")
    elif not found.answered:
        echo("Nothing found is likely to answer the question.")
    if found.pending:
        echo(f"{found.pending} passage(s) not embedded yet: run `recollect index --wait`.")
    if found.degraded is not None:
        echo(found.degraded)


def _trust(memory: Memory, said_by: str, explain: bool) -> str:
    """The class of trust; without --explain only one below `user` that the line does not say already."""
    is_told = memory.trust in (trust.OPERATOR, trust.USER, said_by)
    return f"  trust {memory.trust}" if explain or not is_told else ""


def _highlighted(line: str, memory: Memory) -> list[str | Styled]:
    """The words that the question asks for, in bold."""
    cited = set(memory.explanation.cited_words if memory.explanation else ())
    if not cited:
        return [line]
    # The longest first: one word may be the beginning of another.
    longest_first = sorted(cited, key=len, reverse=True)
    # Where words have spaces between them, none is a part of another.
    words = "|".join(
        re.escape(word) if is_spaceless(word) else rf"(?<!\w){re.escape(word)}(?!\w)" for word in longest_first
    )
    pieces = re.split(f"({words})", line)
    return [Styled(piece, bold=True) if place % 2 else piece for place, piece in enumerate(pieces)]
