"""WordPiece: text to the token ids of BERT's kind of models, over any vocabulary; the local model's is bundled."""

import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files

MAX_TOKENS = 256
MAX_WORD_CHARACTERS = 100
CACHED_WORDS = 32_768
CACHED_CHARACTERS = 32_768

CLS, SEP, UNKNOWN, PADDING = "[CLS]", "[SEP]", "[UNK]", "[PAD]"

DROPPED = {"Cc", "Cf", "Co", "Cs"}
ASCII_SYMBOLS = set("$+<=>^`|~")  # BERT splits at every ASCII symbol, although Unicode calls these no punctuation
IDEOGRAPHS = (
    range(0x4E00, 0xA000),
    range(0x3400, 0x4DC0),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2B740),
    range(0x2B740, 0x2B820),
    range(0x2B920, 0x2CEB0),  # as the reference tokenizer has it; Unicode's block begins at 2B820
    range(0xF900, 0xFB00),
    range(0x2F800, 0x2FA20),
)


class WordPiece:
    """A vocabulary and how texts are folded before it is asked; KeyError if it lacks one of the special tokens."""

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        max_tokens: int = MAX_TOKENS,
        *,
        lower: bool = True,
        strip_accents: bool = True,
    ) -> None:
        self.padding = vocabulary.get(PADDING, 0)
        self._vocabulary = vocabulary
        self._first, self._last = vocabulary[CLS], vocabulary[SEP]
        self._unknown = (vocabulary[UNKNOWN],)
        self._room = max_tokens - 1
        self._folding = _folding(lower, strip_accents)
        self._cached_pieces = lru_cache(CACHED_WORDS)(self._pieces)

    def encode(self, text: str) -> list[int]:
        """The ids to give to the model: [CLS], as many of the text's tokens as there is room for, [SEP]."""
        ids = [self._first]
        for word in self.words(text):
            if len(ids) >= self._room:
                break
            # A long word does not go through the cache, which would keep the whole of it.
            ids += self._unknown if len(word) > MAX_WORD_CHARACTERS else self._cached_pieces(word)
        return [*ids[: self._room], self._last]

    def words(self, text: str) -> list[str]:
        """The folded text, split at spaces, punctuation and ideographs."""
        return text.translate(self._folding).split()

    def _pieces(self, word: str) -> tuple[int, ...]:
        """The longest known piece from the left, again and again; unknown as a whole if any part is."""
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self._vocabulary.get(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return self._unknown
            pieces.append(piece)
            start = end
        return tuple(pieces)


def encode(text: str) -> list[int]:
    """The ids of a text for the local model."""
    return bundled().encode(text)


@cache
def bundled() -> WordPiece:
    """bert-base-uncased's: the local model's."""
    return WordPiece(vocabulary((files("recollect.inference") / "data" / "vocab.txt").read_text(encoding="utf-8")))


def vocabulary(lines: str) -> dict[str, int]:
    """The tokens of a `vocab.txt`, one a line."""
    return {token: number for number, token in enumerate(lines.removesuffix("\n").split("\n"))}


class _Folding(dict[int, str]):
    """A table for `str.translate` that works each character out when it is first met.

    Decomposing one character at a time leaves out Unicode's reordering of marks. That reorders no token:
    nearly all such marks are dropped here, and no token of a vocabulary contains one of the others.
    """

    def __init__(self, lower: bool, strip_accents: bool) -> None:
        self._lower = lower
        self._strip_accents = strip_accents

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in "\t\n\r":  # the only controls that separate words; other spaces pass, and `split` knows them
            folded = " "
        elif character == "\N{REPLACEMENT CHARACTER}" or unicodedata.category(character) in DROPPED:
            folded = ""
        else:
            parts = character
            if self._strip_accents:
                decomposed = unicodedata.normalize("NFD", character)
                parts = "".join(part for part in decomposed if unicodedata.category(part) != "Mn")
            folded = "".join(
                f" {part} " if part in ASCII_SYMBOLS or unicodedata.category(part).startswith("P") else part
                for part in (parts.lower() if self._lower else parts)
            )
            if any(code in block for block in IDEOGRAPHS):
                folded = f" {folded} "
        if len(self) < CACHED_CHARACTERS:
            self[code] = folded
        return folded


@cache
def _folding(lower: bool, strip_accents: bool) -> _Folding:
    return _Folding(lower, strip_accents)
