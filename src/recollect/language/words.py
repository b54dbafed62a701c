"""Words: from a text to the terms that are indexed, and from a question to the terms that are looked up."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Final

from recollect.errors import Invalid
from recollect.language.detection import ELISION, document_language, question_languages
from recollect.language.letters import DEFAULT_LANGUAGE, MARKS, SCRIPT_LANGUAGES, SPACELESS, fold, script_language
from recollect.language.stems import LATIN_LANGUAGES, stem
from recollect.language.stop_words import STOP_WORDS

LANGUAGES: Final = frozenset(LATIN_LANGUAGES) | SCRIPT_LANGUAGES
# Characters of a word: more is no word (a key, an encoded file) and is cut, which also bounds the caches.
_LONGEST: Final = 64
_CACHED_WORDS: Final = 1 << 16
# With all their variants they must fit into a `sparsevec`, which holds 16,000 values.
MAX_QUERY_TERMS: Final = 500

_ASCII_WORD: Final = re.compile(rf"[a-z0-9]{{1,{_LONGEST}}}")
_WORD: Final = re.compile(
    rf"[{SPACELESS}]+|(?:(?![{SPACELESS}_])\w)(?:(?![{SPACELESS}_])[\w{MARKS}]){{,{_LONGEST - 1}}}"
)
_SPACELESS: Final = re.compile(f"[{SPACELESS}]")
_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]")
_FIRST_SPACELESS: Final = "\u0e01"
# Apostrophes join what they stand in ("don't" is "dont"); soft hyphens and joiners are invisible.
_INVISIBLE: Final = dict.fromkeys(map(ord, "'\u2019\u02bc\u00ad\u200c\u200d"))
# A word as it is written: what is left out of a term belongs to its word.
_WRITTEN: Final = re.compile(
    rf"[{SPACELESS}]+|(?:(?![{SPACELESS}_])\w)(?:(?![{SPACELESS}_])[\w{MARKS}'\u2019\u02bc\u00ad\u200c\u200d])*"
)


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """One word of a question with every term under which the index may hold it, the likeliest first."""

    word: str
    variants: tuple[str, ...]


def document_terms(text: str, language: str | None = None) -> list[str]:
    """The terms of a text in order, with repetitions. `language` takes the place of detection."""
    folded = fold(text)
    words = _split(folded)
    latin = _configured(language) or document_language(text, folded, words)
    words = _without_elisions(folded, words, [latin])
    if folded.isascii():
        return [term for word in words if (term := _term(word, latin))]
    terms: list[str] = []
    for word in words:
        if word >= _FIRST_SPACELESS and _SPACELESS.match(word):
            terms.extend(_pairs(word))
            # Many Han words are one character: a question for it must find it among its neighbours.
            terms.extend(_HAN.findall(word) if len(word) > 1 else ())
        elif term := _term(word, latin):
            terms.append(term)
    return terms


def query_terms(text: str, language: str | None = None) -> list[QueryTerm]:
    """The distinct words of a question without its stop words; each with its stems in the languages it may be in.

    A question with more than five hundred is a document: its first five hundred words are asked for.
    """
    folded = fold(text)
    words = _split(folded)
    configured = _configured(language)
    languages = [configured] if configured else question_languages(text, folded, words)
    found: dict[tuple[str, ...], QueryTerm] = {}
    for term in _query_terms(words, _without_elisions(folded, words, languages), languages):
        found.setdefault(term.variants, term)
        if len(found) == MAX_QUERY_TERMS:
            break
    return list(found.values())


def places(text: str, terms: Collection[str]) -> list[tuple[int, int]]:
    """Where the words of a text stand that are indexed under some terms: first character, and behind the last."""
    folded = fold(text)
    latin = document_language(text, folded, _split(folded))
    found: list[tuple[int, int]] = []
    for written in _WRITTEN.finditer(text):
        word = written.group().rstrip("'\u2019\u02bc")
        if is_spaceless(word):
            found += _spaceless_places(word, written.start(), terms)
        elif any(term in terms for term in document_terms(word, latin)):
            found.append((written.start(), written.start() + len(word)))
    return found


def is_spaceless(word: str) -> bool:
    """Whether a word is of a script that puts no spaces between words."""
    return _SPACELESS.match(word) is not None


def _spaceless_places(word: str, begin: int, terms: Collection[str]) -> Iterator[tuple[int, int]]:
    """Pairs and single characters that are wanted; those that touch each other are one place."""
    wanted = [False] * len(word)
    for place in range(len(word)):
        for size in (1, 2):
            if fold(part := word[place : place + size]) in terms:
                wanted[place : place + size] = [True] * len(part)
    for is_wanted, places_in_a_row in groupby(range(len(word)), wanted.__getitem__):
        if is_wanted:
            first, *rest = places_in_a_row
            yield begin + first, begin + (rest[-1] if rest else first) + 1


def _without_elisions(folded: str, words: list[str], languages: list[str]) -> list[str]:
    """The same words, "amica" in place of "dellamica" where the language is one that writes "dell'amica"."""
    if not languages or languages[0] not in ELISION:
        return words
    bare = _split(ELISION[languages[0]].sub(" ", folded))
    return bare if len(bare) == len(words) else words


def _query_terms(words: list[str], bare_words: list[str], languages: list[str]) -> Iterator[QueryTerm]:
    detected = languages[0] if languages else None
    stemmers = tuple(dict.fromkeys((*(languages or LATIN_LANGUAGES), DEFAULT_LANGUAGE)))
    for word, bare in zip(words, bare_words, strict=True):
        if _SPACELESS.match(bare):
            yield from (QueryTerm(pair, (pair,)) for pair in _pairs(bare))
        elif script := script_language(bare):
            if bare not in STOP_WORDS.get(script, ()):
                yield QueryTerm(bare, (stem(bare, script),))
        elif detected is None or bare not in STOP_WORDS[detected]:
            variants = _variants(bare, stemmers)
            # A text too short to show its language has kept the whole of it.
            yield QueryTerm(bare, variants if word == bare else (*variants, stem(word, DEFAULT_LANGUAGE)))


def _configured(language: str | None) -> str | None:
    """The language for Latin words that a configured language implies."""
    if language is None:
        return None
    if language not in LANGUAGES:
        raise Invalid(f"Unknown language {language!r}; known languages: {', '.join(sorted(LANGUAGES))}")
    return language if language in LATIN_LANGUAGES else DEFAULT_LANGUAGE


def _split(folded: str) -> list[str]:
    if folded.isascii():
        return _ASCII_WORD.findall(folded.replace("'", ""))
    return _WORD.findall(folded.translate(_INVISIBLE))


def _pairs(word: str) -> list[str]:
    """Overlapping pairs of characters, which stand for words where no spaces do; a lone character stands for itself."""
    return [a + b for a, b in pairwise(word)] or [word]


@lru_cache(_CACHED_WORDS)
def _term(word: str, latin: str) -> str | None:
    language = script_language(word) or latin
    return None if word in STOP_WORDS.get(language, ()) else stem(word, language)


@lru_cache(_CACHED_WORDS)
def _variants(word: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(stem(word, language) for language in languages))
