"""When keys were last used, noted in the background: however slow the database is, little waits."""

from typing import Literal

import pytest

from recollect.engine import Engine
from recollect.flows.accounts.key_uses import MAX_WAITING
from recollect.memory.accounts.access import Credential
from recollect.tasks import in_thread
from tests.waiting import wait_until


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


async def test_a_key_waits_once_however_often_it_is_used(engine: Engine, namespace: str) -> None:
    keys = [await engine.access.create_key(namespace) for _ in range(3)]
    async with engine.database.transaction(namespace) as tx:
        for key in keys:
            await engine.capabilities.keys.lock(tx, key.id)
        for _ in range(100):
            for key in keys:
                assert await engine.access.credential(key.secret)
            engine.access.clear_cache()
        assert engine.access.uses.waiting == 3
    await in_thread(wait_until, lambda: engine.access.uses.waiting == 0, "all uses are noted")
    assert all(key.last_used_at for key in await engine.access.keys(namespace))


async def test_no_more_keys_wait_than_a_process_can_bear(engine: Engine, namespace: str) -> None:
    for number in range(2 * MAX_WAITING):
        engine.access.uses.note(Credential(namespace, str(number), None))
    assert engine.access.uses.waiting == MAX_WAITING
