"""What can be done as a job: embed, switch the embedding model, import a file, prune."""

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from recollect import checks, origin, tasks
from recollect.errors import Invalid
from recollect.flows.accounts.quotas import Quotas
from recollect.flows.defence.masking import MasksSecrets
from recollect.flows.forgetting.prune import Prune, Pruned, not_changed_for
from recollect.flows.indexing.indexer import Indexer
from recollect.flows.indexing.model_switch import EmbeddingSwitch
from recollect.flows.jobs.jobs import Jobs, Progress
from recollect.flows.transfer.foreign.foreign_files import ForeignFiles, OtherFormat, refuse_other_format
from recollect.flows.transfer.foreign.formats import FORMATS, MEM0, MEMORY_JSON, recognised
from recollect.flows.transfer.foreign_imports import Adopting
from recollect.flows.transfer.import_report import Report
from recollect.flows.transfer.importing import Importing, NotAnExport, require_admin
from recollect.memory.accounts.jobs import Job
from recollect.origin import Role
from recollect.settings import EMBEDDING_MODEL

SWITCH, EMBED, IMPORT, PRUNE = "switch", "embed", "import", "prune"

# An import of ours, as a format beside those of other programs.
EXPORT = "recollect"
ORIGINS = (EXPORT, *FORMATS, MEM0, MEMORY_JSON)

# Of a report, what is kept of each list.
MAX_KEPT = 100

