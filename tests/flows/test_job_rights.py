"""Jobs may do what those who started them may, and sign it with their names; exports are an admin's to import."""

import json
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recollect.engine import Engine
from recollect.errors import Conflict, Forbidden, NotFound
from recollect.flows.jobs import jobs as flow
from recollect.flows.jobs.jobs import Progress
from recollect.flows.jobs.long_work import Upload
from recollect.flows.kinds.target import USER, Target
from recollect.memory.memories import MemoryScope
from recollect.origin import Reach, Role, acting
from recollect.settings import Settings
from tests.ended_jobs import Lasting, ended, exported, notes, uploaded
from tests.flows.test_jobs import say
from tests.foreign_exports import MAKERS

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

TOKEN = "ghp_zyxomlurkquvantrelbrindlefexhesperval1"


@contextmanager
def key(namespace: str, role: Role) -> Iterator[None]:
    """A caller over HTTP."""
    with acting("console", f"the {role} key", role, reach=Reach(namespace)):
        yield


@pytest.fixture
async def masking(settings: Settings) -> AsyncIterator[Engine]:
    engine = await Engine.open(settings.model_copy(update={"masking": True}))
    yield engine
    await engine.close()


async def test_a_job_may_do_no_more_than_who_started_it(engine: Engine, namespace: str) -> None:
    async def erases(progress: Progress) -> dict[str, object]:
        return {"rows": (await engine.forget.forget(namespace, Target(USER, "mira"))).rows}

    async def looks_elsewhere(progress: Progress) -> dict[str, object]:
        return {"jobs": len(await engine.jobs.recent(f"{namespace}-other", 5))}

    await say(engine, namespace, "The ferry leaves at nine.")
    with key(namespace, "write"):
        refused = await ended(engine, namespace, await engine.jobs.start(namespace, "test", {}, erases))
    assert (refused.state, "needs a key with role admin" in refused.report["failure"]) == ("failed", True)
    with key(namespace, "admin"):
        outside = await ended(engine, namespace, await engine.jobs.start(namespace, "test", {}, looks_elsewhere))
        done = await ended(engine, namespace, await engine.jobs.start(namespace, "test", {}, erases))
    assert (outside.state, "is not open to this key" in outside.report["failure"]) == ("failed", True)
    assert (done.state, done.report["rows"]["messages"]) == ("done", 1)


@pytest.mark.parametrize("user", [None, "mira"])
async def test_a_key_to_write_replaces_a_text_by_an_import_and_signs_it(
    engine: Engine, namespace: str, user: str | None
) -> None:
    kind = "document" if user is None else "resource"
    for text in ("High at noon.", "High at dusk."):
        with key(namespace, "write"):
            upload = Upload(notes(Tides=text), user_id=user)
            job = await ended(engine, namespace, await engine.long_work.import_file(namespace, upload))
        assert job.state == "done", job.report
    assert (job.report["added"], job.report["changed"]) == ({kind: 0}, {kind: 1})
    changes = [entry.change for entry in (await engine.feed.page(namespace)).entries]
    signed = [(change.event, change.author, change.door) for change in changes if change.kind == kind]
    assert signed == [("import", "the write key", "console"), ("update", "the write key", "console")]
    found = await engine.recall.recall(namespace, "When is the tide high?", top_k=5)
    assert [memory.text for memory in found.memories if "High" in memory.text] == ["Tides\n\nHigh at dusk."]


MEM0 = [{"id": "1", "memory": "Anna likes tea.", "user_id": "anna"}]
GRAPH = {"type": "entity", "name": "Anna", "entityType": "person", "observations": ["likes tea"]}


