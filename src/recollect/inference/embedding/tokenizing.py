"""Tokenizers of model folders: our WordPiece where it fits, else the `tokenizers` library, which is an extra."""

import json
from pathlib import Path
from typing import Any, Protocol

from recollect.errors import Misconfigured
from recollect.inference.embedding import wordpiece
from recollect.inference.embedding.wordpiece import WordPiece

DESCRIPTION = "tokenizer.json"
VOCABULARY = "vocab.txt"


class Tokenizer(Protocol):
    """Turns a text into what a network is given."""

    @property
    def padding(self) -> int:
        """The id that fills up a row."""

    def encode(self, text: str) -> list[int]:
        """The ids of a text, special tokens included, cut at the model's length."""


def tokenizer_in(folder: Path, max_tokens: int) -> Tokenizer:
    """The tokenizer whose files are in a folder; raises what reading them raises."""
    if not (folder / DESCRIPTION).exists():
        lines = (folder / VOCABULARY).read_text(encoding="utf-8")
        options = read_json(folder / "tokenizer_config.json")
        return _word_piece(
            wordpiece.vocabulary(lines), max_tokens, options.get("do_lower_case", True), options.get("strip_accents")
        )
    description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    if _is_bert(description):
        normalizer = description["normalizer"]
        return _word_piece(
            description["model"]["vocab"], max_tokens, normalizer["lowercase"], normalizer["strip_accents"]
        )
    return _OfLibrary(folder / DESCRIPTION, max_tokens)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file of an export; empty if there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise Misconfigured(f"{path} cannot be read as JSON ({problem}): download it again") from problem
    return content if isinstance(content, dict) else {}


def _word_piece(vocabulary: dict[str, int], max_tokens: int, lower: bool, strip_accents: bool | None) -> WordPiece:
    # As BERT's own: accents go where case goes, unless the files say otherwise.
    strip = lower if strip_accents is None else strip_accents
    return WordPiece(vocabulary, max_tokens, lower=lower, strip_accents=strip)


def _is_bert(description: dict[str, Any]) -> bool:
    """Whether our own code makes the same tokens."""
    model, normalizer = description["model"], description.get("normalizer") or {}
    before, after = description.get("pre_tokenizer") or {}, description.get("post_processor") or {}
    around = [next(iter(part.values())).get("id") for part in after.get("single", ())]
    return (
        model.get("type") == "WordPiece"
        and model.get("continuing_subword_prefix") == "##"
        and model.get("max_input_chars_per_word") == wordpiece.MAX_WORD_CHARACTERS
        and {wordpiece.CLS, wordpiece.SEP, wordpiece.UNKNOWN} <= model["vocab"].keys()
        and normalizer.get("type") == "BertNormalizer"
        and normalizer.get("clean_text") is True
        and normalizer.get("handle_chinese_chars") is True
        and before.get("type") == "BertPreTokenizer"
        and (after.get("type") == "BertProcessing" or around == [wordpiece.CLS, "A", wordpiece.SEP])
    )


class _OfLibrary:
    """SentencePiece and byte pairs, which most multilingual models have."""

    def __init__(self, path: Path, max_tokens: int) -> None:
        try:
            from tokenizers import Tokenizer as Library
        except ModuleNotFoundError:
            raise Misconfigured(
                f"The tokenizer {path} needs the package tokenizers: install it with `pip install 'recollect[onnx]'`"
            ) from None
        self._tokenizer = Library.from_file(str(path))
        self._tokenizer.enable_truncation(max_tokens)
        self.padding = (self._tokenizer.padding or {}).get("pad_id", 0)
        self._tokenizer.no_padding()

    def encode(self, text: str) -> list[int]:
        # The library takes no half of a surrogate pair.
        ids: list[int] = self._tokenizer.encode(text.encode(errors="replace").decode()).ids
        return ids
