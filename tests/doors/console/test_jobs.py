"""Long work as pages: started by a form, followed by a script or by reloading, and reported."""

import asyncio
import io
import json
import re
import tempfile
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from recollect.doors.console import door
from recollect.doors.rest.edge import body_limits
from recollect.engine import Engine
from recollect.errors import Unavailable
from recollect.flows.jobs import jobs as flow
from recollect.flows.jobs.jobs import Progress
from recollect.memory.memories import MemoryScope
from recollect.origin import acting
from recollect.settings import Settings
from tests.browsers import Browser
from tests.console_visits import Browser as Visitor
from tests.console_visits import browsing, token_of
from tests.ended_jobs import Lasting, ended, exported, notes
from tests.flows.test_jobs import say
from tests.flows.test_prune import add, age
from tests.llm_servers import provider_server
from tests.rest_servers import listening

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

PAGE = "/console/jobs"


@pytest.fixture
async def visitor(engine: Engine) -> AsyncIterator[Visitor]:
    async with browsing(engine) as visitor:
        yield visitor


async def upload(visitor: Visitor, name: str, content: bytes, **fields: str) -> httpx.Response:
    fields["csrf"] = token_of(await visitor.text(PAGE))
    return await visitor.http.post(f"{PAGE}/import", data=fields, files={"file": (name, content)})


