"""Memory stores of a server of one's own through `anthropic.Anthropic`: versions, preconditions, redaction, archive."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import httpx
from anthropic import Anthropic, APIStatusError

URL = os.environ["MEMORY_SERVER"]
client = Anthropic(base_url=URL, api_key="local")
stores = client.beta.memory_stores


def status(call: Callable[[], object]) -> int:
    try:
        call()
    except APIStatusError as problem:
        return problem.status_code
    return 200


store = stores.create(name="Preferences", description="What Clara likes", metadata={"user_id": "clara"})
drink = stores.memories.create(store.id, path="/food/drink.md", content="Clara drinks tea.", view="full")
assert drink.content_sha256 == sha256(b"Clara drinks tea.").hexdigest()
assert status(lambda: stores.memories.create(store.id, path="/food/drink.md", content="x")) == 409
assert status(lambda: stores.memories.create(store.id, path="/food", content="x")) == 409
assert status(lambda: stores.memories.create(store.id, path="/food/../x", content="x")) == 400


def drinks(what: str) -> int:
    seen = {"type": "content_sha256", "content_sha256": drink.content_sha256}
    edit = {"content": f"Clara drinks {what}.", "precondition": seen}
    return status(lambda: stores.memories.update(drink.id, memory_store_id=store.id, **edit))


with ThreadPoolExecutor(4) as threads:
    assert sorted(threads.map(drinks, ("coffee", "juice", "water", "milk"))) == [200, 409, 409, 409]
now = stores.memories.retrieve(drink.id, memory_store_id=store.id)
asked = {"query": "What does she drink?", "user_id": "clara", "kinds": ["file"]}
(found,) = httpx.post(f"{URL}/recall", json=asked).raise_for_status().json()["memories"]
assert (found["text"], found["metadata"]["memory_id"]) == (now.content, drink.id)

stores.memories.create(store.id, path="/home.md", content="Clara lives in Lyon.")
assert [entry.path for entry in stores.memories.list(store.id, depth=1)] == ["/food/", "/home.md"]
assert [entry.path for entry in stores.memories.list(store.id, limit=1)] == ["/food/drink.md", "/home.md"]
versions = list(stores.memory_versions.list(store.id, memory_id=drink.id, view="full", limit=1))
assert [version.operation for version in versions] == ["modified", "created"]
assert versions[1].content == "Clara drinks tea."
assert status(lambda: stores.memory_versions.redact(versions[0].id, memory_store_id=store.id)) == 409
redacted = stores.memory_versions.redact(versions[1].id, memory_store_id=store.id)
assert (redacted.content, redacted.path) == (None, None)
assert redacted.redacted_at is not None

assert (
    status(lambda: stores.memories.delete(drink.id, memory_store_id=store.id, expected_content_sha256="0" * 64)) == 409
)
assert stores.memories.delete(drink.id, memory_store_id=store.id).type == "memory_deleted"
(found,) = httpx.post(f"{URL}/recall", json=asked).raise_for_status().json()["memories"]
assert found["text"] == "Clara lives in Lyon."
assert stores.archive(store.id).archived_at
assert status(lambda: stores.memories.create(store.id, path="/x", content="x")) == 400
assert store.id not in [each.id for each in stores.list()]
assert store.id in [each.id for each in stores.list(include_archived=True)]
assert stores.delete(store.id).type == "memory_store_deleted"
assert status(lambda: stores.retrieve(store.id)) == 404
assert httpx.post(f"{URL}/recall", json=asked).raise_for_status().json()["memories"] == []
