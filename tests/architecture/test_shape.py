"""The tree keeps its shape: small files, no broad excepts, every declared statement used."""

import ast
import re
from pathlib import Path

import recollect

PACKAGE = Path(recollect.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 500
MAX_FUNCTION_LINES = 60


def test_every_module_is_small_and_says_its_job() -> None:
    assert SOURCES
    for path in SOURCES:
        text = path.read_text()
        tree = ast.parse(text)
        assert text.count("\n") < MAX_LINES, path
        assert ast.get_docstring(tree), f"the first line of {path} must say what the module is for"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                assert length <= MAX_FUNCTION_LINES, f"{node.name} of {path} has {length} lines"


def test_every_statement_of_a_capability_is_used_by_it() -> None:
    declared = 0
    for path in sorted((PACKAGE / "memory").rglob("*.sql")):
        (source,) = [
            text for module in path.parent.glob("*.py") if f'file="{path.name}"' in (text := module.read_text())
        ]
        (statements,) = re.findall(rf'^class \w+\(Queries, file="{path.name}"\).*?(?=^\S)', source, re.M | re.S)
        for name in re.findall(r"^    (\w+): Query$", statements, re.M):
            declared += 1
            # Of two files with the same statements, one is chosen when it is asked.
            assert re.search(rf"(?:_Sql|_sql)\.{name}\b", source), f"{path.stem}.{name} is declared but never run"
    assert declared
