"""Work that takes a while: the embedding model, export, import, pruning; and how far it is."""

import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime

from starlette.responses import Response, StreamingResponse

from recollect import origin
from recollect.doors.console import rendering, uploads
from recollect.doors.console.door import IMPORT, MAX_UPLOAD_BYTES
from recollect.doors.console.visit import Visit, get, post
from recollect.flows.jobs.jobs import KEPT_DAYS
from recollect.flows.jobs.long_work import EXPORT, PruneTerms, Upload, role_for
from recollect.flows.transfer.foreign.formats import FORMATS, MEM0, MEMORY_JSON
from recollect.memory.accounts.jobs import GOING_ON, Job
from recollect.memory.memories import CATEGORIES

PAGE = "/console/jobs"
JOB_PAGE = "/console/jobs/job"

SHOWN = 20
MAX_COUNTED = 10_000
MAX_DAYS = 36_500

# Of a download, lines that travel together.
PIECE_CHARACTERS = 64 * 1024

_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")

ABOUT = {name: each.about for name, each in FORMATS.items()} | {
    EXPORT: "an export of Recollect",
    MEM0: "what mem0's get_all returned, or an export of it",
    MEMORY_JSON: "the file of the MCP reference memory server",
}


async def jobs(visit: Visit) -> Response:
    """What runs and ran, and what can be started."""
    engine, namespace = visit.engine, visit.namespace
    recent = await engine.jobs.recent(namespace, SHOWN)
    waiting = await engine.indexer.waiting(namespace, MAX_COUNTED + 1)
    running = {job.kind for job in recent if job.state in GOING_ON}
    return visit.page(
        "jobs.html",
        recent=recent,
        running=running,
        embeddings=await engine.namespace_models.current(namespace),
        waiting=min(waiting, MAX_COUNTED),
        counted=waiting <= MAX_COUNTED,
        indexing=engine.settings.indexer,
        default_model=engine.settings.embedding_model,
        formats={name: about for name, about in ABOUT.items() if name != EXPORT or origin.may("admin")},
        may_stop=may_stop,
        categories=CATEGORIES,
        largest=MAX_UPLOAD_BYTES,
        kept_days=KEPT_DAYS,
    )


async def job(visit: Visit) -> Response:
    """How far one job is, or what came of it."""
    found = await visit.engine.jobs.job(visit.namespace, visit.asked("id"))
    return visit.page("job.html", job=found, formats=ABOUT, may_stop=may_stop)


async def state(visit: Visit) -> Response:
    """The same for the script that shows it as it goes on."""
    found = await visit.engine.jobs.job(visit.namespace, visit.asked("id"))
    return rendering.json_response({"state": found.state, "done": found.done, "total": found.total})


async def export(visit: Visit) -> Response:
    """Everything of the namespace or of a user, as `recollect export` writes it, as a download."""
    origin.require_no_limits()
    user = visit.asked("user") or None
    lines = visit.engine.exporting.lines(visit.namespace, user)
    first = await anext(lines)  # an unknown user is refused here, and not in the midst of a file
    name = _UNUSUAL.sub("_", "-".join(filter(None, ("recollect", visit.namespace, user))))[:100]
    disposition = f'attachment; filename="{name}-{datetime.now(UTC):%Y-%m-%d}.jsonl"'
    headers = {"Content-Disposition": disposition}
    return StreamingResponse(pieces(first, lines), media_type="application/x-ndjson", headers=headers)


async def pieces(first: str, lines: AsyncIterator[str]) -> AsyncIterator[str]:
    """Lines, joined to pieces that are worth sending."""
    held, size = [first], len(first)
    async with aclosing(lines):  # type: ignore[type-var]
        async for line in lines:
            held.append(line)
            size += len(line)
            if size > PIECE_CHARACTERS:
                yield "\n".join([*held, ""])
                held, size = [], 0
    yield "\n".join([*held, ""])


async def import_file(visit: Visit) -> Response:
    """Take a file, and import it in the background."""
    user = visit.given("user").strip() or None
    dry_run = visit.ticked("dry_run")
    path = await uploads.kept(visit.file("file"))
    upload = Upload(path, visit.given("format") or None, user, dry_run=dry_run)
    return visit.go(JOB_PAGE, id=str(await visit.engine.long_work.import_file(visit.namespace, upload)))


async def switch(visit: Visit) -> Response:
    """Begin to move to another embedding model, or go on."""
    model = visit.given("model").strip()
    return visit.go(JOB_PAGE, id=str(await visit.engine.long_work.switch(visit.namespace, model)))


async def embed(visit: Visit) -> Response:
    """Embed what waits."""
    return visit.go(JOB_PAGE, id=str(await visit.engine.long_work.embed(visit.namespace)))


async def prune(visit: Visit) -> Response:
    """Count memories that have not changed for long, or delete them."""
    days = visit.number_given("days", 1, MAX_DAYS)
    terms = PruneTerms(days, visit.given("user").strip() or None, visit.given("category") or None)
    dry_run = visit.given("really") != "yes"
    return visit.go(JOB_PAGE, id=str(await visit.engine.long_work.prune(visit.namespace, terms, dry_run=dry_run)))


async def stop(visit: Visit) -> Response:
    """Stop a job, wherever it runs."""
    job_id = visit.given("id")
    await visit.engine.long_work.stop(visit.namespace, job_id)
    return visit.go(JOB_PAGE, id=job_id)


def may_stop(job: Job) -> bool:
    """Whether there is something to stop, for whoever looks at it."""
    return job.state == "running" and origin.may(role_for(job))


ROUTES = [
    get(PAGE, jobs),
    get(JOB_PAGE, job),
    get("/console/jobs/state", state),
    get("/console/jobs/export", export),
    post(IMPORT, import_file, role="write"),
    post("/console/jobs/switch", switch),
    post("/console/jobs/embed", embed),
    post("/console/jobs/prune", prune),
    post("/console/jobs/stop", stop),
]
