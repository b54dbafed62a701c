"""Error messages and log lines: one sentence has no full stop at its end, several sentences have them all."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "recollect"
LOGGING = {"debug", "info", "warning", "error", "exception"}
# Stands for a value in a message; what comes out of it is not ours to check.
VALUE = "\0"
SEVERAL = re.compile(r"[.?!][)`\"']?\s+[A-Z`\"]")


def test_a_message_of_one_sentence_has_no_full_stop_and_several_have_them_all() -> None:
    checked = [found for path in sorted(SOURCE.rglob("*.py")) for found in messages(path)]
    wrong = [f"{place}: {text.replace(VALUE, '{}')}" for place, text in checked if not follows_the_rule(text)]
    assert len(checked) > 200
    assert not wrong, "\n".join(wrong)


def follows_the_rule(text: str) -> bool:
    if text.endswith((VALUE, "`", ";", ":", "?", "\n", ")")):
        return True
    return text.endswith(".") == bool(SEVERAL.search(text))


def messages(path: Path) -> Iterator[tuple[str, str]]:
    """What is raised, or made to be raised, and what is logged."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and node.args and speaks(node.func):
            text = literal(node.args[0])
            if text is not None and " " in text:
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", text


def speaks(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr in LOGGING and ast.unparse(function.value) in ("log", "_log")
    return isinstance(function, ast.Name) and function.id in categories()


def categories() -> set[str]:
    """The names of all exceptions of ours, found by what they derive from."""
    if not _categories:
        parents = {
            node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
            for path in SOURCE.rglob("*.py")
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ClassDef)
        }
        _categories.update({"RecollectError", "AgentError", "Exception", "ValueError", "RuntimeError"})
        while new := {name for name, bases in parents.items() if bases & _categories} - _categories:
            _categories.update(new)
    return _categories


_categories: set[str] = set()


def literal(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else VALUE for part in node.values)
    return None
