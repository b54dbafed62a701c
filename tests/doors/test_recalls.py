"""The answer of a recall, as doors show it."""

import pytest

from recollect.doors.recalls import Asked, Recalled
from recollect.engine import Engine


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
@pytest.mark.parametrize("metadata", ['["a", 1]', "5", '"x"'])
async def test_metadata_that_is_no_object_is_shown_as_one(engine: Engine, namespace: str, metadata: str) -> None:
    created = await engine.conversations.create(namespace, "ann", None)
    await engine.conversations.record(namespace, created.id, "Where are the bees?", "Behind the barn.", metadata)
    found = await Asked(query="bees").recall(engine, namespace)
    (said, *_) = Recalled.of(found).memories
    assert said.metadata == {"value": found.memories[0].metadata}
