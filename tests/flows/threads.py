"""A thread of an agent with a checkpoint, a value and a write, for tests that look at every table."""

from recollect.engine import Engine
from recollect.memory.checkpoints import NewCheckpoint, Packed, Place, TaskWrites


async def put_thread(engine: Engine, namespace: str, thread_id: str, user_id: str, note: str) -> None:
    """The note is in every row of it that has words."""
    place = Place(thread_id, "", "1")
    value = Packed("bytes", note.encode())
    await engine.checkpoint_store.put(
        namespace, NewCheckpoint(place, None, value, {note: "1"}, {"note": note}, {note: value}, user_id)
    )
    written = TaskWrites(place, "task", "", [(0, note, value)])
    await engine.checkpoint_store.put_writes(namespace, written, replace=False)
