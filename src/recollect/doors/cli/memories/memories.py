"""`recollect memories`: shows long-term memories and their history, restores superseded ones, and deletes."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from recollect.doors.cli.one_command import with_engine
from recollect.doors.cli.printing import Styled, echo, one_line, print_json, shortened
from recollect.doors.memories import MemoryEvent, MemoryRecord
from recollect.doors.recalls import moment
from recollect.engine import Engine
from recollect.flows.long_term.memory_requests import Chosen
from recollect.flows.long_term.memory_results import Page
from recollect.memory.memories import MemoryScope

MAX_SHOWN_CHARACTERS = 200

# By what a memory was superseded, why, and which language model had a part in it.
_REASONS = {"superseded_by": "by", "because": "because of:", "model": "model:"}


def show_list(
    *,
    user: str | None,
    agent: str | None,
    session: str | None,
    key: str | None,
    pinned: bool,
    categories: Sequence[str],
    as_of: str | None,
    valid_at: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Print the newest memories of a scope."""
    chosen = Chosen(
        categories or None,
        key=key,
        pinned=pinned or None,
        as_of=moment(as_of, "as_of"),
        valid_at=moment(valid_at, "valid_at"),
    )
    scope = MemoryScope(user, agent, session)

    async def page(engine: Engine) -> Page:
        return await engine.memories.newest(engine.settings.namespace, scope, limit, chosen=chosen)

    found = list(map(MemoryRecord.of, with_engine(page).memories))
    if as_json:
        print_json(list(map(_dumped, found)))
        return
    for memory in found:
        _print_head(memory)
        echo(f"     {shortened(memory.text, MAX_SHOWN_CHARACTERS)}")
    if not found:
        echo("No memories found.", err=True)


def show(memory_id: str, as_of: str | None, as_json: bool) -> None:
    """Print one memory with all its fields."""
    then = moment(as_of, "as_of")
    found = with_engine(lambda engine: engine.memories.get(engine.settings.namespace, memory_id, then))
    memory = MemoryRecord.of(found)
    if as_json:
        print_json(_dumped(memory))
        return
    _print_head(memory)
    echo(memory.text)
    for name, value in _dumped(memory).items():
        if name not in ("id", "text", "category", "created_at", "key", "pinned"):
            echo(Styled(f"{name}: ", dim=True), one_line(str(value)))


def history(memory_id: str, as_json: bool) -> None:
    """Print what happened to a memory."""
    found = with_engine(lambda engine: engine.memories.history(engine.settings.namespace, memory_id))
    events = list(map(MemoryEvent.of, found))
    if as_json:
        print_json(list(map(_dumped, events)))
        return
    for event in events:
        detail = event.detail or {}
        told = [f"{words} {detail[name]}" for name, words in _REASONS.items() if name in detail]
        reasons = [Styled(f"  {one_line(each)}", dim=True) for each in told]
        echo(Styled(f"{event.at:%Y-%m-%d %H:%M:%S}  {event.event}", dim=True), *reasons)
        for sign, text in (("-", event.old_text), ("+", event.new_text)):
            if text is not None:
                echo(f"   {sign} {shortened(text, MAX_SHOWN_CHARACTERS)}")
        if said := (event.detail or {}).get("said"):
            echo(Styled(f"     condensed from: {shortened(str(said), MAX_SHOWN_CHARACTERS)}", dim=True))


def undo(memory_id: str) -> None:
    """Bring a superseded memory back."""
    back = with_engine(lambda engine: engine.memories.undo(engine.settings.namespace, memory_id))
    echo(f"Restored: {shortened(back.memory.text, MAX_SHOWN_CHARACTERS)}")
    if back.degraded is not None:
        echo(back.degraded, err=True)


def delete(memory_id: str, restore: bool) -> None:
    """Delete a memory, and say what became of those that it had superseded."""
    deleted = with_engine(lambda engine: engine.memories.delete(engine.settings.namespace, memory_id, restore=restore))
    echo(f"Deleted: {deleted.id}")
    for restored in deleted.restored:
        echo(f"Restored: {restored}")
    for left in deleted.superseded:
        echo(f"Still superseded: {left}. `recollect memories undo {left}` restores it.")


def _dumped(record: BaseModel) -> dict[str, Any]:
    return record.model_dump(mode="json")


def _print_head(memory: MemoryRecord) -> None:
    marks = ["pinned"] * memory.pinned + ([] if memory.key is None else [f"key: {one_line(memory.key)}"])
    told = "  ".join([str(memory.id), f"{memory.created_at:%Y-%m-%d %H:%M}", memory.category, *marks])
    echo(Styled(told, dim=True))
