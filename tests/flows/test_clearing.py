"""Clearing: all memories of a scope go, with their passages and past texts, and no other ones."""

from typing import Literal

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.long_term import clearing
from recollect.flows.long_term.memory_requests import Change, Options
from recollect.memory.memories import MemoryScope
from tests.flows.test_memories import ANN, add, listed, rows
from tests.memory.test_passages import counts


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


async def test_all_memories_of_a_scope_go_and_no_other(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clearing, "CLEARED_AT_ONCE", 2)  # several transactions for a few memories
    old = await add(engine, namespace, "Ann lives in Rome.")
    await engine.memories.add(namespace, "Ann lives in Lyon.", "fact", ANN, options=Options(supersedes=[str(old.id)]))
    told = await add(engine, namespace, "Ann has a cat.", MemoryScope("ann", "vet"))
    await engine.memories.update(namespace, str(told.id), Change("Ann has two cats."))
    await add(engine, namespace, "Ann sings.", MemoryScope("ann", None, "choir"))
    await add(engine, namespace, "Bob sings.", MemoryScope("bob", "vet"))
    assert await engine.clearing.clear(namespace, MemoryScope("ann", "vet")) == 1
    assert await engine.clearing.clear(namespace, ANN) == 3
    assert await listed(engine, namespace) == ["Bob sings."]
    assert (await counts(engine, namespace))["passages"] == 1
    history = await engine.memories.history(namespace, str(told.id))
    assert [(each.event, each.old_memory, each.new_memory) for each in history] == [
        ("create", None, None),
        ("update", None, None),
        ("delete", None, None),
    ]
    changes = await engine.feed.page(namespace)
    assert [each.change.event for each in changes.entries].count("delete") == 4


async def test_everybody_must_be_asked_for(engine: Engine, namespace: str) -> None:
    await add(engine, namespace, "Ann sings.")
    with pytest.raises(Invalid, match="At least one of"):
        await engine.clearing.clear(namespace, MemoryScope())
    assert await rows(engine, namespace) == 1
    assert await engine.clearing.clear(namespace, MemoryScope(), everybody=True) == 1
    assert await rows(engine, namespace) == 0