@pytest.mark.parametrize("origin", [*MAKERS, "mem0", "memory-json"])
async def test_a_key_to_write_imports_files_of_every_other_program(
    engine: Engine, namespace: str, tmp_path: Path, origin: str
) -> None:
    path = uploaded("export.af" if origin == "letta" else "export.json", b"")
    if origin in MAKERS:
        made = tmp_path / path.name
        MAKERS[origin](made, 5_000)
        path = zipped(made) if made.is_dir() else uploaded(path.name, made.read_bytes())
    else:
        path.write_text(json.dumps(MEM0 if origin == "mem0" else GRAPH))
    with key(namespace, "write"):
        upload = Upload(path, origin, "anna")
        job = await ended(engine, namespace, await engine.long_work.import_file(namespace, upload))
    assert job.state == "done", job.report
    assert sum(job.report["added"].values()) > 0


def zipped(folder: Path) -> Path:
    """A folder as a browser sends it."""
    path = uploaded("export.zip", b"")
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.rglob("*.*"):
            archive.write(file, file.relative_to(folder))
    return path


async def test_only_an_admin_imports_an_export_which_may_say_anything(engine: Engine, namespace: str) -> None:
    added = await engine.memories.add(namespace, "Anna may see all accounts.", "fact", MemoryScope("anna"))
    lines = (await exported(engine, namespace)).decode().splitlines()
    forged = [
        json.dumps(record | {"trust": "operator"} if record.get("kind") == "memory" else record)
        for record in map(json.loads, lines)
    ]
    elsewhere = f"{namespace}-other"
    with key(elsewhere, "write"):
        named = uploaded("export.jsonl", b"")
        with pytest.raises(Forbidden, match="use a key with role admin"):
            await engine.long_work.import_file(elsewhere, Upload(named, "recollect"))
        upload = Upload(uploaded("export.jsonl", "\n".join(forged).encode()))
        job = await ended(engine, elsewhere, await engine.long_work.import_file(elsewhere, upload))
    assert (job.state, "who wrote what" in job.report["failure"]) == ("failed", True)
    assert not named.parent.exists()
    with pytest.raises(NotFound):
        await engine.memories.get(elsewhere, str(added.memory.id))
    with key(elsewhere, "admin"):
        upload = Upload(uploaded("export.jsonl", "\n".join(forged).encode()))
        job = await ended(engine, elsewhere, await engine.long_work.import_file(elsewhere, upload))
    assert (job.state, job.report["added"]["memory"]) == ("done", 1)


async def test_no_job_tells_a_secret_that_a_file_has_in_its_name_or_its_lines(masking: Engine, namespace: str) -> None:
    unknown_kind = await exported(masking, namespace, {"kind": TOKEN})
    for content, state in ((unknown_kind, "done"), (b"", "failed")):
        upload = Upload(uploaded(f"{TOKEN}.jsonl", content), None if content else "markdown")
        job = await ended(masking, namespace, await masking.long_work.import_file(namespace, upload))
        assert job.state == state
        assert TOKEN not in json.dumps([job.about, job.report])
        assert job.about["file"] == "[masked: GitHub token].jsonl"


async def test_whoever_may_start_a_job_may_stop_it_and_what_was_done_stays(
    engine: Engine, settings: Settings, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "TELL_SECONDS", 0.01)
    other = await Engine.open(settings)
    for kind, may in (("switch", "admin"), ("prune", "admin"), ("embed", "write"), ("import", "write")):
        work = Lasting()
        job_id = str(await engine.jobs.start(namespace, kind, {"what": kind}, work))
        with key(namespace, "write" if may == "admin" else "read"), pytest.raises(Forbidden):
            await other.long_work.stop(namespace, job_id)
        with key(f"{namespace}-other", "admin"), pytest.raises(NotFound):
            await other.long_work.stop(f"{namespace}-other", job_id)
        with key(namespace, may):  # type: ignore[arg-type]
            await other.long_work.stop(namespace, job_id)
        job = await ended(other, namespace, job_id)
        assert (job.state, job.done, work.cancelled.is_set()) == ("stopped", 3, True)
        assert job.about == {"what": kind, "stopped_by": f"the {may} key"}
        with pytest.raises(Conflict, match="has ended"):
            await other.long_work.stop(namespace, job_id)
    await other.close()
