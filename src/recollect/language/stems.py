"""Stems: the one form under which the inflections of a word are found; Snowball's algorithms behind a typed door."""

from typing import Final, Protocol

import Stemmer  # type: ignore[import-not-found]

from recollect.language.letters import DEFAULT_LANGUAGE, without_accents
from recollect.language.stop_words import STOP_WORDS

LATIN_LANGUAGES: Final = tuple(
    language for language in STOP_WORDS if language not in ("russian", "greek", "arabic", "hindi")
)


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 - Snowball's name


# Without a cache of its own (ours are bounded) a call runs no Python code, so threads may share it under the GIL.
_STEMMERS: Final[dict[str, _Stemmer]] = {language: Stemmer.Stemmer(language, 0) for language in STOP_WORDS}


def stem(word: str, language: str) -> str:
    """The stem of a folded word; the word itself in a language without an algorithm."""
    if language not in STOP_WORDS:
        return word
    if language == DEFAULT_LANGUAGE:
        word = without_accents(word)
    return _STEMMERS[language].stemWord(word)
