"""Sameness: whether two texts say the same thing, judged by their words.

Vectors cannot judge it. Measured with the local model, the cosine of sentences that say the same was .83 to .99, and
that of sentences which differ in a number, a name, a negation or who did it to whom was up to .998.
"""

import re
from itertools import pairwise
from typing import Final
from unicodedata import category

from recollect.language.letters import fold

LONGEST_SAYING: Final = 100_000  # characters; no one says more than that a second time in other words

# Of these a sentence may have one more or less. Not "a": few friends are not a few. Not "not", nor any other word that
# says when, where, how many or whether.
_SAYING_NOTHING: Final = frozenset({"the", "also", "really", "truly", "actually", "please"})
_NEGATIONS: Final = frozenset(
    ("not", "no", "never", "none", "nobody", "nothing", "nowhere", "neither", "nor", "without", "hardly", "non")
)
# Not "one", which is also somebody.
_NUMBERS: Final = {
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "eleven": "11",
    "twelve": "12",
}
_APOSTROPHES: Final = str.maketrans("\u2018\u2019\u02bc", "'''")
_CONTRACTIONS: Final = (
    (re.compile(r"\bcan(?:'t|not)\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bshan't\b"), "shall not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"'m\b"), " am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
)
_BETWEEN_LETTERS: Final = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_ASKED_TO_REMEMBER: Final = re.compile(r"^\W*(?:please )?(?:remember|note)(?: that\b|:)")

# What may stand before and behind a word. A question mark says something, and so does any other sign: A+, -5, #1.
# Behind a digit a quotation mark may be an inch.
_OPENING: Final = "\"'([{«„“"
_CLOSING: Final = frozenset(".,;:!…)]}»。、")
_CLOSING_QUOTES: Final = frozenset("\"'”")
_ALONE: Final = frozenset(".,;:!…-–—•*")

_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")
_WORD: Final = re.compile(r"\w+")
_LABEL: Final = re.compile(r"^\s*(?:(?:user|assistant|system):|[-*•]|\d+[.)])\s+", re.I)
# An assistant says "you" of whom a memory calls the user, and who says "I".
_PERSONS: Final = {
    "i": "user",
    "me": "user",
    "you": "user",
    "my": "user's",
    "your": "user's",
    "am": "be",
    "are": "be",
    "is": "be",
    "has": "have",
    "does": "do",
}


def gist(text: str) -> str:
    """What a text says, the same for all texts that differ only in ways that say nothing.

    Those are case, white space, punctuation around words, contractions, "three" for 3, "remember that" before it, and
    a few words that change nothing. A text as long as a book says only what it says.
    """
    if len(text) > LONGEST_SAYING:
        return text
    words = _words(text)
    return " ".join([word for word in words if word not in _SAYING_NOTHING] or words) or fold(text)


def sayings(text: str) -> frozenset[str]:
    """What each sentence of a text says; one about "you" or "me" says the same as that one about the user."""
    found: set[str] = set()
    for labelled in _SENTENCE_END.split(text):
        sentence = _LABEL.sub("", labelled)
        if not _words(sentence):
            continue
        # The same for every addressee: "you like" is "user likes".
        names = {fold(word) for word in _WORD.findall(sentence) if word[0].isupper()}
        words = [_PERSONS.get(word, word) for word in gist(sentence).split(" ")]
        agreeing = [
            word.removesuffix("s") if before in ("user", "and") and word not in names else word
            for before, word in pairwise(["", *words])
        ]
        found.add(" ".join(agreeing))
    return frozenset(found)


def same_facts(one: str, other: str) -> bool:
    """Whether two texts have the same numbers and names and negate as often; if not, they do not say the same."""
    words, others = _words(one), _words(other)
    negations = [sum(word in _NEGATIONS for word in said) for said in (words, others)]
    return negations[0] == negations[1] and _facts(one) <= set(others) and _facts(other) <= set(words)


def _facts(text: str) -> set[str]:
    """Words with a digit or a capital letter; one that only begins a sentence is taken for a name, too."""
    marked = (chunk for chunk in text.split() if any(sign.isupper() or sign.isdigit() for sign in chunk))
    return set(_words(" ".join(marked))) - _SAYING_NOTHING


def _words(text: str) -> list[str]:
    # Folding would make 102 of 10².
    marked = text if text.isascii() else "".join(f"^{sign}" if category(sign) == "No" else sign for sign in text)
    plain = fold(marked).translate(_APOSTROPHES)
    if "'" in plain or "cannot" in plain:
        for form, whole in _CONTRACTIONS:
            plain = form.sub(whole, plain)
    plain = _BETWEEN_LETTERS.sub(" ", _ASKED_TO_REMEMBER.sub("", plain))
    words: list[str] = []
    for chunk in plain.split():
        if chunk.isalnum():
            words.append(_NUMBERS.get(chunk, chunk))
            continue
        word = chunk.lstrip(_OPENING)
        # From the end: a regular expression that looks for it from the front takes a time that grows with the square.
        end = len(word)
        while end and (
            word[end - 1] in _CLOSING
            or (word[end - 1] in _CLOSING_QUOTES and not word[max(end - 2, 0) : end - 1].isdecimal())
        ):
            end -= 1
        word = word[:end]
        if any(character.isalnum() for character in word):
            words.append(_NUMBERS.get(word, word))
        elif not _ALONE.issuperset(chunk):  # signs alone stay unless they only divide
            words.append(chunk)
    return words
