"""Networks: ONNX files loaded into onnxruntime, shared by the engines of a process."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakValueDictionary

from recollect import forks
from recollect.checks import MAX_DIMENSIONS
from recollect.errors import Misconfigured
from recollect.inference.embedding import wordpiece
from recollect.inference.embedding.tokenizing import Tokenizer, tokenizer_in

if TYPE_CHECKING:
    from recollect.inference.embedding.embedder import Vector
    from recollect.inference.embedding.model_file import LocalModel, ModelFile

# One vector a text, else one a token, by the names that exports give them; else whatever comes first.
_OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")
_NUMBERS = {"tensor(int32)": "int32", "tensor(int64)": "int64"}


class Network:
    """A loaded network with its tokenizer: texts to token ids, and token ids to unit vectors."""

    def __init__(self, model: LocalModel, session: Any, tokenizer: Tokenizer) -> None:
        self._model = model
        self._session = session
        self._tokenizer = tokenizer
        self._inputs = {declared.name: declared.type for declared in session.get_inputs()}
        outputs = [declared.name for declared in session.get_outputs()]
        self._output = next((name for name in _OUTPUTS if name in outputs), outputs[0])
        self.dimensions = self.vectors([self.encode("")])[0].size

    @classmethod
    def of(cls, model: LocalModel, threads: int) -> Network:
        """The one that others in this process use already, or a new one."""
        with forks.importing():
            network = _IN_USE.get((model, threads))
            if network is None:
                network = _IN_USE[model, threads] = cls._load(model, threads)
            return network

    @classmethod
    def _load(cls, model: LocalModel, threads: int) -> Self:
        file = model.file
        tokenizer = _tokenizer(model)
        try:
            network = cls(model, _session(file, threads), tokenizer)
        except Misconfigured:
            raise
        except Exception as problem:  # onnxruntime's errors have no base class of their own
            raise Misconfigured(f"The embedding model {file.path} cannot be run: {file.remedy}") from problem
        found = f"The embedding model {file.path} produces vectors with {network.dimensions} dimensions"
        if model.dimensions not in (None, network.dimensions):
            raise Misconfigured(f"{found} instead of {model.dimensions}: {file.remedy}")
        if network.dimensions > MAX_DIMENSIONS:
            raise Misconfigured(f"{found}, and at most {MAX_DIMENSIONS:,} can be stored: use a smaller one")
        return network

    def encode(self, text: str) -> list[int]:
        """The token ids of a text."""
        return self._tokenizer.encode(text)

    def vectors(self, batch: Sequence[Sequence[int]]) -> list[Vector]:
        """One unit vector for the ids of each text."""
        import numpy as np

        ids = np.full((len(batch), max(map(len, batch))), self._tokenizer.padding, np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        if unknown := self._inputs.keys() - known.keys():
            raise self._refused(f"wants the input {min(unknown)}, which no sentence model has: use another export")
        feeds = {name: known[name].astype(_NUMBERS.get(kind, "int64")) for name, kind in self._inputs.items()}
        (output,) = self._session.run([self._output], feeds)
        vectors = self._pooled(output.astype(np.float32), mask[:, :, None].astype(np.float32))
        return list(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def _pooled(self, output: Vector, weights: Vector) -> Vector:
        """One vector a text: the network's own, that of the first token, or the mean over the text's own tokens."""
        pooling = self._model.usage.pooling
        if output.ndim == 2:
            return output
        if pooling == "cls":
            return output[:, 0]
        if pooling == "mean":
            means: Vector = (output * weights).sum(axis=1) / weights.sum(axis=1)
            return means
        if pooling is None:
            raise self._refused("gives a vector for every token: put the model's 1_Pooling/config.json into its folder")
        raise self._refused(f"needs {pooling}, which is not supported: use an export that has it inside, or another")

    def _refused(self, why: str) -> Misconfigured:
        return Misconfigured(f"The embedding model {self._model.file.path} {why}")


def _tokenizer(model: LocalModel) -> Tokenizer:
    if model.folder is None:
        return wordpiece.bundled()
    try:
        return tokenizer_in(model.folder, model.usage.max_tokens)
    except Misconfigured:
        raise
    except Exception as problem:  # the tokenizers library's errors have no class of their own
        raise Misconfigured(f"The tokenizer in {model.folder} cannot be read: {model.file.remedy}") from problem


# A hundred megabytes each: engines in one process share them.
_IN_USE: WeakValueDictionary[tuple[LocalModel, int], Network] = WeakValueDictionary()


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


def _session(file: ModelFile, threads: int) -> Any:
    content = file.read()
    # It reports to its makers unless it is told not to, and nothing may leave this process.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads leave the core to others
    options.enable_mem_pattern = False  # it keeps a plan, and its memory, for every shape ever seen
    if file.data:
        place = str(file.path.parent.absolute())
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", place)
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
