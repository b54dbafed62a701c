"""Feeds patterns or functions with their worst texts, and is ended by the system when one takes too long.

    python -m tests.linear.feed patterns|functions|orders [AFTER]

It writes the name of each before it begins with it; the last name of one that was ended is the culprit. The timer
counts this process's own processor time, so that a busy machine changes nothing.
"""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from recollect.errors import Invalid
from recollect.language.defence.orders import suspicions
from tests.linear import functions, patterns, phrases, worst

FINISHED = "finished"

PATTERN_LENGTH = 25_000
PATTERN_SECONDS = 0.25
FUNCTION_SECONDS = 2.5

# A bounded pattern is linear and may cost hundreds of times what others do. On texts made of its own words, all that
# screening does takes no more than so many times what it takes on ordinary ones.
ORDINARY_TIMES = 6
ORDERS_LENGTH = 5_000


def main(what: str, after: str = "") -> None:
    began = not after
    for name, seconds, calls in feeds(what):
        if began:
            print(name, flush=True)
            for call in calls:
                # A pattern runs without ever asking for signals. What this one does by default needs no asking.
                signal.setitimer(signal.ITIMER_PROF, seconds)
                call()
        began = began or name == after
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(FINISHED)


def feeds(what: str) -> Iterator[tuple[str, float, Iterator[Callable[[], None]]]]:
    """What is fed by its name, the seconds that each call may take, and the calls."""
    if what == "patterns":
        for place, pattern in sorted(patterns.every_pattern().items()):
            yield place, PATTERN_SECONDS, _matches(pattern, searching=not patterns.is_only_matched(place))
    elif what == "orders":
        seconds = ORDINARY_TIMES * _ordinary_seconds()
        for text in phrases.texts(ORDERS_LENGTH):
            yield repr(text[:80]), seconds, iter([_answered(_screened, text)])
    else:
        for function, call in functions.every_call():
            for kind, text in functions.TEXTS.items():
                yield f"{function} of {kind}", FUNCTION_SECONDS, iter([_answered(call, text)])


def _screened(text: str) -> object:
    return suspicions(text, is_foreign=True)


def _ordinary_seconds() -> float:
    """Of this process alone, the most of several."""
    took = []
    for _ in range(5):
        began = time.process_time()
        _screened(phrases.ordinary(ORDERS_LENGTH))
        took.append(time.process_time() - began)
    return max(took)


def _matches(pattern: patterns.Pattern, *, searching: bool) -> Iterator[Callable[[], None]]:
    for text in worst.texts(pattern, PATTERN_LENGTH):

        def feed(text: str = text) -> None:
            given, nothing = (text, "") if isinstance(pattern.pattern, str) else (text.encode(), b"")
            if searching:
                pattern.sub(nothing, given)
            pattern.match(given)
            pattern.fullmatch(given)

        yield feed


def _answered(call: Callable[[str], object], text: str) -> Callable[[], None]:
    def feed() -> None:
        with suppress(Invalid):
            call(text)

    return feed


if __name__ == "__main__":
    main(*sys.argv[1:])
