"""Jobs: work in the background that any process can tell of, and that is found out when its process ended."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from recollect.engine import Engine
from recollect.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from recollect.flows.jobs import jobs as flow
from recollect.flows.jobs.jobs import UNEXPECTED, Progress
from recollect.flows.jobs.long_work import PruneTerms, Upload
from recollect.flows.kinds.target import USER, Target
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.origin import Limits, acting
from recollect.settings import Settings
from recollect.storage.sql import Query
from tests.ended_jobs import Lasting, ended, exported, notes, uploaded
from tests.flows.test_prune import IN_THE_WAY, add, age

HELD = Query.named("test.held", "select id from jobs where namespace = :namespace for update")
CANCELLED = Query.named(
    "test.cancelled",
    "select pg_cancel_backend(pid), :namespace from pg_stat_activity "
    "where pg_backend_pid() = any(pg_blocking_pids(pid))",
)

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


async def say(engine: Engine, namespace: str, *texts: str, user: str = "mira") -> None:
    for text in texts:
        await engine.remember.turn(namespace, Turn("talk", (NewMessage("user", text),), owner_if_new=user))


async def test_a_job_runs_beside_and_another_process_tells_how_far_it_is(
    engine: Engine, settings: Settings, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "TELL_SECONDS", 0.01)
    go_on = asyncio.Event()

    async def work(progress: Progress) -> dict[str, Any]:
        progress.tell(3, 7)
        await go_on.wait()
        return {"answer": 42}

    with acting("console", "support desk"):
        job_id = await engine.jobs.start(namespace, "test", {"why": "to see"}, work)
    other = await Engine.open(settings)
    async with asyncio.timeout(60):
        while (job := await other.jobs.job(namespace, str(job_id))).total == 0:
            pass
    assert (job.state, job.done, job.total, job.author, job.about) == (
        "running",
        3,
        7,
        "support desk",
        {"why": "to see"},
    )
    with pytest.raises(Conflict, match="is running"):
        await other.jobs.start(namespace, "test", {}, work)
    go_on.set()
    job = await ended(other, namespace, job_id)
    assert (job.state, job.report) == ("done", {"answer": 42})
    assert [each.id for each in await other.jobs.recent(namespace, 5)] == [job_id]
    assert await other.jobs.recent(f"{namespace}-other", 5) == []
    with pytest.raises(NotFound):
        await other.jobs.job(f"{namespace}-other", str(job_id))
    await other.close()


async def test_a_failure_is_told_and_a_defect_is_not_quoted(engine: Engine, namespace: str) -> None:
    async def fails(progress: Progress) -> dict[str, Any]:
        raise Unavailable("The provider is away")

    async def breaks(progress: Progress) -> dict[str, Any]:
        raise KeyError("something of ours")

    for work, sentence in ((fails, "The provider is away"), (breaks, UNEXPECTED)):
        job = await ended(engine, namespace, await engine.jobs.start(namespace, "test", {}, work))
        assert (job.state, job.report) == ("failed", {"failure": sentence, "can_go_on": True})


async def test_a_job_of_a_server_that_stops_is_stopped_and_of_one_that_died_is_lost(
    settings: Settings, engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lasts(progress: Progress) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    other = await Engine.open(settings)
    stopped = await other.jobs.start(namespace, "test", {}, lasts)
    await other.close()
    assert (await engine.jobs.job(namespace, str(stopped))).state == "stopped"
    died = await engine.jobs.start(namespace, "test", {}, lasts)
    monkeypatch.setattr(flow, "SILENT_SECONDS", 0.0)
    assert (await engine.jobs.job(namespace, str(died))).state == "lost"
    again = await engine.jobs.start(namespace, "test", {}, lasts)
    assert (await engine.jobs.job(namespace, str(died))).state == "lost"
    assert again != died


async def test_a_job_that_was_thought_lost_stops_once_it_learns_of_it(
    settings: Settings, engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Lasting(), Lasting()
    given_up = await engine.jobs.start(namespace, "test", {}, first)
    other = await Engine.open(settings)
    monkeypatch.setattr(flow, "SILENT_SECONDS", 0.0)
    begun_anew = await other.jobs.start(namespace, "test", {}, second)
    monkeypatch.setattr(flow, "SILENT_SECONDS", 30.0)
    async with asyncio.timeout(60):
        await first.cancelled.wait()
    assert (await other.jobs.job(namespace, str(given_up))).state == "lost"
    assert (await other.jobs.job(namespace, str(begun_anew))).state == "running"
    assert not second.cancelled.is_set()
    await other.close()


async def test_how_a_job_ended_is_noted_once_the_database_answers_again(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "TELL_SECONDS", 60.0)
    monkeypatch.setattr(flow, "RETRY_SECONDS", (0.01,))
    go_on = asyncio.Event()

    async def work(progress: Progress) -> dict[str, Any]:
        await go_on.wait()
        return {"answer": 42}

    job_id = await engine.jobs.start(namespace, "test", {}, work)
    async with engine.database.transaction(namespace) as tx:
        await tx.all(HELD)
        go_on.set()
        async with asyncio.timeout(60):
            while not (await tx.one(IN_THE_WAY))["is_so"]:
                pass
        await tx.all(CANCELLED)
    job = await ended(engine, namespace, job_id)
    assert (job.state, job.report) == ("done", {"answer": 42})


async def test_an_export_is_imported_into_the_namespace_of_the_caller_alone(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "The ferry leaves at nine.", "The tide is out.")
    file = uploaded("export.jsonl", await exported(engine, namespace, {"kind": "nonsense"}))
    elsewhere = f"{namespace}-other"
    job = await ended(engine, elsewhere, await engine.long_work.import_file(elsewhere, Upload(file)))
    assert (job.state, job.report["added"]["message"], job.report["origin"]) == ("done", 2, "recollect")
    assert (job.report["refused"], job.report["refusals"][0]["reason"]) == (1, "unknown kind 'nonsense'")
    assert (job.done, job.total) != (0, 0)
    assert not file.parent.exists()


async def test_a_file_of_another_program_is_recognised_and_can_be_counted_first(engine: Engine, namespace: str) -> None:
    for dry_run, stored in ((True, 0), (False, 1)):
        upload = Upload(notes(Mira="Mira works at the harbour."), user_id="mira", dry_run=dry_run)
        job = await ended(engine, namespace, await engine.long_work.import_file(namespace, upload))
        assert (job.state, job.report["origin"], job.report["added"]) == ("done", "markdown", {"resource": 1})
        assert [each["count"] for each in job.report["left_out"]] == [1]
        assert (await engine.status.report(namespace)).memory["resources"].rows == stored


async def test_what_cannot_be_imported_fails_and_leaves_no_file(engine: Engine, namespace: str) -> None:
    file = uploaded("x.jsonl", b"no export at all")
    job = await ended(engine, namespace, await engine.long_work.import_file(namespace, Upload(file)))
    assert (job.state, "not a Recollect export" in job.report["failure"]) == ("failed", True)
    refused = uploaded("x.jsonl", b"")
    with pytest.raises(Invalid, match="format must be"):
        await engine.long_work.import_file(namespace, Upload(refused, "floppy"))
    with acting("console", "reader", "read"), pytest.raises(Forbidden):
        await engine.long_work.import_file(namespace, Upload(refused))
    assert not file.parent.exists()
    assert not refused.parent.exists()


async def test_pruning_is_counted_first_and_needs_an_admin(engine: Engine, namespace: str) -> None:
    old = await add(engine, namespace, "An old habit.", MemoryScope("mira"))
    await age(engine, namespace, old)
    terms = PruneTerms(30, "mira", "fact")
    with acting("console", "writer", "write"):
        counted = await ended(engine, namespace, await engine.long_work.prune(namespace, terms, dry_run=True))
        with pytest.raises(Forbidden):
            await engine.long_work.prune(namespace, terms, dry_run=False)
    assert (counted.report["rows"]["memories"], counted.report["users"]) == (1, [["mira", 1]])
    assert await engine.memories.get(namespace, str(old))
    pruned = await ended(engine, namespace, await engine.long_work.prune(namespace, terms, dry_run=False))
    assert (pruned.done > 0, pruned.total) == (True, 0), "of how many is not known"
    with pytest.raises(NotFound):
        await engine.memories.get(namespace, str(old))


async def test_a_switch_opens_no_folder_that_the_server_was_not_set_up_with(
    engine: Engine, namespace: str, tmp_path: Path
) -> None:
    with pytest.raises(Invalid, match="only on the server"):
        await engine.long_work.switch(namespace, f"onnx:{tmp_path}")
    with acting("console", "writer", "write"), pytest.raises(Forbidden):
        await engine.long_work.switch(namespace, "local")
    job = await ended(engine, namespace, await engine.long_work.switch(namespace, "local"))
    assert (job.state, job.report) == ("done", {"moved": False})


async def test_a_key_for_one_user_starts_no_job(engine: Engine, namespace: str) -> None:
    work = engine.long_work
    with acting("console", "anna's assistant", "admin", Limits("anna")):
        for start in (
            work.embed(namespace),
            work.switch(namespace, "local"),
            work.prune(namespace, PruneTerms(1, "anna"), dry_run=True),
            work.import_file(namespace, Upload(notes(Anna="Anna."))),
        ):
            with pytest.raises(Forbidden, match="limited to user anna"):
                await start
    assert await engine.jobs.recent(namespace, 5) == []


async def test_forgetting_clears_what_reports_may_quote(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "Nobody should know.")
    upload = Upload(notes(Mira="Mira."), user_id="mira")
    job_id = await engine.long_work.import_file(namespace, upload)
    await ended(engine, namespace, job_id)
    await engine.forget.forget(namespace, Target(USER, "mira"))
    job = await engine.jobs.job(namespace, str(job_id))
    assert (job.state, job.about, job.report) == ("done", {}, {})


@pytest.mark.unindexed("it counts what waits")
async def test_waiting_passages_are_embedded(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "The ferry leaves at nine.", "The tide is out.")
    assert await engine.indexer.waiting(namespace) == 2
    job = await ended(engine, namespace, await engine.long_work.embed(namespace))
    assert (job.state, job.done, job.total, await engine.indexer.waiting(namespace)) == ("done", 2, 2, 0)


@pytest.mark.unindexed("it counts what waits")
async def test_what_is_written_while_passages_are_embedded_takes_nothing_back(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    count, tell = engine.indexer.waiting, Progress.tell

    async def counted_before_others_write(namespace: str) -> int:
        number = await count(namespace)
        if number == 1:
            await say(engine, namespace, *(f"Wave {each}." for each in range(40)))
        return number

    def heard(progress: Progress, done: int, total: int = 0) -> None:
        tell(progress, done, total)
        told.append((progress.done, progress.total))

    await say(engine, namespace, "The ferry leaves at nine.")
    monkeypatch.setattr(engine.indexer, "waiting", counted_before_others_write)
    monkeypatch.setattr(Progress, "tell", heard)
    job = await ended(engine, namespace, await engine.long_work.embed(namespace))
    assert (job.state, len(told) > 2) == ("done", True)
    assert told == sorted(told)
    assert told[0] == (0, 1)
    assert told[-1] == (1, 1)
