"""Replaces the tools on a folder by ours; the folder that the tests look into is kept the same as the store."""

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from anyio import Path as AsyncPath

from recollect.adapters.anthropic import AsyncRecollectMemoryTool, RecollectMemoryTool
from recollect.adapters.connection import Connection

MEMORIES = "/v1/memory_stores/{}/memories"

# One engine for all tests; each has a store of its own, called as its folder.
RECOLLECT = Connection()


class Mirror:
    """A folder and a store: what a test put into the folder is stored, and after a command it shows the store."""

    def __init__(self, base_path: str) -> None:
        self.root = Path(base_path) / "memories"
        self.root.mkdir(parents=True)
        self._store = RECOLLECT.call("POST", "/v1/memory_stores", json={"name": base_path})["id"]

    def to_store(self) -> None:
        stored = self._stored()
        for file in self.root.rglob("*"):
            path = f"/{file.relative_to(self.root)}"
            if file.is_file() and path not in stored:
                body = {"path": path, "content": file.read_bytes().decode()}
                RECOLLECT.call("POST", MEMORIES, self._store, json=body)

    def from_store(self) -> None:
        shutil.rmtree(self.root)
        self.root.mkdir()
        for path, content in self._stored().items():
            file = self.root / path[1:]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode())

    def _stored(self) -> dict[str, str]:
        found = RECOLLECT.call("GET", MEMORIES, self._store, params={"view": "full"})
        assert found["next_page"] is None
        return {memory["path"]: memory["content"] for memory in found["data"]}


class Tool(RecollectMemoryTool):
    """Ours, with the two paths that the SDK's tool has."""

    def __init__(self, base_path: str) -> None:
        super().__init__(store=base_path, connection=RECOLLECT)
        self.mirror = Mirror(base_path)
        self.base_path, self.memory_root = Path(base_path), self.mirror.root

    def _run(self, steps: Generator) -> str:  # type: ignore[type-arg]
        self.mirror.to_store()
        try:
            return super()._run(steps)
        finally:
            self.mirror.from_store()


class AsyncTool(AsyncRecollectMemoryTool):
    """The same for the asynchronous tests."""

    def __init__(self, base_path: str) -> None:
        super().__init__(store=base_path, connection=RECOLLECT)
        self.mirror = Mirror(base_path)
        self.base_path, self.memory_root = AsyncPath(base_path), AsyncPath(self.mirror.root)

    async def _run(self, steps: Generator) -> str:  # type: ignore[type-arg]
        self.mirror.to_store()
        try:
            return await super()._run(steps)
        finally:
            self.mirror.from_store()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What the fixtures of the tests build."""
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        module.BetaLocalFilesystemMemoryTool = Tool
        module.BetaAsyncLocalFilesystemMemoryTool = AsyncTool


def pytest_unconfigure() -> None:
    RECOLLECT.close()
