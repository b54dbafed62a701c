"""The tree keeps its shape: small files, no broad excepts, every declared statement used."""

import ast
import re
from pathlib import Path

import pytest

import recollect

PACKAGE = Path(recollect.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 500
MAX_FUNCTION_LINES = 60


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_is_small_and_says_its_job(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert text.count("\n") < MAX_LINES
    assert ast.get_docstring(tree), "the first line must say what the module is for"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MAX_FUNCTION_LINES, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", sorted((PACKAGE / "memory").glob("*.sql")), ids=lambda path: path.name)
def test_every_statement_of_a_capability_is_used_by_it(path: Path) -> None:
    source = path.with_suffix(".py").read_text()
    for name in re.findall(r"^    (\w+): Query$", source, re.M):
        assert f"_Sql.{name}" in source, f"{path.stem}.{name} is declared but never run"
