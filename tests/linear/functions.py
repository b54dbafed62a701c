"""Every function that reads a text, and the texts that may cost it most."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any, Literal, get_type_hints

from recollect import checks, language, logs
from recollect.inference.embedding import wordpiece
from recollect.language.masking import check_digits
from recollect.language.summary import Said

LENGTH = 20_000
LONG = 100_000

# By what they are made of; `unicodedata` runs so fast that only a longer text shows what it does with marks.
TEXTS = {
    "one word": "a" * LENGTH,
    "capitals": "A" * LENGTH,
    "capital words": "Aa " * (LENGTH // 3),
    "digits": "7" * LENGTH,
    "numbers": "7, " * (LENGTH // 3),
    "quotes": '"' * LENGTH + "x",
    "full stops and quotes": '."' * (LENGTH // 2) + "x",
    "punctuation": ".,;:!?" * (LENGTH // 6) + "x",
    "apostrophes": "l'" * (LENGTH // 2),
    "hyphens": "a-" * (LENGTH // 2),
    "markup": "*" * LENGTH + "Anna",
    "spaces": " " * LENGTH + "x",
    "line breaks": "x" + "\n" * LENGTH + "x",
    "short lines": "Ana 7\n" * (LENGTH // 6),
    "short sentences": "Ab. " * (LENGTH // 4),
    "distinct words": " ".join(f"Word{number}" for number in range(LENGTH // 8)),
    "days": "hier today " * (LENGTH // 11),
    "Han": "漢字仮名交文" * (LENGTH // 6),
    "distinct Han": "".join(chr(0x4E00 + number % 20_000) for number in range(LENGTH)),
    "marks in order": "a" + "\u0316" * LENGTH,
    "marks out of order": "a" + "\u0301" * (LONG // 2) + "\u0316" * (LONG // 2),
    "marks that fall to pieces": "\u0f73" * (LONG // 2),
    "half-width marks": "\uff9e\u0316" * (LONG // 2),
}

BESIDE_LANGUAGE: tuple[Callable[..., Any], ...] = (
    checks.text,
    checks.metadata_text,
    checks.has_words,
    logs.redact,
    wordpiece.encode,
)


def every_call() -> Iterator[tuple[str, Callable[[str], Any]]]:
    """Functions by name, each taking a text for whatever texts it takes."""
    for function in (*_of_language(), *BESIDE_LANGUAGE):
        yield f"{function.__module__}.{function.__qualname__}", _feeding(function)


def _of_language() -> Iterator[Callable[..., Any]]:
    """But for check digits, which are only asked of numbers that a form has matched."""
    for info in pkgutil.walk_packages(language.__path__, f"{language.__name__}."):
        module = importlib.import_module(info.name)
        if module is check_digits:
            continue
        for name, value in vars(module).items():
            ours = inspect.isfunction(value) and value.__module__ == info.name and not name.startswith("_")
            if ours and any(kind in _TEXTS for kind in _parameters(value).values()):
                yield value


def _parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of those that must be given."""
    hints = get_type_hints(function)
    required = inspect.signature(function).parameters.values()
    return {each.name: hints[each.name] for each in required if each.default is each.empty}


_TEXTS = (str, str | None, Iterable[str], Sequence[str], Collection[str], Sequence[Said])
_MADE: dict[Any, Callable[[str], Any]] = {
    str: lambda text: text,
    str | None: lambda text: text,
    int: lambda text: 500,
    bool: lambda text: True,
    date: lambda text: date(2024, 6, 12),
    datetime: lambda text: datetime(2024, 6, 12, tzinfo=UTC),
    Literal["NFD", "NFKC"]: lambda text: "NFKC",
    Iterable[str]: lambda text: [text],
    Sequence[str]: str.split,
    Collection[str]: lambda text: text.split()[:10],
    frozenset[str]: lambda text: frozenset(text.casefold().split()),
    Sequence[Said]: lambda text: [Said("user", text)],
}


def _feeding(function: Callable[..., Any]) -> Callable[[str], Any]:
    kinds = _parameters(function)
    if unknown := {str(kind) for kind in kinds.values() if kind not in _MADE}:
        raise NotImplementedError(f"This test cannot feed {function.__qualname__}: teach it {', '.join(unknown)}")
    return lambda text: function(**{name: _MADE[kind](text) for name, kind in kinds.items()})
