"""The words of relative dates in English, German, French and Spanish."""

import unicodedata
from collections.abc import Collection, Mapping
from typing import Final, TypeVar

_Meaning = TypeVar("_Meaning")


def _words(meanings: Mapping[_Meaning, str]) -> dict[str, _Meaning]:
    """Each word, also as one writes it without accents, with what it means."""
    spelled = {word: meaning for meaning, words in meanings.items() for word in words.split()}
    plain = {
        "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter)): meaning
        for word, meaning in spelled.items()
    }
    return plain | spelled


def any_of(words: Collection[str]) -> str:
    """The part of a pattern that takes any of them, the longest first."""
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


UNITS: Final = _words({
    "hour": "hour hours stunde stunden heure heures hora horas minute minutes minuten minuto minutos",
    "day": "day days tag tage tagen jour jours día días",
    "week": "week weeks woche wochen semaine semaines semana semanas",
    "month": "month months monat monate monaten mois mes meses",
    "year": "year years jahr jahre jahren an ans année années año años",
})  # fmt: skip
SPANS: Final = {word: unit for word, unit in UNITS.items() if unit in ("week", "month", "year")}
WEEKENDS: Final = _words({"weekend": "weekend wochenende week-end finde"})

WEEKDAYS: Final = _words({
    0: "monday montag lundi lunes",
    1: "tuesday dienstag mardi martes",
    2: "wednesday mittwoch mercredi miércoles",
    3: "thursday donnerstag jeudi jueves",
    4: "friday freitag vendredi viernes",
    5: "saturday samstag sonnabend samedi sábado",
    6: "sunday sonntag dimanche domingo",
})  # fmt: skip

# By their first month.
SEASONS: Final = _words({
    3: "spring frühling frühjahr printemps primavera",
    6: "summer sommer été verano",
    9: "autumn fall herbst automne otoño",
    12: "winter hiver invierno",
})  # fmt: skip

_GERMAN_ENDINGS: Final = ("e", "en", "er", "es", "em")


def _declined(*stems: str) -> str:
    return " ".join(f"{stem}{ending}" for stem in stems for ending in _GERMAN_ENDINGS)


BEFORE: Final = _words({
    -1: f"last previous {_declined('letzt', 'vorig', 'vergangen')} último última",
    0: f"this {_declined('dies')} ce cet cette este esta",
    1: f"next coming {_declined('nächst', 'kommend')} próximo próxima",
})  # fmt: skip
"""Words before what they place: "last week"."""
AFTER: Final = _words({
    -1: "dernier dernière passé passée pasado pasada",
    1: "prochain prochaine próximo próxima",
}) | {"que viene": 1}  # fmt: skip
"""Words behind it: "la semaine dernière"."""

# The least and the most that is meant.
COUNTS: Final = {
    word: (least, most)
    for (least, most), words in {
        (1, 1): "a an one einem einer einen ein un une una uno",
        (2, 2): "two zwei deux dos",
        (3, 3): "three drei trois tres",
        (4, 4): "four vier quatre cuatro",
        (5, 5): "five fünf cinq cinco",
        (6, 6): "six sechs seis",
        (7, 7): "seven sieben sept siete",
        (8, 8): "eight acht huit ocho",
        (9, 9): "nine neun neuf nueve",
        (10, 10): "ten zehn dix diez",
        (11, 11): "eleven elf onze",
        (12, 12): "twelve zwölf douze doce",
        (2, 5): "few wenigen quelques unos unas pocos pocas",
        (2, 6): "several einigen mehreren plusieurs varios varias",
    }.items()
    for word in words.split()
} | {
    "a few": (2, 5),
    "ein paar": (2, 5),
    "un par de": (2, 3),
    "a couple": (2, 3),
    "a couple of": (2, 3),
    "couple of": (2, 3),
}

# Days from today, the first and the last; None for a phrase that is no date, though a part of it would be.
PHRASES: Final[dict[str, tuple[int, int] | None]] = {
    phrase: days
    for days, phrases in {
        (0, 0): (
            "today|tonight|this morning|this afternoon|this evening|heute|heute morgen|heute früh|heute abend|"
            "aujourd'hui|ce matin|cet après-midi|ce soir|hoy|esta mañana|esta tarde|esta noche"
        ),
        (-1, -1): "yesterday|gestern|gestern morgen|hier|hier soir|hier matin|hier après-midi|ayer|ayer por la mañana",
        (-1, 0): "last night|letzte nacht|cette nuit|la nuit dernière|anoche",
        (-2, -2): "day before yesterday|vorgestern|avant-hier|anteayer|antier|antes de ayer",
        (1, 1): "tomorrow|morgen|demain|mañana",
        (2, 2): "day after tomorrow|übermorgen|après-demain|pasado mañana",
        (-14, -1): "the other day|l'autre jour|el otro día",
        None: "hoy en día|guten morgen|am morgen|jeden morgen|der morgen|la mañana|cada mañana|todas las mañanas",
    }.items()
    for phrase in phrases.split("|")
}