# How archives begin: zip, gzip, 7z, rar, xz.
ARCHIVES = (b"PK", b"\x1f\x8b", b"7z", b"Rar!", b"\xfd7zX")

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Upload:
    """A file to import, in a folder of its own, which is deleted when the import ends, however it ends.

    Without an origin, the format is detected. What belongs to nobody in the file becomes the user's, if one is named.
    """

    path: Path
    origin: str | None = None
    user_id: str | None = None
    dry_run: bool = False

    def discard(self) -> None:
        """Delete it."""
        shutil.rmtree(self.path.parent, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class PruneTerms:
    """Which memories to prune: those that have not changed for so many days, perhaps of one user or category."""

    days: int
    user_id: str | None = None
    category: str | None = None


def role_for(job: Job) -> Role:
    """The role that it takes to start a job, or to stop it."""
    erases = job.kind == PRUNE and not job.about.get("dry_run")
    return "admin" if erases or job.kind == SWITCH else "write"


class LongWork(MasksSecrets):
    """Starts and stops jobs. Either needs the role for what the job does."""

    def __init__(
        self,
        jobs: Jobs,
        embeddings: EmbeddingSwitch,
        indexer: Indexer,
        importing: Importing,
        adopting: Adopting,
        foreign_files: ForeignFiles,
        prune: Prune,
        quotas: Quotas,
        configured_model: str,
    ) -> None:
        self._jobs = jobs
        self._configured_model = configured_model
        self._embeddings = embeddings
        self._indexer = indexer
        self._importing = importing
        self._adopting = adopting
        self._foreign_files = foreign_files
        self._prune = prune
        self._quotas = quotas

    async def switch(self, namespace: str, model: str) -> UUID:
        """Move the namespace to another embedding model; one that was interrupted goes on where it was.

        Whoever has a key need not be who runs the server: no other folder is opened than the one in the settings.
        """
        origin.require("admin")
        named = EMBEDDING_MODEL.fullmatch(checks.text(model, "model"))
        if named is not None and named["folder"] is not None and model != self._configured_model:
            raise Invalid(
                "A folder of a model can be named only on the server: use `recollect embeddings switch` there, or set "
                "RECOLLECT_EMBEDDING_MODEL to it first"
            )

        async def work(progress: Progress) -> dict[str, Any]:
            return {"moved": await self._embeddings.run(namespace, model, progress.tell)}

        return await self._jobs.start(namespace, SWITCH, {"model": model}, work)

    async def embed(self, namespace: str) -> UUID:
        """Embed every passage that waits."""
        origin.require("write")

        async def work(progress: Progress) -> dict[str, Any]:
            waiting = await self._indexer.waiting(namespace)
            progress.tell(0, waiting)

            def left(number: int) -> None:
                # Others may write meanwhile.
                progress.tell(max(progress.done, waiting - number), waiting)

            return {"degraded": await self._indexer.flush(namespace, left)}

        return await self._jobs.start(namespace, EMBED, {}, work)

    async def prune(self, namespace: str, terms: PruneTerms, *, dry_run: bool) -> UUID:
        """Delete memories that have not changed for long, or count them only."""
        origin.require("write" if dry_run else "admin")
        unchanged = not_changed_for(terms.days * DAY_SECONDS, terms.user_id, category=terms.category)

        async def work(progress: Progress) -> dict[str, Any]:
            if dry_run:
                return _pruned(await self._prune.count(namespace, unchanged))
            return _pruned(await self._prune.prune(namespace, unchanged, progress.tell))

        about = {"days": terms.days, "user_id": terms.user_id, "category": terms.category, "dry_run": dry_run}
        return await self._jobs.start(namespace, PRUNE, about, work)

    async def import_file(self, namespace: str, upload: Upload) -> UUID:
        """Import an uploaded file into the namespace; what is there already is not stored twice."""
        started = False
        try:
            origin.require("write")
            if upload.origin is not None:
                checks.one_of(upload.origin, ORIGINS, "format")
            if upload.origin == EXPORT:
                require_admin()
            if upload.user_id is not None:
                checks.identifier(upload.user_id, "user")
            about = {"file": upload.path.name, "origin": upload.origin, "dry_run": upload.dry_run}
            about = await self.cleaned(namespace, about)
            job_id = await self._jobs.start(namespace, IMPORT, about, partial(self._import, namespace, upload))
            started = True
        finally:
            if not started:
                upload.discard()
        return job_id

    async def stop(self, namespace: str, job_id: str) -> None:
        """Stop a job, wherever it runs; what it has done stays done."""
        origin.require(role_for(await self._jobs.job(namespace, job_id)))
        await self._jobs.stop(namespace, job_id)

    async def _import(self, namespace: str, upload: Upload, progress: Progress) -> dict[str, Any]:
        try:
            found = upload.origin or await tasks.in_thread(recognised, upload.path, None) or EXPORT
            if upload.dry_run and found not in FORMATS:
                raise Invalid(f"A dry run is possible only with one of {', '.join(FORMATS)}")
            if origin.current().spender is not None and not upload.dry_run:
                await self._require_room(namespace, upload, found)
            report = await self._imported(namespace, upload, found, progress)
            # It quotes names from the file.
            return await self.cleaned(namespace, report.document(MAX_KEPT)) | {"origin": found}
        except Invalid as problem:
            # Whoever uploaded the file knows its name, not where it is here.
            raise Invalid(_explained(problem, upload.path).replace(f"{upload.path.parent}/", "")) from problem
        finally:
            upload.discard()

    async def _require_room(self, namespace: str, upload: Upload, found: str) -> None:
        """Refuse the whole file if it does not fit the quota of the key that uploaded it."""
        if found in FORMATS:
            new = await self._foreign_files.run(namespace, upload.path, found, upload.user_id, dry_run=True)
            await self._quotas.require_room(namespace, new.added.total() + new.changed.total(), 0)
            return
        # Each line is a record, except the first and last of an export. Records that are already stored count, too.
        lines = 0 if found == MEM0 else await tasks.in_thread(_lines, upload.path) - (2 if found == EXPORT else 0)
        await self._quotas.require_room(namespace, lines, upload.path.stat().st_size)

    async def _imported(self, namespace: str, upload: Upload, found: str, progress: Progress) -> Report:
        if found in FORMATS:
            total = await tasks.in_thread(self._foreign_files.size, upload.path, found)
            return await self._foreign_files.run(
                namespace,
                upload.path,
                found,
                upload.user_id,
                dry_run=upload.dry_run,
                progress=lambda read, _: progress.tell(progress.done + read, total),
            )
        await tasks.in_thread(refuse_other_format, upload.path, None if found == EXPORT else found)
        total = upload.path.stat().st_size

        def more(read: int) -> None:
            progress.tell(progress.done + read, total)

        with upload.path.open("rb") as file:
            if found == EXPORT:
                return await self._importing.run(file, namespace, more)
            if found == MEM0:
                return await self._adopting.mem0(namespace, file, upload.user_id, more)
            return await self._adopting.memory_json(namespace, file, more)


def _explained(problem: Invalid, path: Path) -> str:
    """What is wrong with an uploaded file; the flows that imports share name options of the command line."""
    if isinstance(problem, OtherFormat):
        return f"{path.name} looks like {problem.about}: choose the format {problem.found}"
    if not isinstance(problem, NotAnExport):
        return str(problem)
    with path.open("rb") as file:
        beginning = file.read(4)
    if not beginning:
        return f"{path.name} is empty: there is nothing to import"
    if beginning.startswith(ARCHIVES):
        return f"{path.name} is a damaged archive, or one of another kind than zip: pack it anew as a zip"
    return f"{path.name} is not a Recollect export, and its format could not be found out: choose the format"


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _pruned(pruned: Pruned) -> dict[str, Any]:
    return {
        "what": pruned.receipt.what,
        "rows": pruned.receipt.rows,
        "users": list(pruned.by_user.items())[:MAX_KEPT],
        "categories": pruned.by_category,
    }
