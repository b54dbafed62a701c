"""ARCHITECTURE.md names every module, and no module that is not there."""

import re
from pathlib import Path

import recollect

PACKAGE = Path(recollect.__file__).parent
PAGE = (PACKAGE.parents[1] / "ARCHITECTURE.md").read_text()


def test_every_module_is_on_the_page() -> None:
    plan = PAGE.split("```")[1]
    named = set(re.findall(r"\w+", plan))
    modules = {path.stem for path in PACKAGE.rglob("*.py")} - {"__init__", "__main__"}
    # The contents of small packages are not listed one by one.
    summed_up = {
        path.stem for folder in ("agent", "doors/cli", "doors/mcp/tools") for path in (PACKAGE / folder).rglob("*.py")
    }
    assert modules - summed_up - named == set()


def test_every_file_that_the_page_names_is_there() -> None:
    paths = set(re.findall(r"`((?:doors|flows|memory|storage|inference|language|agent)/[\w/.]*)`", PAGE))
    assert paths
    examples = {"memory/x.py", "memory/x.sql", "storage/migrations/NNNN_name.sql"}
    assert {path for path in paths - examples if not (PACKAGE / path).exists()} == set()
