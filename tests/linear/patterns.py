"""Finds every regular expression of the tree: in the values of its modules, and in its source."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

import recollect

Pattern = re.Pattern[Any]
SOURCE = Path(recollect.__file__).parent
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = frozenset(("compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"))

# Modules that do something when they are imported.
PROGRAMS = frozenset(("recollect.__main__", "recollect.storage.embedded.supervisor"))

# Most need a framework, which is not installed here; a test checks that none of these has a pattern.
ADAPTERS = "recollect.adapters."
CONNECTION = f"{ADAPTERS}connection"

# Patterns that are put together where they are used, each with one as it may turn out there.
BUILT = {
    "agent/providers/offline.py": [r"(?<!\w)a\ word(?!\w)", r"a\ word"],
    "agent/workspace/skills.py": [r"(?<!\w)a\ word(?!\w)"],
    "doors/cli/memories/remember_recall.py": [r"\bboa\w*|\bhar\w*"],
    "language/names.py": [r"(?<!\w)Anna(?!\w)", "漢字"],
}


def every_pattern() -> dict[str, Pattern]:
    """By the place where each is."""
    return dict(_held()) | dict(_written())


def is_only_matched(place: str) -> bool:
    """Whether a pattern is a private name of its module and never searches there: it begins where it is told to."""
    module, _, name = place.rpartition(".")
    if not module.startswith("recollect.") or not re.fullmatch(r"_\w+", name):
        return False
    source = Path(str(importlib.import_module(module).__file__)).read_text(encoding="utf-8")
    uses = re.findall(rf"\b{name}\b(?:\.(\w+)|)", source)
    return len(uses) > 1 and set(uses[1:]) <= {"match", "fullmatch"}


def unknown_calls() -> list[str]:
    """Calls of `re` whose pattern is neither held by a module, nor written out, nor in the table above."""
    places = [place for place, pattern in _calls_in_functions() if pattern is None]
    unknown = [place for place in places if place.partition(":")[0] not in BUILT]
    used = {place.partition(":")[0] for place in places}
    return unknown + [f"{place} builds no pattern any more" for place in BUILT if place not in used]


def _held() -> Iterator[tuple[str, Pattern]]:
    for info in pkgutil.walk_packages(recollect.__path__, "recollect."):
        if info.name in PROGRAMS or (info.name.startswith(ADAPTERS) and info.name != CONNECTION):
            continue
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if not name.startswith("__"):
                yield from ((f"{info.name}.{name}{place}", pattern) for place, pattern in _inside(value))


def _inside(value: object, depth: int = 3) -> Iterator[tuple[str, Pattern]]:
    if isinstance(value, re.Pattern):
        yield "", value
    elif depth and isinstance(value, dict):
        for key, item in value.items():
            yield from ((f"[{key!r}]{place}", pattern) for place, pattern in _inside(item, depth - 1))
    elif depth and isinstance(value, tuple | list):
        for number, item in enumerate(value):
            yield from ((f"[{number}]{place}", pattern) for place, pattern in _inside(item, depth - 1))


def _written() -> Iterator[tuple[str, Pattern]]:
    yield from ((place, re.compile(pattern)) for place, pattern in _calls_in_functions() if pattern is not None)
    for file, patterns in BUILT.items():
        yield from ((f"{file} builds {pattern}", re.compile(pattern)) for pattern in patterns)


def _calls_in_functions() -> Iterator[tuple[str, str | None]]:
    """Where functions use `re` itself, with the pattern if it is written out. What modules compile they also hold."""
    for path in sorted(SOURCE.rglob("*.py")):
        functions = (
            node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, _FUNCTION)
        )
        calls = {call for function in functions for call in ast.walk(function) if _is_call_of_re(call)}
        for call in sorted(calls, key=lambda call: call.lineno):
            yield f"{path.relative_to(SOURCE).as_posix()}:{call.lineno}", _first_argument(call)


def _is_call_of_re(node: ast.AST) -> TypeGuard[ast.Call]:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name)):
            return name in FUNCTIONS
    return False


def _first_argument(call: ast.Call) -> str | None:
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
