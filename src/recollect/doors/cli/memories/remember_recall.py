"""`recollect remember` and `recollect recall`: store a memory, and find the memories that answer a question."""

import dataclasses
import re
import shutil
import textwrap
from collections.abc import Sequence

from recollect import checks
from recollect.doors.cli.one_command import command, opened_engine, with_engine
from recollect.doors.cli.printing import Styled, echo, embed_if_short, one_line, print_json, shortened
from recollect.flows.search.recall import Memory, Recollection
from recollect.memory.index.search import Scope
from recollect.memory.memories import MemoryScope

MAX_SHOWN_CHARACTERS = 300
MAX_SHOWN_REPEATS = 5

KNOWN_ALREADY = "Already stored: nothing was added."


@command
async def remember(text: str, user: str | None) -> None:
    """Store one text: for a user as a long-term memory, otherwise as a document."""
    checks.text(text, "text")
    async with opened_engine() as engine:
        namespace = engine.settings.namespace
        degraded: str | None = None
        if user is None:
            document = await engine.remember.text(namespace, text)
            stored_id, known = document.id, document.what == "existing"
        else:
            added = await engine.memories.add(namespace, text, "fact", MemoryScope(user_id=user))
            stored_id, known, degraded = added.memory.id, added.what == "existing", added.degraded
        if known:
            echo(KNOWN_ALREADY, err=True)
        if degraded is not None:
            echo(degraded, err=True)
        else:
            await embed_if_short(engine.indexer, namespace)
    echo(stored_id)


def recall(
    question: str,
    *,
    user: str | None,
    session: str | None,
    kinds: Sequence[str],
    top_k: int,
    token_budget: int | None,
    as_json: bool,
    explain: bool,
) -> None:
    """Print what was recalled."""
    scope = Scope(owner=user, session_id=session, kinds=tuple(kinds) or None)
    found = with_engine(
        lambda engine: engine.recall.recall(
            engine.settings.namespace,
            question,
            scope,
            top_k=top_k,
            token_budget=token_budget,
            explain=explain or not as_json,
        ),
        will_search=True,
    )
    if not as_json:
        _print_table(found, explain)
        return
    document = dataclasses.asdict(found)
    for memory in document["memories"]:
        if not explain:
            del memory["explanation"]
    print_json(document)


def _print_table(found: Recollection, explain: bool) -> None:
    width = max(shutil.get_terminal_size().columns - 6, 20)
    for place, memory in enumerate(found.memories, 1):
        said_by = one_line(memory.speaker or memory.role or memory.kind)
        head = f"{place:>3}  {memory.score:5.2f}  {memory.at:%Y-%m-%d %H:%M}  {said_by}  {memory.kind}:{memory.id}"
        echo(Styled(head, dim=True))
        for line in textwrap.wrap(shortened(memory.text, MAX_SHOWN_CHARACTERS), width) or [""]:
            echo("     ", *_highlighted(line, memory))
        if memory.repeats:
            shown = ", ".join(f"{memory.kind}:{repeat}" for repeat in memory.repeats[:MAX_SHOWN_REPEATS])
            more = len(memory.repeats) - MAX_SHOWN_REPEATS
            echo(Styled(f"     Duplicates: {shown}" + (f" and {more} more" if more > 0 else ""), dim=True))
        if explain and (explanation := memory.explanation) is not None:
            values = dataclasses.asdict(explanation.parts)
            parts = "  ".join(f"{name} {value:.2f}" for name, value in values.items() if value)
            by_words, by_meaning = explanation.rank_by_words or "-", explanation.rank_by_meaning or "-"
            echo(Styled(f"     {parts}  | keyword rank {by_words}, semantic rank {by_meaning}", dim=True))
    if not found.memories:
        echo("Nothing found.")
    if found.pending:
        echo(f"{found.pending} passage(s) not embedded yet: run `recollect index --wait`.")
    if found.degraded is not None:
        echo(found.degraded)


def _highlighted(line: str, memory: Memory) -> list[str | Styled]:
    """Words that the question shares, in bold, matched by the beginning of their stem."""
    matched = memory.explanation.matched_words if memory.explanation else ()
    if not matched:
        return [line]
    words = "|".join(rf"\b{re.escape(word[: max(3, len(word) - 2)])}\w*" for word in matched)
    pieces = re.split(f"({words})", line, flags=re.I)
    return [Styled(piece, bold=True) if place % 2 else piece for place, piece in enumerate(pieces)]
