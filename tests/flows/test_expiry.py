"""Memories that have expired leave the tables without anybody asking."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from recollect.engine import Engine
from recollect.flows.indexing import maintenance
from recollect.flows.long_term.memory_requests import Options
from recollect.memory.memories import MemoryScope
from recollect.settings import Settings


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_server_removes_what_has_expired(
    settings: Settings, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "PERIOD_SECONDS", 0.05)
    engine = await Engine.open(settings)
    try:
        soon = Options(expires_at=datetime.now(UTC) + timedelta(seconds=1))
        added = await engine.memories.add(namespace, "The code is 4711.", "fact", MemoryScope("ann"), options=soon)
        changes = []
        async with asyncio.timeout(60):
            async for page in engine.feed.follow(namespace, 0):
                changes += [(entry.change.event, entry.change.detail) for entry in page.entries]
                if changes[-1][0] == "delete":
                    break
        assert changes == [("add", None), ("delete", {"because": "expired"})]
        history = await engine.memories.history(namespace, str(added.memory.id))
        assert [(entry.event, entry.old_memory, entry.new_memory) for entry in history] == [
            ("create", None, None),
            ("expire", None, None),
        ]
    finally:
        await engine.close()
