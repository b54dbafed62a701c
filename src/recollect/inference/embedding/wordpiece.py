"""WordPiece: text to the token ids of bert-base-uncased, the vocabulary of the local embedding model."""

import unicodedata
from functools import cache, lru_cache
from importlib.resources import files

MAX_TOKENS = 256
MAX_WORD_CHARACTERS = 100
CACHED_WORDS = 32_768
CACHED_CHARACTERS = 32_768

CLS, SEP, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"

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


def encode(text: str) -> list[int]:
    """The ids to give to the model: [CLS], at most 254 of the text's tokens, [SEP]."""
    vocabulary = _vocabulary()
    ids = [vocabulary[CLS]]
    for word in words(text):
        if len(ids) >= MAX_TOKENS - 1:
            break
        # A long word does not go through the cache, which would keep the whole of it.
        ids += (vocabulary[UNKNOWN],) if len(word) > MAX_WORD_CHARACTERS else _cached_pieces(word)
    return [*ids[: MAX_TOKENS - 1], vocabulary[SEP]]


def words(text: str) -> list[str]:
    """The text in lower case without accents, split at spaces, punctuation and ideographs."""
    return text.translate(_FOLDED).split()


@lru_cache(CACHED_WORDS)
def _cached_pieces(word: str) -> tuple[int, ...]:
    """The longest known piece from the left, again and again; unknown as a whole if any part is."""
    vocabulary = _vocabulary()
    pieces: list[int] = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            piece = vocabulary.get(prefix + word[start:end])
            if piece is not None:
                break
        else:
            return (vocabulary[UNKNOWN],)
        pieces.append(piece)
        start = end
    return tuple(pieces)


@cache
def _vocabulary() -> dict[str, int]:
    lines = (files("recollect.inference") / "data" / "vocab.txt").read_text(encoding="utf-8")
    return {token: number for number, token in enumerate(lines.removesuffix("\n").split("\n"))}


class _Folded(dict[int, str]):
    """A table for `str.translate` that works each character out when it is first met.

    Decomposing one character at a time leaves out Unicode's reordering of marks. That reorders no token:
    nearly all such marks are dropped here, and no token of the vocabulary contains one of the others.
    """

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in "\t\n\r":  # the only controls that separate words; other spaces pass, and `split` knows them
            folded = " "
        elif character == "\N{REPLACEMENT CHARACTER}" or unicodedata.category(character) in DROPPED:
            folded = ""
        else:
            decomposed = unicodedata.normalize("NFD", character)
            parts = (part.lower() for part in decomposed if unicodedata.category(part) != "Mn")
            folded = "".join(
                f" {part} " if part in ASCII_SYMBOLS or unicodedata.category(part).startswith("P") else part
                for part in parts
            )
            if any(code in block for block in IDEOGRAPHS):
                folded = f" {folded} "
        if len(self) < CACHED_CHARACTERS:
            self[code] = folded
        return folded


_FOLDED = _Folded()
