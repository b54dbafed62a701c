"""The local embedder: all-MiniLM-L6-v2 with int8 weights, or any other model on disk, in worker threads of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from recollect import tasks
from recollect.inference.embedding import cores
from recollect.inference.embedding.embedder import Closed
from recollect.inference.embedding.folder import model_in
from recollect.inference.embedding.model_file import LocalModel, ModelFile, minilm
from recollect.inference.embedding.network import Network

if TYPE_CHECKING:
    from recollect.inference.embedding.embedder import Vector

THREADS = 1

# Tokens in one run of the network, padding included. More is no faster on a CPU, and this bounds onnxruntime's arena,
# which never shrinks (without the arena, runs of long texts are up to three times slower).
TOKENS_PER_RUN = 512

# Nothing is signalled when requests stop coming in.
LOOK_AGAIN_SECONDS = 0.02

# Longer than a run of the network takes, or loading it.
CLOSE_SECONDS = 1.0

_Result = TypeVar("_Result")


class LocalEmbedder:
    """Embeds on this machine. The model is read on first use; the event loop never waits for it.

    Questions have a thread of their own, so that none waits behind the documents of an import. Documents have as many
    as there are cores, which yield to everything else.
    """

    def __init__(self, model: LocalModel, threads: int = THREADS) -> None:
        self.model_id = model.model_id
        self.dimensions = model.dimensions
        self._model = model
        self._threads = threads
        self._network: Network | None = None
        self._at_once = cores.at_once()
        self._running = 0
        self._released: asyncio.Event | None = None
        self._documents = ThreadPoolExecutor(self._at_once, "recollect-embed-documents", cores.yield_to_others)
        self._questions = ThreadPoolExecutor(1, "recollect-embed-questions")
        self._closed = False

    @classmethod
    def locate(cls, path: Path | None = None, threads: int = THREADS) -> Self | None:
        """The embedder for the file or folder at `path`, else for the wheel's; None if there is neither."""
        if path is not None:
            path = path.expanduser()
            return cls(model_in(path) if path.is_dir() else minilm(ModelFile.at(path)), threads)
        file = ModelFile.of_wheel()
        return None if file is None else cls(minilm(file), threads)

    @classmethod
    def in_folder(cls, folder: Path) -> Self:
        """The embedder for any model; its files are looked at, and hashed, now."""
        return cls(model_in(folder))

    async def load(self) -> None:
        """Read the model now, for those who would rather learn at once that it is unusable."""
        await self._in(self._documents, self._load)

    def begin_loading(self) -> None:
        """Read the model while the caller does something else; a failure shows when it is asked to embed."""
        self._questions.submit(self._load)

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        prefixed = [self._model.usage.document_prefix + text for text in texts]
        encoded = await self._in(self._documents, partial(self._encode, prefixed))
        # Texts of similar length go together, within TOKENS_PER_RUN.
        runs: list[list[int]] = []
        for position in sorted(range(len(encoded)), key=lambda position: len(encoded[position])):
            if not runs or (len(runs[-1]) + 1) * len(encoded[position]) > TOKENS_PER_RUN:
                runs.append([])
            runs[-1].append(position)
        vectors: dict[int, Vector] = {}

        async def embed_runs() -> None:
            while runs:
                run = runs.pop()
                batch = [encoded[position] for position in run]
                async with self._idle_core():
                    found = await self._in(self._documents, partial(self._vectors, batch))
                vectors.update(zip(run, found, strict=True))

        async with tasks.beside(*(embed_runs() for _ in range(self._at_once))) as working:
            await asyncio.gather(*working)
        return [vectors[position] for position in range(len(texts))]

    async def embed_query(self, text: str) -> Vector:
        cores.note_request()
        asked = self._model.usage.query_prefix + text
        return (await self._in(self._questions, lambda: self._vectors(self._encode([asked]))))[0]

    def close(self) -> None:
        """Take no more work. What is running ends by itself, so this waits for nothing.

        The network goes with the last who uses it, and not when Python's collector comes, to which it looks small.
        """
        self._closed = True
        self._network = None
        self._documents.shutdown(wait=False)
        self._questions.shutdown(wait=False)

    async def ended(self) -> None:
        """Close, and wait a moment for what is running: Python would do that at the end of the process, and for longer.

        An import that still runs then would also change the exit code of a program that Ctrl-C has ended.
        """
        self.close()
        with suppress(RuntimeError):  # no thread can be started any more, because Python has waited already
            await tasks.ended_within(CLOSE_SECONDS, tasks.in_thread(self._join))

    def _join(self) -> None:
        self._documents.shutdown()
        self._questions.shutdown()

    @asynccontextmanager
    async def _idle_core(self) -> AsyncIterator[None]:
        """Wait for a core; while requests come in, only one is for documents."""
        while self._running >= (1 if cores.requests_come_in() else self._at_once):
            self._released = self._released or asyncio.Event()
            await tasks.set_within(LOOK_AGAIN_SECONDS, self._released)
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if self._released is not None:
                self._released.set()
                self._released = None

    async def _in(self, worker: Executor, work: Callable[[], _Result]) -> _Result:
        self._check_open()
        try:
            under_way = asyncio.get_running_loop().run_in_executor(worker, work)
        except RuntimeError as problem:
            if "shutdown" not in str(problem):
                raise
            # Python takes no more work at the end of the process, before it calls our close.
            raise Closed("Shutting down; pending passages are embedded on the next start") from problem
        return await under_way

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [*map(self._loaded().encode, texts)]

    def _vectors(self, batch: Sequence[Sequence[int]]) -> list[Vector]:
        return self._loaded().vectors(batch)

    def _load(self) -> None:
        self._loaded()  # is not the result: a future, and the loop with it, would hold on to the network

    def _loaded(self) -> Network:
        self._check_open()
        network = self._network or Network.of(self._model, self._threads)
        self.dimensions = network.dimensions
        self._network = None if self._closed else network
        return network

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("The local embedding model is closed: open a new engine")
