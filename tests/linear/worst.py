"""Texts that cost a regular expression most: what its repetitions repeat, many times, then something that fails."""

import re
from collections.abc import Iterable, Iterator
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

# A character of each kind that patterns tell apart.
ALPHABET = ("a", "7", " ", "\n", ".", '"', "-", ":", "漢", "\u0301")
ENDINGS = ("", "\x00", "\n!")
REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
# What a bounded repetition costs is a constant; a large one is fed all the same.
LARGE = 16
SAMPLES = 8


def texts(pattern: re.Pattern[Any], length: int) -> Iterator[str]:
    """Each about so long."""
    tree = _parser.parse(pattern.pattern, pattern.flags)
    for start, repeated in sorted(set(_pumps(tree, tree, ""))):
        body = repeated * (length // len(repeated))
        for end in ENDINGS:
            yield start + body + end


def _pumps(tree: Any, items: Iterable[Any], before: str) -> Iterator[tuple[str, str]]:
    """What stands before a repetition, and what may be repeated; and all of it together, many times."""
    for operation, argument in items:
        if operation in REPEATS:
            low, high, body = argument
            samples = [sample for sample in _samples(tree, body) if sample]
            if high > LARGE:
                fitting = _compiled(tree, list(body))
                words = {*samples, *(one for one in ALPHABET if fitting.fullmatch(one)), "".join(samples[:6])} - {""}
                yield from ((before, word) for word in words)
                yield from (("", before + word) for word in words)
            yield from _pumps(tree, body, before)
            before += "".join(samples[:1]) * max(low, 1)
        elif operation is _constants.BRANCH:
            for branch in argument[1]:
                yield from _pumps(tree, branch, before)
            before += next(iter(_samples(tree, [(operation, argument)])), "")
        elif operation is _constants.SUBPATTERN:
            yield from _pumps(tree, argument[3], before)
            before += next(iter(_samples(tree, argument[3])), "")
        elif operation is _constants.ATOMIC_GROUP:
            yield from _pumps(tree, argument, before)
            before += next(iter(_samples(tree, argument)), "")
        elif operation in (_constants.ASSERT, _constants.ASSERT_NOT):
            yield from _pumps(tree, argument[1], before)
        else:
            before += next(iter(_samples(tree, [(operation, argument)])), "")
    if before:
        yield "", before


def _samples(tree: Any, items: Iterable[Any]) -> list[str]:
    """A few texts that a part of a pattern matches, leaving out what it only looks at."""
    samples = [""]
    for operation, argument in items:
        more = _samples_of(tree, operation, argument)[:SAMPLES]
        samples = [(samples[n % len(samples)] + more[n % len(more)]) for n in range(max(len(samples), len(more)))]
    return samples


def _samples_of(tree: Any, operation: Any, argument: Any) -> list[str]:
    match operation:
        case _constants.LITERAL:
            return [chr(argument)]
        case _constants.IN | _constants.NOT_LITERAL | _constants.ANY:
            one = _compiled(tree, [(operation, argument)])
            return [sign for sign in (*_written_out(argument), *ALPHABET) if one.fullmatch(sign)] or ["\ufffd"]
        case _constants.MAX_REPEAT | _constants.MIN_REPEAT | _constants.POSSESSIVE_REPEAT:
            low, _, body = argument
            return [sample * max(low, 1) for sample in _samples(tree, body)]
        case _constants.BRANCH:
            return [sample for branch in argument[1] for sample in _samples(tree, branch)[:2]]
        case _constants.SUBPATTERN:
            return _samples(tree, argument[3])
        case _constants.ATOMIC_GROUP:
            return _samples(tree, argument)
        case _constants.AT | _constants.ASSERT | _constants.ASSERT_NOT:
            return [""]
    raise NotImplementedError(f"This test cannot feed {operation} of a pattern yet: teach it")


def _written_out(members: Any) -> list[str]:
    """Some members of a set of characters: those that are named, and the first of each range."""
    if not isinstance(members, list):
        return []
    first = {_constants.LITERAL: lambda value: value, _constants.RANGE: lambda value: value[0]}
    return [chr(first[kind](value)) for kind, value in members if kind in first][:6]


def _compiled(tree: Any, items: list[Any]) -> re.Pattern[str]:
    compiled: re.Pattern[str] = _compiler.compile(_parser.SubPattern(tree.state, items), tree.state.flags)
    return compiled
