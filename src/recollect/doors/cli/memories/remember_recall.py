"""`recollect remember` and `recollect recall`: one memory in, the memories that answer a question out."""

import dataclasses
import re
import shutil
import textwrap
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from recollect import checks
from recollect.doors.cli.one_command import with_engine
from recollect.doors.cli.printing import Styled, echo, embed_if_short, one_line, print_json, shortened
from recollect.engine import Engine
from recollect.flows.search.recall import Memory, Recollection
from recollect.memory.index.search import Scope
from recollect.memory.memories import MemoryScope

MAX_SHOWN_CHARACTERS = 300
MAX_SHOWN_REPEATS = 5

KNOWN_ALREADY = "Already known: nothing was added."


def remember(text: str, user: str | None) -> None:
    """Store one text: for a user as a long-term memory, otherwise as a document."""
    checks.text(text, "text")
    echo(with_engine(lambda engine: _document(engine, text) if user is None else _memory(engine, text, user)))


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
    if as_json:
        print_json(_as_json(found, explain))
    else:
        _print_table(found, explain)


async def _document(engine: Engine, text: str) -> UUID:
    namespace = engine.settings.namespace
    remembered = await engine.remember.text(namespace, text)
    if remembered.what == "existing":
        echo(KNOWN_ALREADY, err=True)
    await embed_if_short(engine.indexer, namespace)
    return remembered.id


async def _memory(engine: Engine, text: str, user: str) -> UUID:
    added = await engine.memories.add(engine.settings.namespace, text, "fact", MemoryScope(user_id=user))
    if added.what == "existing":
        echo(KNOWN_ALREADY, err=True)
    if added.degraded is not None:
        echo(added.degraded, err=True)
    else:
        await embed_if_short(engine.indexer, engine.settings.namespace)
    return added.memory.id


def _as_json(found: Recollection, explain: bool) -> dict[str, Any]:
    document = dataclasses.asdict(found)
    for memory in document["memories"]:
        if not explain:
            del memory["explanation"]
    return document


def _print_table(found: Recollection, explain: bool) -> None:
    width = shutil.get_terminal_size().columns
    for place, memory in enumerate(found.memories, 1):
        said_by = one_line(memory.speaker or memory.role or memory.kind)
        head = f"{place:>3}  {memory.score:5.2f}  {memory.at:%Y-%m-%d %H:%M}  {said_by}  {memory.kind}:{memory.id}"
        echo(Styled(head, dim=True))
        for line in _wrapped(shortened(memory.text, MAX_SHOWN_CHARACTERS), width - 6):
            echo("     ", *_highlighted(line, memory))
        if memory.repeats:
            echo(Styled("     " + _repeats(memory), dim=True))
        if explain and memory.explanation is not None:
            echo(Styled("     " + _explained(memory), dim=True))
    if not found.memories:
        echo("Nothing found.")
    if found.pending:
        echo(f"{found.pending} passage(s) wait to be embedded: run `recollect index --wait`.")
    if found.degraded is not None:
        echo(found.degraded)


def _repeats(memory: Memory) -> str:
    shown = ", ".join(f"{memory.kind}:{repeat}" for repeat in memory.repeats[:MAX_SHOWN_REPEATS])
    more = len(memory.repeats) - MAX_SHOWN_REPEATS
    return f"The same: {shown}" + (f" and {more} more" if more > 0 else "")


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 20)) or [""]


def _highlighted(line: str, memory: Memory) -> list[str | Styled]:
    """Words that the question shares, in bold, matched by the beginning of their stem."""
    matched = memory.explanation.matched_words if memory.explanation else ()
    if not matched:
        return [line]
    words = "|".join(rf"\b{re.escape(word[: max(3, len(word) - 2)])}\w*" for word in matched)
    pieces = re.split(f"({words})", line, flags=re.I)
    return [Styled(piece, bold=True) if place % 2 else piece for place, piece in enumerate(pieces)]


def _explained(memory: Memory) -> str:
    assert memory.explanation is not None
    parts = dataclasses.asdict(memory.explanation.parts)
    shown = "  ".join(f"{name} {value:.2f}" for name, value in parts.items() if value)
    ranks = (memory.explanation.rank_by_words or "-", memory.explanation.rank_by_meaning or "-")
    return f"{shown}  | keyword rank {ranks[0]}, semantic rank {ranks[1]}"