def zipped(*names: str) -> bytes:
    """An archive of small files."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
    return file.getvalue()


async def shown(visitor: Visitor, engine: Engine, namespace: str, answer: httpx.Response) -> str:
    """The page of a job that a form has started, once it has ended."""
    assert answer.status_code == 303, answer.text
    await ended(engine, namespace, answer.headers["location"].partition("id=")[2])
    return await visitor.text(answer.headers["location"])


async def test_an_export_is_a_download_that_an_import_takes(visitor: Visitor, engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "The ferry leaves at nine.", "The tide is out.")
    answer = await visitor.open(f"{PAGE}/export?user=mira")
    assert re.fullmatch(
        r'attachment; filename="recollect-test-[0-9a-f-]+-mira-\d{4}-\d\d-\d\d\.jsonl"',
        answer.headers["content-disposition"],
    )
    assert answer.content.endswith(b"\n")
    kinds = [json.loads(line)["kind"] for line in answer.text.splitlines()]
    assert (kinds[0], kinds.count("message"), kinds[-1]) == ("recollect-export", 2, "end")
    assert (await visitor.open(f"{PAGE}/export?user=nobody")).status_code == 404
    page = await shown(visitor, engine, namespace, await upload(visitor, "mine.jsonl", answer.content))
    assert 'Import of <span class="text">mine.jsonl</span>' in page
    assert '<th scope="row">message</th><td class="num">0</td><td class="num">0</td><td class="num">2</td>' in page


async def test_an_import_reports_what_was_left_out_and_rejected(
    visitor: Visitor, engine: Engine, namespace: str
) -> None:
    content = notes(Mira="Mira works at the harbour.").read_bytes()
    answer = await upload(visitor, "../../<b>notes</b>.zip", content, user="mira", dry_run="yes")
    page = await shown(visitor, engine, namespace, answer)
    assert "What would be imported" in page
    assert "photo.jpg" in page
    assert "<b>notes" not in page
    broken = await exported(engine, namespace, {"kind": "<script>"})
    page = await shown(visitor, engine, namespace, await upload(visitor, "x.jsonl", broken))
    assert "Rejected: 1" in page
    assert "unknown kind &#39;&lt;script&gt;&#39;" in page
    page = await shown(visitor, engine, namespace, await upload(visitor, "x.txt", b"nothing of the kind"))
    assert "x.txt is not a Recollect export, and its format could not be found out: choose the format" in page
    assert (await visitor.send(PAGE, f"{PAGE}/import")).status_code == 422


async def test_a_file_that_cannot_be_imported_is_called_by_its_name(
    visitor: Visitor, engine: Engine, namespace: str
) -> None:
    mem0 = json.dumps({"results": [{"memory": "x"}]}).encode()
    for name, content, fields, sentence in (
        ("mem0.json", mem0, {"format": "markdown"}, "mem0.json looks like a file of mem0: choose the format mem0"),
        ("export.zip", b"PK\x03\x04 and no more", {}, "export.zip is a damaged archive"),
        ("export.jsonl", b"", {}, "export.jsonl is empty"),
        ("photo.zip", zipped("photo.png"), {"format": "chatgpt"}, "photo.zip has nothing to import"),
    ):
        page = await shown(visitor, engine, namespace, await upload(visitor, name, content, **fields))
        fault = page.partition('<p class="fault" role="alert">')[2].partition("</p>")[0]
        assert fault.startswith(sentence), fault
        assert "Start it again" not in page
        assert "--from" not in page
        assert tempfile.gettempdir() not in page


async def test_a_dry_run_is_one_however_a_script_says_yes(visitor: Visitor, engine: Engine, namespace: str) -> None:
    content = notes(Mira="Mira works at the harbour.").read_bytes()
    page = await shown(visitor, engine, namespace, await upload(visitor, "notes.zip", content, dry_run="on"))
    assert "What would be imported" in page
    refused = await upload(visitor, "notes.zip", content, dry_run="perhaps")
    assert (refused.status_code, "dry_run must be yes or no" in refused.text) == (422, True)


@pytest.mark.parametrize(("done", "advice"), [(5, "What was done stays done. Start it again"), (0, "Nothing was done")])
async def test_work_that_may_succeed_later_is_to_be_started_again(
    visitor: Visitor, engine: Engine, namespace: str, done: int, advice: str
) -> None:
    async def work(progress: Progress) -> dict[str, Any]:
        progress.tell(done, 10)
        raise Unavailable("The provider is away")

    job_id = await engine.jobs.start(namespace, "switch", {"model": "openai:m"}, work)
    await ended(engine, namespace, str(job_id))
    assert advice in await visitor.text(f"{PAGE}/job?id={job_id}")


async def test_a_file_may_be_larger_than_other_bodies_but_not_without_end(
    visitor: Visitor, engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = notes(Mira="Mira works at the harbour.").read_bytes()
    monkeypatch.setattr(body_limits, "MAX_BODY_BYTES", 100)
    assert "markdown" in (await shown(visitor, engine, namespace, await upload(visitor, "notes.zip", content))).lower()
    assert (await visitor.http.post(f"{PAGE}/prune", data={"days": "1" * 200})).status_code == 413
    monkeypatch.setattr(door, "MAX_UPLOAD_BYTES", 300)
    assert (await upload(visitor, "notes.zip", content)).status_code == 413


async def test_memories_are_counted_before_they_are_pruned(visitor: Visitor, engine: Engine, namespace: str) -> None:
    old = await add(engine, namespace, "An old habit.", MemoryScope("mira"))
    await age(engine, namespace, old)
    counted = await shown(visitor, engine, namespace, await visitor.send(PAGE, f"{PAGE}/prune", days="30"))
    assert "These would be deleted:" in counted
    fields = dict(re.findall(r'name="(days|user|category|really)" value="([^"]*)"', counted))
    deleted = await shown(visitor, engine, namespace, await visitor.send(PAGE, f"{PAGE}/prune", **fields))
    assert "Deleted for good:" in deleted
    again = await shown(visitor, engine, namespace, await visitor.send(PAGE, f"{PAGE}/prune", **fields))
    assert "There are none." in again


@pytest.mark.unindexed("it shows what waits")
async def test_what_waits_can_be_embedded_and_a_switch_says_how_it_went(
    visitor: Visitor, engine: Engine, namespace: str
) -> None:
    await say(engine, namespace, "The ferry leaves at nine.")
    assert "1 passage <span" in await visitor.text(PAGE)
    page = await shown(visitor, engine, namespace, await visitor.send(PAGE, f"{PAGE}/embed"))
    assert "Nothing waits any more." in page
    page = await shown(visitor, engine, namespace, await visitor.send(PAGE, f"{PAGE}/switch", model="local"))
    assert "uses this model already" in page
    page = await shown(visitor, engine, namespace, await visitor.send(PAGE, f"{PAGE}/switch", model="nonsense"))
    assert "MODEL must be" in page
    assert page.count('class="badge bad">failed') == 1
    assert "Embedding of waiting passages" in await visitor.text(PAGE)


@pytest.mark.unindexed("its model is a provider that only it knows")
async def test_a_switch_moves_the_namespace_to_another_model(
    settings: Settings, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider_server() as provider:
        for name, value in provider.environment().items():
            monkeypatch.setenv(name, value)
        engine = await Engine.open(Settings())
        async with browsing(engine) as visitor:
            await say(engine, namespace, "The ferry leaves at nine.")
            await engine.indexer.flush(namespace)
            await visitor.sign_in((await engine.access.create_key(namespace, "operator")).secret)
            model = "openai:text-embedding-3-small"
            answer = await visitor.send(PAGE, f"{PAGE}/switch", model=model)
            assert "Searches use the new model now." in await shown(visitor, engine, namespace, answer)
            assert f"<dt>In use</dt><dd><code>{model}</code></dd>" in await visitor.text(PAGE)


async def test_a_reader_sees_no_forms_and_is_refused_before_the_file_is_read(
    visitor: Visitor, engine: Engine, namespace: str
) -> None:
    await visitor.sign_in((await engine.access.create_key(namespace, "reader", role="read")).secret)
    page = await visitor.text(PAGE)
    assert f'method="post" action="{PAGE}' not in page
    answer = await upload(visitor, "x.jsonl", b"x")
    assert (answer.status_code, "this key has role read" in answer.text) == (403, True)
    for change in ("switch", "embed", "prune"):
        assert (await visitor.send(PAGE, f"{PAGE}/{change}", model="local", days="3")).status_code == 403
    assert await engine.jobs.recent(namespace, 5) == []
    job_id = str(await engine.jobs.start(namespace, "embed", {}, Lasting()))
    for address in (PAGE, f"{PAGE}/job?id={job_id}"):
        assert f"{PAGE}/stop" not in await visitor.text(address)
    assert (await visitor.send(PAGE, f"{PAGE}/stop", id=job_id)).status_code == 403


async def test_no_change_is_made_without_the_token_of_the_page(visitor: Visitor) -> None:
    for change in ("import", "switch", "embed", "prune", "stop"):
        assert (await visitor.send(PAGE, f"{PAGE}/{change}", "0" * 64, days="1")).status_code == 403


async def test_a_job_is_stopped_from_its_page_or_from_the_list(
    visitor: Visitor, engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "TELL_SECONDS", 0.01)
    for place in (PAGE, f"{PAGE}/job"):
        with acting("console", "support desk"):
            job_id = str(await engine.jobs.start(namespace, "switch", {"model": "openai:m"}, Lasting()))
        form = await visitor.text(f"{place}?id={job_id}")
        assert f'action="{PAGE}/stop"' in form
        answer = await visitor.http.post(f"{PAGE}/stop", data={"csrf": token_of(form), "id": job_id})
        page = await shown(visitor, engine, namespace, answer)
        assert '<span class="badge warn">stopped</span>' in page
        assert "It was stopped. What was done stays done. Start it again to go on." in page
        assert f"{PAGE}/stop" not in page
    assert (await visitor.send(PAGE, f"{PAGE}/stop", id=job_id)).status_code == 409
    assert (await visitor.send(PAGE, f"{PAGE}/stop", id="nonsense")).status_code == 404


async def test_a_key_to_write_is_offered_no_export_to_import(visitor: Visitor, engine: Engine, namespace: str) -> None:
    await visitor.sign_in((await engine.access.create_key(namespace, "writer", role="write")).secret)
    page = await visitor.text(PAGE)
    assert '<option value="markdown">' in page
    assert '<option value="recollect">' not in page
    answer = await upload(visitor, "x.jsonl", b"", format="recollect")
    assert (answer.status_code, "use a key with role admin" in answer.text) == (403, True)


async def test_a_script_follows_a_job_to_its_end(
    engine: Engine, namespace: str, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "TELL_SECONDS", 0.02)
    seen = asyncio.Event()

    async def work(progress: Progress) -> dict[str, Any]:
        progress.tell(1_500, 6_000)
        await seen.wait()
        return {}

    job_id = await engine.jobs.start(namespace, "embed", {}, work)
    async with listening(engine) as url, browser.visit(url) as page:
        await page.goto(f"{PAGE}/job?id={job_id}")
        await page.get_by_text("1,500 of 6,000 (25 %)").wait_for()
        seen.set()
        await page.get_by_text("Nothing waits any more.").wait_for()


async def test_a_job_that_ends_leaves_the_forms_below_the_list_as_they_are(
    engine: Engine, namespace: str, browser: Browser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(flow, "TELL_SECONDS", 0.02)
    seen = asyncio.Event()

    async def work(progress: Progress) -> dict[str, Any]:
        progress.tell(500)
        await seen.wait()
        return {}

    file = tmp_path / "export.jsonl"
    file.write_bytes(b"")
    await engine.jobs.start(namespace, "embed", {}, work)
    async with listening(engine) as url, browser.visit(url) as page:
        await page.goto(PAGE)
        await page.get_by_text("500 so far").wait_for()
        await page.locator("#file").set_input_files(file)
        await page.get_by_label("Owner").fill("mira")
        seen.set()
        await page.locator(".badge.good", has_text="done").wait_for()
        assert await page.locator("#file").input_value() == "C:\\fakepath\\export.jsonl"
        assert await page.get_by_label("Owner").input_value() == "mira"


async def test_without_scripts_the_page_of_a_job_is_loaded_again_but_not_the_list(
    visitor: Visitor, engine: Engine, namespace: str
) -> None:
    job_id = await engine.jobs.start(namespace, "embed", {}, Lasting())
    assert 'http-equiv="refresh"' in await visitor.text(f"{PAGE}/job?id={job_id}")
    assert 'http-equiv="refresh"' not in await visitor.text(PAGE)


async def test_a_name_in_any_script_is_kept_as_far_as_a_disk_takes_it(
    visitor: Visitor, engine: Engine, namespace: str
) -> None:
    content = notes(Mira="Mira works at the harbour.").read_bytes()
    page = await shown(visitor, engine, namespace, await upload(visitor, "港" * 100 + ".zip", content))
    assert f"{'港' * 32}.zip" in page


@pytest.mark.parametrize("size", [10, 3 * 1024 * 1024])
async def test_a_disk_that_takes_no_file_is_told_of(
    visitor: Visitor, engine: Engine, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    answer = await upload(visitor, "x.jsonl", b"x" * size)
    assert (answer.status_code, "could not keep the file: No such file" in answer.text) == (503, True)
    assert await engine.jobs.recent(namespace, 5) == []
