"""Which language a text is in: by its script, and among Latin languages by the votes of its function words."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import Final

from recollect.language.letters import DEFAULT_LANGUAGE, fold, script_language
from recollect.language.stems import LATIN_LANGUAGES
from recollect.language.stop_words import STOP_WORDS

# Function words elsewhere, but words, names or abbreviations of their own in English (as "war", "Dan" and "AI"): they
# say nothing about the language, so that a question of one such word is searched for and not dropped. Nor do letters.
_SAY_NOTHING: Final = frozenset({
    *ascii_lowercase,
    *("ada", "agar", "ai", "al", "ale", "als", "also", "alt", "ante", "az", "bare", "ben", "bent", "bile"),
    *("bin", "biz", "car", "care", "chi", "ci", "co", "col", "com", "come", "comment", "con", "dal", "dan"),
    *("dem", "den", "di", "die", "dine", "dos", "dove", "ea", "eli", "elk", "em", "encore", "er", "era", "eras"),
    *("est", "eu", "ez", "fare", "fie", "font", "go", "ha", "ham", "han", "hans", "hat", "hay", "heel", "hem"),
    *("hen", "hin", "ho", "hon", "hun", "ide", "io", "jo", "kim", "kit", "la", "li", "mag", "mai", "mal", "man"),
    *("med", "meg", "men", "met", "mia", "mina", "mine", "mint", "mit", "mitt", "mod", "mot", "nada", "nas"),
    *("non", "num", "one", "op", "os", "par", "para", "pe", "per", "plus", "pod", "pour", "pun", "sale", "sans"),
    *("sea", "sem", "sia", "sim", "sin", "sine", "sit", "sob", "son", "state", "su", "sub", "sue", "tai"),
    *("tale", "tan", "ten", "tens", "till", "ton", "tot", "tout", "um", "un", "uno", "va", "van", "var", "vi"),
    *("vid", "volt", "want", "war", "wart", "wilde", "word"),
}) - STOP_WORDS[DEFAULT_LANGUAGE]  # fmt: skip

_LETTERS: Final = {
    "german": "äöü",
    "french": "àâçèêëîïôùûœé",
    "spanish": "ñáíóúé¿¡",
    "italian": "àèìòù",
    "portuguese": "ãõçáâéêíóôú",
    "swedish": "åäö",
    "danish": "æøå",
    "norwegian": "æøå",
    "finnish": "äö",
    "turkish": "ğışçöü",
    "hungarian": "őűáéíóöúü",
    "romanian": "ăâîșțşţ",
    "polish": "ąćęłńóśźż",
}

# Short words that lose their vowel before another: "l'école", "dell'amica".
_ELISIONS: Final = {
    "french": "[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quelqu|presqu",
    "italian": "[cdlmtsv]|un|all|dall|dell|nell|sull|coll|quell|quest|bell|sant|dov|com|anch|senz|tutt",
}
ELISION: Final = {
    language: re.compile(rf"(?<![\w'’])(?:{prefixes})['’](?=[a-zß-ɏ])") for language, prefixes in _ELISIONS.items()
}
_WORD: Final = re.compile(r"[^\W\d_]+")
_KANA: Final = re.compile("[\u3041-\u30ff]")
# Votes that make a document another language's than English; letters of that language count as one.
_EVIDENCE: Final = 2
_CLOSE: Final = 0.5  # a language with this share of the leader's votes may be the one, too

# Every function word with the languages it speaks for.
_VOTERS: Final = {
    word: tuple(language for language in LATIN_LANGUAGES if word in STOP_WORDS[language])
    for word in {word for language in LATIN_LANGUAGES for word in STOP_WORDS[language]} - _SAY_NOTHING
}
_ENGLISH: Final = STOP_WORDS[DEFAULT_LANGUAGE]
_FOREIGN: Final = frozenset(_VOTERS) - _ENGLISH


def detect(text: str) -> str:
    """The language of most words by their script, or the likeliest Latin one; english when there is no evidence."""
    folded = fold(text)
    words = _WORD.findall(folded)
    scripts = Counter(map(script_language, words))
    script = scripts.most_common(1)[0][0] if scripts else None
    if script is None:
        return document_language(text, folded, words)
    return "japanese" if script == "chinese" and _KANA.search(folded) else script


def document_language(text: str, folded: str, words: Sequence[str]) -> str:
    """The Latin language under which a text is indexed.

    Questions are looked up in English, too, so without good evidence English is the safe one.
    """
    votes = _votes(text, folded, words)
    likely = _likeliest(folded, votes)
    if likely and votes[likely[0]] + (_letters_of(likely[0], folded) > 0) >= _EVIDENCE:
        return likely[0]
    return DEFAULT_LANGUAGE


def question_languages(text: str, folded: str, words: Sequence[str]) -> list[str]:
    """The Latin languages that a question may be in, the likeliest first; empty without any evidence."""
    return _likeliest(folded, _votes(text, folded, words))


def _likeliest(folded: str, votes: Mapping[str, int]) -> list[str]:
    """English alone unless another has more votes: names and loan words carry foreign ones into English texts."""
    most = max(votes.values(), default=0)
    if votes.get(DEFAULT_LANGUAGE, 0) == most:
        return [DEFAULT_LANGUAGE] if votes else []
    close = [language for language in LATIN_LANGUAGES if votes.get(language, 0) >= most * _CLOSE]
    if len(close) > 1:
        close.sort(key=lambda language: (-votes[language], -_letters_of(language, folded)))
    return close


def _votes(text: str, folded: str, words: Sequence[str]) -> Counter[str]:
    elided: dict[str, int] = {}
    if "'" in folded or "’" in folded:  # how often the text drops a vowel as each language does
        counts = {language: len(elision.findall(folded)) for language, elision in ELISION.items()}
        elided = {language: count for language, count in counts.items() if count}
    if not elided and _FOREIGN.isdisjoint(words):  # most texts: every vote is one for English, too
        return Counter() if _ENGLISH.isdisjoint(words) else Counter({DEFAULT_LANGUAGE: 1})
    votes = _counted(words, elided)
    leader, most = votes.most_common(1)[0] if votes else (DEFAULT_LANGUAGE, 0)
    if votes[DEFAULT_LANGUAGE] < most and not (_ENGLISH - STOP_WORDS[leader]).isdisjoint(words):
        return _counted(_outside_names(text), elided)
    return votes


def _counted(words: Iterable[str], elided: dict[str, int]) -> Counter[str]:
    votes = Counter(elided)
    for word in words:
        votes.update(_VOTERS.get(word, ()))
    return votes


def _outside_names(text: str) -> Iterator[str]:
    """The words of a text that also has English ones, without its names: "Rua da Rosa", "Unter den Linden"."""
    written = _WORD.findall(text)
    is_capital = [word[0].isupper() for word in written]
    for place, word in enumerate(map(fold, written)):
        between = any(is_capital[max(place - 2, 0) : place]) and any(is_capital[place + 1 : place + 3])
        if word in _ENGLISH or not (is_capital[place] or between):
            yield word


def _letters_of(language: str, folded: str) -> int:
    """How many of a language's own letters occur: they part neighbours such as Danish and Swedish."""
    return sum(letter in folded for letter in _LETTERS.get(language, ""))
