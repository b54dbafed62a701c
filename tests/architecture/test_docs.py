"""Every code block of the documentation runs, and what the pages say of commands and settings is true."""

import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from recollect.settings import Settings
from tests.mcp_servers import serving

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
# Their programs run in `make adapters`, with the frameworks.
ADAPTERS = sorted((ROOT / "docs" / "adapters").glob("*.md"))
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.M | re.S)
ONE_SCREEN = 60

# Where the pages say that a server listens; a block that asks it gets one of its own.
ADDRESS = "http://127.0.0.1:8000"


def blocks(language: str) -> list[tuple[str, str]]:
    return [
        (f"{page.name}:{number}", match["body"])
        for page in PAGES
        for number, match in enumerate(BLOCK.finditer(page.read_text()))
        if match["language"] == language
    ]


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in blocks("python")])
def test_a_python_block_runs(settings: Settings, code: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        if ADDRESS in code:
            log = stack.enter_context((tmp_path / "log").open("w"))
            url = stack.enter_context(serving(settings.namespace, log))
            code = code.replace(ADDRESS, url.removesuffix("/mcp"))
        program = tmp_path / "example.py"
        program.write_text(code)
        result = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")


def test_every_make_command_in_the_pages_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for page in [*PAGES, *ADAPTERS]:
        commands = re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.M)
        assert set(commands) <= targets, page.name


def test_every_link_between_the_pages_leads_somewhere() -> None:
    for page in [*PAGES, *ADAPTERS]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_table_of_adapters_has_every_page_and_every_extra_of_one() -> None:
    table = (ROOT / "docs" / "adapters" / "README.md").read_text()
    extras = set(re.findall(r"pip install[^`]*'recollect\[([a-z-]+)\]'", "".join(p.read_text() for p in ADAPTERS)))
    assert {page.name for page in ADAPTERS} - {"README.md"} == set(re.findall(r"^\| \[.*?\]\((.*?)\)", table, re.M))
    assert extras == set(re.findall(r"^\| \[.*?\| `(.*?)` \|", table, re.M))


def test_every_setting_is_documented() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    for name in Settings.model_fields:
        assert f"RECOLLECT_{name.upper()}" in text


def test_every_place_in_the_architecture_picture_exists() -> None:
    picture = next(body for name, body in blocks("") if name.startswith("ARCHITECTURE"))
    for name in re.findall(r"^  (\w+(?:\.py|/))", picture, re.M):
        assert (ROOT / "src" / "recollect" / name).exists(), name


def test_the_readme_fits_on_one_screen() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= ONE_SCREEN


def test_ci_runs_every_target() -> None:
    """In a short form where that takes long: a target that nobody runs stops working one day."""
    rules = re.findall(r"^([a-z-]+):([^#\n]*)##", (ROOT / "Makefile").read_text(), re.M)
    run = set(re.findall(r"^[^#\n]*\bmake ([a-z-]+)", (ROOT / ".ci" / "run").read_text(), re.M))
    run |= {needed for target, needs in rules if target in run for needed in needs.split()}
    run |= {"setup" for _, needs in rules if "$(DEV)" in needs}
    assert {target for target, _ in rules} == run & {target for target, _ in rules}
    assert "test" in run
