"""Feeds patterns or functions with their worst texts, and is ended by the system when one takes too long.

    python -m tests.linear.feed patterns|functions [AFTER]

It writes the name of each before it begins with it; the last name of one that was ended is the culprit. The timer
counts this process's own processor time, so that a busy machine changes nothing.
"""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

from recollect.errors import Invalid
from tests.linear import functions, patterns, worst

FINISHED = "finished"

PATTERN_LENGTH = 25_000
PATTERN_SECONDS = 0.25
FUNCTION_SECONDS = 2.5


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
    else:
        for function, call in functions.every_call():
            for kind, text in functions.TEXTS.items():
                yield f"{function} of {kind}", FUNCTION_SECONDS, iter([_answered(call, text)])


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
