"""Many conversations at once from tasks of two processes: nothing lost, nothing interleaved, no gap."""

import asyncio
import json
import subprocess
import sys
import time

import pytest

from recollect.engine import Engine
from tests.commands import MODULE

CONVERSATIONS = 100
INTERACTIONS = 20
PROCESSES = 2


async def converse(engine: Engine, namespace: str, conversation: str, who: str) -> list[tuple[str, int, float, float]]:
    """Half of a conversation's interactions from concurrent tasks: (said, position, began, acknowledged)."""

    async def interact(number: int) -> tuple[str, int, float, float]:
        said = f"{who}-{number}"
        began = time.monotonic()
        done = await engine.conversations.record(namespace, conversation, said, f"answer to {said}", None)
        return said, done.user_message.position, began, time.monotonic()

    return list(await asyncio.gather(*(interact(n) for n in range(INTERACTIONS // PROCESSES))))


async def converse_with_all(who: str, conversations: list[str]) -> list[list[tuple[str, int, float, float]]]:
    engine = await Engine.open()
    try:
        namespace = engine.settings.namespace
        return await asyncio.gather(*(converse(engine, namespace, c, who) for c in conversations))
    finally:
        await engine.close()


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_one_hundred_conversations_from_two_processes(engine: Engine, namespace: str) -> None:
    created = [await engine.conversations.create(namespace, "user", None) for _ in range(CONVERSATIONS)]
    ids = [conversation.id for conversation in created]
    writers = [
        subprocess.Popen([*MODULE, __name__, f"process{n}", *ids], stdout=subprocess.PIPE, text=True)
        for n in range(PROCESSES)
    ]
    outputs = [await asyncio.to_thread(writer.communicate, timeout=120) for writer in writers]
    reports = [json.loads(printed) for printed, _ in outputs]
    for place, conversation_id in enumerate(ids):
        async with engine.database.reading(namespace) as db:
            messages = await engine.capabilities.log.recent(db, conversation_id, 1000)
        assert [m.position for m in messages] == list(range(2 * INTERACTIONS))
        for said, answered in zip(messages[::2], messages[1::2], strict=True):
            assert (said.role, answered.role) == ("user", "assistant")
            assert answered.content == f"answer to {said.content}"
        acknowledged = [tuple(entry) for report in reports for entry in report[place]]
        assert {(said, position) for said, position, _, _ in acknowledged} == {
            (m.content, m.position) for m in messages[::2]
        }
        assert_order_is_that_of_acknowledgement(acknowledged)


def assert_order_is_that_of_acknowledgement(acknowledged: list[tuple[str, int, float, float]]) -> None:
    """Whoever was acknowledged before another began stands before it; within a process, the order is the same."""
    for said, position, _, ended in acknowledged:
        for other, other_position, began, _ in acknowledged:
            if ended < began:
                assert position < other_position, f"{said} was acknowledged before {other} began"
    for who in {said.split("-")[0] for said, *_ in acknowledged}:
        own = sorted((entry for entry in acknowledged if entry[0].startswith(who)), key=lambda entry: entry[3])
        assert [entry[1] for entry in own] == sorted(entry[1] for entry in own)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(converse_with_all(sys.argv[1], sys.argv[2:]))))
