"""Model folders: an ONNX file, its tokenizer and its settings, laid out as Hugging Face's exports have them."""

import hashlib
import re
from pathlib import Path

from recollect.checks import MAX_DIMENSIONS
from recollect.errors import Misconfigured
from recollect.inference.embedding.known_models import MOST_TOKENS, Usage, known
from recollect.inference.embedding.model_file import LocalModel, ModelFile
from recollect.inference.embedding.tokenizing import DESCRIPTION, VOCABULARY, read_json

_ONNX = "onnx"
_REMEDY = "download the model's files into the folder again"

# In sentence-transformers' files, in older and newer words.
_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


def model_in(place: Path) -> LocalModel:
    """The model of a folder, or of one ONNX file in it; Misconfigured says what the folder lacks."""
    place = place.expanduser()
    named = place.suffix == ".onnx" and place.is_file()
    export = Export(place if not named else place.parents[1] if place.parent.name == _ONNX else place.parent)
    network = place if named else export.network()
    if not (export.folder / DESCRIPTION).exists() and not (export.folder / VOCABULARY).exists():
        raise Misconfigured(f"{export.folder} has no tokenizer: put the model's {DESCRIPTION} there")
    usage = export.usage()
    file = ModelFile.at(network, _REMEDY, tuple(sorted(network.parent.glob(f"{network.name}[._]data*"))))
    # What goes before questions is not part of the id: stored vectors do not depend on it.
    space = hashlib.sha256("\0".join((file.sha256, usage.pooling or "", usage.document_prefix)).encode())
    model_id = f"onnx:{export.name()}-{space.hexdigest()[:12]}"
    return LocalModel(file, model_id, export.dimensions(), usage, export.folder)


class Export:
    """A folder, and what the files in it say of the model."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise Misconfigured(f"{folder} is not a folder: write onnx: followed by the path of the model's folder")
        self.folder = folder
        self._config = read_json(folder / "config.json")
        self._pooling = read_json(folder / "1_Pooling" / "config.json")

    def network(self) -> Path:
        """The only ONNX file."""
        folder = self.folder
        found = sorted([*folder.glob("*.onnx"), *folder.glob(f"{_ONNX}/*.onnx")])
        if not found:
            raise Misconfigured(f"{folder} has no ONNX file: put the model's {_ONNX}/model.onnx there")
        if len(found) > 1:
            names = ", ".join(str(path.relative_to(folder)) for path in found)
            raise Misconfigured(f"{folder} has several ONNX files ({names}): name one, as in onnx:{found[0]}")
        return found[0]

    def name(self) -> str:
        """What the model is called: the folder's name, or the repository's in Hugging Face's cache."""
        folder = self.folder.absolute()
        cached = [part.rpartition("--")[2] for part in folder.parts if part.startswith("models--")]
        return re.sub(r"[^\w.-]+", "-", cached[-1] if cached else folder.name)

    def usage(self) -> Usage:
        """Of the files first, then of the model's family."""
        origin = Path(str(self._config.get("_name_or_path"))).name
        family = known(self.name()) or known(origin) or Usage()
        prompts = read_json(self.folder / "config_sentence_transformers.json").get("prompts") or {}
        limits = (
            read_json(self.folder / "sentence_bert_config.json").get("max_seq_length"),
            read_json(self.folder / "tokenizer_config.json").get("model_max_length"),
            self._config.get("max_position_embeddings"),
            family.max_tokens,
            MOST_TOKENS,
        )
        return Usage(
            self.pooling() or family.pooling,
            prompts.get("query") or family.query_prefix,
            prompts.get("document") or prompts.get("passage") or family.document_prefix,
            int(min(limit for limit in limits if isinstance(limit, int | float) and limit > 2)),
        )

    def pooling(self) -> str | None:
        """As sentence-transformers' files have it; one that is not supported is returned as it is called there."""
        modules = self.folder / "modules.json"
        if modules.exists() and re.search(r'models\.Dense"', modules.read_text(encoding="utf-8")):
            return "a dense layer after pooling"
        modes = [mode for mode, chosen in self._pooling.items() if mode.startswith("pooling_") and chosen is True]
        named = self._pooling.get("pooling_mode")
        return str(named) if named else " and ".join(_POOLINGS.get(mode, mode) for mode in modes) or None

    def dimensions(self) -> int | None:
        """None if only a run can tell."""
        found = (
            self._pooling.get("word_embedding_dimension") or self._config.get("hidden_size") or self._config.get("dim")
        )
        if not isinstance(found, int):
            return None
        if found > MAX_DIMENSIONS:
            raise Misconfigured(
                f"The model in {self.folder} has {found:,} dimensions: at most {MAX_DIMENSIONS:,} can be stored"
            )
        return found
