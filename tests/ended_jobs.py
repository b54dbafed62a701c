"""Jobs of tests: files to import, and the wait for the end."""

import asyncio
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any
from uuid import UUID

from recollect.engine import Engine
from recollect.flows.jobs.jobs import Progress
from recollect.memory.accounts.jobs import Job
from tests.waiting import DEADLINE_SECONDS


async def ended(engine: Engine, namespace: str, job_id: UUID | str) -> Job:
    """The job once it has ended."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while (job := await engine.jobs.job(namespace, str(job_id))).ended_at is None:
            pass
    return job


def uploaded(name: str, content: bytes) -> Path:
    """A file as an upload leaves it: in a folder of its own."""
    path = Path(tempfile.mkdtemp(prefix="recollect-test-upload-")) / name
    path.write_bytes(content)
    return path


def notes(**texts: str) -> Path:
    """An archive of Markdown notes, with a file that is none."""
    path = uploaded("notes.zip", b"")
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in texts.items():
            archive.writestr(f"{name}.md", text)
        archive.writestr("photo.jpg", "no note")
    return path


async def exported(engine: Engine, namespace: str, *more: object) -> bytes:
    """An export as a file, with other lines before its end."""
    lines = [line async for line in engine.exporting.lines(namespace)]
    return "\n".join([*lines[:-1], *map(json.dumps, more), lines[-1]]).encode()


class Lasting:
    """Work that goes on until it is cancelled."""

    def __init__(self) -> None:
        self.cancelled = asyncio.Event()

    async def __call__(self, progress: Progress) -> dict[str, Any]:
        progress.tell(3, 7)
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        return {}
