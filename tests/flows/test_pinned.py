"""Pinned memories: always in the context of their scope, within a budget of tokens."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.long_term import pinned
from recollect.flows.long_term.memory_requests import Change, Options
from recollect.language.tokens import estimate_tokens
from recollect.memory.memories import MemoryScope

ANN = MemoryScope(user_id="ann")


async def pin(engine: Engine, namespace: str, text: str, scope: MemoryScope = ANN, **options: Any) -> UUID:
    added = await engine.memories.add(namespace, text, "fact", scope, options=Options(pinned=True, **options))
    return added.memory.id


async def texts(engine: Engine, namespace: str, scope: MemoryScope = ANN, **options: Any) -> list[str]:
    return [memory.text for memory in (await engine.pinned.of(namespace, scope, **options)).memories]


async def test_pinned_memories_in_force_come_newest_first(engine: Engine, namespace: str) -> None:
    tea = await pin(engine, namespace, "Ann drinks tea.", key="drink")
    await pin(engine, namespace, "Ann is allergic to nuts.")
    await engine.memories.add(namespace, "Ann has a cat.", "fact", ANN)
    await pin(engine, namespace, "Ben drinks milk.", MemoryScope(user_id="ben"))
    assert await texts(engine, namespace) == ["Ann is allergic to nuts.", "Ann drinks tea."]
    then = (await engine.memories.get(namespace, str(tea))).since
    coffee = await pin(engine, namespace, "Ann drinks coffee.", key="drink")
    assert await texts(engine, namespace) == ["Ann drinks coffee.", "Ann is allergic to nuts."]
    assert await texts(engine, namespace, as_of=then) == ["Ann drinks tea."]
    await engine.memories.update(namespace, str(coffee), Change(details={"pinned": False}))
    assert await texts(engine, namespace) == ["Ann is allergic to nuts."]


async def test_what_does_not_fit_is_passed_over_and_counted(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned, "PAGE", 2)
    for text in ("Ann is tall.", "Ann rows.", "Ann owns " + "very " * 50 + "many books.", "Ann sings."):
        await pin(engine, namespace, text)
    budget = sum(map(estimate_tokens, ("Ann sings.", "Ann rows.")))
    found = await engine.pinned.of(namespace, ANN, budget)
    assert [memory.text for memory in found.memories] == ["Ann sings.", "Ann rows."]
    assert (found.tokens, found.omitted) == (budget, 2)
    assert (await engine.pinned.of(namespace, ANN, 1)).omitted == 4
    assert (await engine.pinned.of(namespace, ANN)).omitted == 0


async def test_a_default_budget_bounds_what_a_scope_can_pin(engine: Engine, namespace: str) -> None:
    for number in range(30):
        await pin(engine, namespace, f"Rule {number}: " + "keep it short and simple " * 10)
    found = await engine.pinned.of(namespace, ANN)
    assert found.memories
    assert found.omitted == 30 - len(found.memories)
    assert sum(estimate_tokens(memory.text) for memory in found.memories) <= pinned.PINNED_TOKENS


async def test_what_is_pinned_for_a_user_is_in_every_session_and_what_is_pinned_for_one_only_there(
    engine: Engine, namespace: str
) -> None:
    await pin(engine, namespace, "Ann is left-handed.")
    await pin(engine, namespace, "Ann asks about Rome.", MemoryScope("ann", None, "rome"))
    await pin(engine, namespace, "Ann wants tables.", MemoryScope("ann", "reporter", None))
    await pin(engine, namespace, "Answer in French.", MemoryScope(None, "reporter", None))
    rome = MemoryScope("ann", None, "rome")
    assert await texts(engine, namespace, rome) == ["Ann wants tables.", "Ann asks about Rome.", "Ann is left-handed."]
    assert await texts(engine, namespace, MemoryScope("ann", "cook", "oslo")) == ["Ann is left-handed."]
    await pin(engine, namespace, "This is a quiz.", MemoryScope(None, None, "oslo"))
    assert await texts(engine, namespace, MemoryScope("ann", "reporter", "oslo")) == [
        *("This is a quiz.", "Answer in French.", "Ann wants tables.", "Ann is left-handed.")
    ]
    assert await texts(engine, namespace, MemoryScope("ben", "reporter")) == ["Answer in French."]
    reporter = MemoryScope(agent_id="reporter")
    assert await texts(engine, namespace, reporter) == ["Answer in French.", "Ann wants tables."]
    assert await texts(engine, namespace, MemoryScope(session_id="rome")) == ["Ann asks about Rome."]


async def test_what_is_not_true_now_is_left_out(engine: Engine, namespace: str) -> None:
    soon = datetime.now(UTC) + timedelta(days=1)
    await pin(engine, namespace, "Ann will be in Rome.", valid_from=soon)
    await pin(engine, namespace, "Ann is at home.", valid_until=soon)
    assert await texts(engine, namespace) == ["Ann is at home."]
    assert await texts(engine, namespace, valid_at=soon) == ["Ann will be in Rome."]


async def test_pinned_memories_of_nobody_are_refused(engine: Engine, namespace: str) -> None:
    with pytest.raises(Invalid, match="At least one of user_id, agent_id, or session_id"):
        await engine.pinned.of(namespace, MemoryScope())
    with pytest.raises(Invalid, match="token_budget must be a whole number greater than 0"):
        await engine.pinned.of(namespace, ANN, 0)
    with pytest.raises(Invalid, match="session_id"):
        await engine.pinned.of(namespace, MemoryScope("ann", None, " "))
