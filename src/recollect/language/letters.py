"""Letters: one spelling for equal ones, which of them make a word, and whose script they are."""

import re
from itertools import groupby
from typing import Final, Literal
from unicodedata import combining, normalize

DEFAULT_LANGUAGE: Final = "english"

# Signs that belong to the letter before them but that `\w` does not know: accents and the vowel signs of Hebrew,
# Arabic, the scripts of India and their neighbours.
MARKS: Final = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u0900-\u0903\u093a-\u093c\u093e-\u094f"
    "\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u09d7\u0a01-\u0a03\u0a3c-\u0a51\u0a70\u0a71\u0a81-\u0a83"
    "\u0abc\u0abe-\u0acd\u0b01-\u0b03\u0b3c\u0b3e-\u0b57\u0b82\u0bbe-\u0bcd\u0bd7\u0c00-\u0c04\u0c3c\u0c3e-\u0c56"
    "\u0c81-\u0c83\u0cbc\u0cbe-\u0cd6\u0d00-\u0d03\u0d3b\u0d3c\u0d3e-\u0d4d\u0d57\u0d81-\u0d83\u0dca-\u0ddf"
)

# Scripts that put no spaces between words: Thai, Lao, Myanmar, Khmer, then kana and Han.
SPACELESS: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0eff\u1000-\u1049\u1050-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f"
    "\u1780-\u17d3\u17e0-\u17e9"
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\U00020000-\U0003ffff"
)

# First letter of a word -> the language of its script. A script with several languages goes to the one that most write.
_SCRIPTS: Final = (
    (re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]"), "greek"),
    (re.compile(r"[\u0400-\u052f]"), "russian"),
    (re.compile(r"[\u0590-\u05ff]"), "hebrew"),
    (re.compile(r"[\u0600-\u06ff\u0750-\u077f]"), "arabic"),
    (re.compile(r"[\u0900-\u097f]"), "hindi"),
    (re.compile(r"[\u0e00-\u0e7f]"), "thai"),
    (re.compile(r"[\u0e80-\u0eff]"), "lao"),
    (re.compile(r"[\u1000-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f]"), "burmese"),
    (re.compile(r"[\u1780-\u17ff]"), "khmer"),
    (re.compile(r"[\u3040-\u30ff\u31f0-\u31ff]"), "japanese"),
    (re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff]"), "korean"),
    (re.compile(r"[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]"), "chinese"),
)
SCRIPT_LANGUAGES: Final = frozenset(language for _, language in _SCRIPTS)
# What may be a mark: no letter, digit or ASCII; and two signs of Japanese that Unicode calls letters and takes apart.
_MANY_MARKS: Final = re.compile(r"[^\w\x00-\x7f]{32,}")
_HALF_WIDTH_MARKS: Final = ("\uff9e", "\uff9f")
_MANY_MARKS_OF_ANY_WIDTH: Final = re.compile(r"(?:[^\w\x00-\x7f]|[\uff9e\uff9f]){32,}")
_FIRST_OTHER_SCRIPT: Final = "\u0370"  # everything before it is Latin


def fold(text: str) -> str:
    """One spelling for what readers take as the same word, whatever its case and the composition of its letters."""
    if text.isascii():
        return text.lower()
    folded = normalize("NFKC", normalized("NFKC", text).casefold())
    # The rest of Turkish dotted capitals, and the Russian letter that most people write without its dots.
    return folded.replace("i\u0307", "i").replace("ё", "е")


def normalized(form: Literal["NFD", "NFKC"], text: str) -> str:
    """Unicode's normal form, in a time that grows with the text alone.

    `unicodedata` sorts marks by insertion, which takes minutes for a letter that a megabyte of them is piled on. So
    long runs of them are put into their order first.
    """
    decomposed: Literal["NFD", "NFKD"] = "NFD" if form == "NFD" else "NFKD"
    any_width = any(mark in text for mark in _HALF_WIDTH_MARKS)
    many = _MANY_MARKS_OF_ANY_WIDTH if any_width else _MANY_MARKS
    parts: list[str] = []
    end = 0
    for run in many.finditer(text):
        parts.append(text[end : run.start()])
        signs = "".join([normalize(decomposed, sign) for sign in run.group()])
        for _, alike in groupby(signs, key=lambda sign: combining(sign) > 0):
            parts += sorted(alike, key=combining)  # marks by their class; other signs have none and stay as they are
        end = run.end()
    return normalize(form, "".join(parts) + text[end:])


def without_accents(word: str) -> str:
    """The bare letters of a Latin word: readers of English type "cafe" for "café"."""
    return word if word.isascii() else re.sub("[\u0300-\u036f]", "", normalized("NFD", word))


def script_language(word: str) -> str | None:
    """The language that a word's script alone decides; None for Latin letters, digits and scripts we do not know."""
    if word[0] < _FIRST_OTHER_SCRIPT:
        return None
    return next((language for script, language in _SCRIPTS if script.match(word)), None)
