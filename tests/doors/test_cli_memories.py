"""`recollect memories`: the list, the history, and undo, as a process of their own."""

import subprocess
from typing import Literal

import pytest

from recollect.engine import Engine
from recollect.flows.long_term.memory_requests import Options
from recollect.memory.memories import MemoryScope
from recollect.tasks import in_thread
from tests.commands import recollect


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


def memories(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return recollect("memories", *arguments, timeout=120)


async def test_a_superseded_memory_is_brought_back_by_a_command(engine: Engine, namespace: str) -> None:
    ann = MemoryScope(user_id="ann")
    old = (await engine.memories.add(namespace, "Ann lives in Berlin.", "fact", ann)).memory
    replacing = Options(supersedes=[str(old.id)])
    await engine.memories.add(namespace, "Ann lives in Lisbon.", "fact", ann, options=replacing)
    undone = await in_thread(memories, "undo", str(old.id))
    assert (undone.returncode, undone.stdout) == (0, "Restored: Ann lives in Berlin.\n")
    listed = (await in_thread(memories, "list", "--user", "ann")).stdout
    assert str(old.id) in listed
    assert "Ann lives in Lisbon." in listed
    history = (await in_thread(memories, "history", str(old.id))).stdout
    assert [word for word in ("create", "supersede", "undo") if word in history] == ["create", "supersede", "undo"]
    refused = await in_thread(memories, "undo", str(old.id))
    assert refused.returncode == 2
    assert refused.stderr == f"recollect: Memory {old.id} is not superseded: there is nothing to undo\n"
