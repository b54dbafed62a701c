"""`recollect memories`: shows long-term memories and their history, and restores superseded ones."""

from recollect.doors.cli.one_command import with_engine
from recollect.doors.cli.printing import Styled, echo, shortened
from recollect.memory.memories import MemoryScope

MAX_SHOWN_CHARACTERS = 200


def show(user: str | None, agent: str | None, session: str | None, limit: int) -> None:
    """Print the newest memories of a scope."""
    scope = MemoryScope(user, agent, session)
    page = with_engine(lambda engine: engine.memories.newest(engine.settings.namespace, scope, limit))
    for memory in page.memories:
        echo(Styled(f"{memory.id}  {memory.created_at:%Y-%m-%d %H:%M}  {memory.category}", dim=True))
        echo(f"     {shortened(memory.text, MAX_SHOWN_CHARACTERS)}")
    if not page.memories:
        echo("No memories found.", err=True)


def history(memory_id: str) -> None:
    """Print what happened to a memory."""
    for entry in with_engine(lambda engine: engine.memories.history(engine.settings.namespace, memory_id)):
        echo(Styled(f"{entry.at:%Y-%m-%d %H:%M:%S}  {entry.event}", dim=True))
        for sign, text in (("-", entry.old_memory), ("+", entry.new_memory)):
            if text is not None:
                echo(f"   {sign} {shortened(text, MAX_SHOWN_CHARACTERS)}")


def undo(memory_id: str) -> None:
    """Bring a superseded memory back."""
    back = with_engine(lambda engine: engine.memories.undo(engine.settings.namespace, memory_id))
    echo(f"Restored: {shortened(back.memory.text, MAX_SHOWN_CHARACTERS)}")
    if back.degraded is not None:
        echo(back.degraded, err=True)
