"""docs/agent.md is true: its commands run in order against a real server, its configurations load."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from recollect.agent import config as configuration
from recollect.agent.config import load_config
from recollect.agent.recall.gateway_client import Category
from recollect.agent.recall.reference import REFERENCE_TOKENS
from recollect.agent.workspace.curated import FILES, LIMITS
from recollect.agent.workspace.skills import SkillLibrary
from recollect.settings import Settings
from tests.agent.configs import written
from tests.agent.leaks import API_KEY
from tests.agent.servers import serving
from tests.architecture.test_docs import BLOCK
from tests.mcp_servers import SECONDS

PAGE = (Path(__file__).parents[2] / "docs" / "agent.md").read_text()
ADDRESS = "http://127.0.0.1:8000"
KEY = "uk_..."


def blocks(language: str) -> list[str]:
    return [match["body"] for match in BLOCK.finditer(PAGE) if match["language"] == language]


def configurations() -> list[str]:
    return [body for body in blocks("json") if "memory" in json.loads(body)]


@pytest.fixture
def url(settings: Settings, namespace: str, tmp_path: Path) -> Iterator[str]:
    with (tmp_path / "server.log").open("w") as log, serving(namespace, log) as server:
        yield server.url


def run(command: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=os.environ | {"PATH": path, "HOME": str(folder)},
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


def made(command: str, url: str) -> dict[str, Any]:
    """What the server answers to a curl command of the page, which the machine may lack."""
    curl, silent, address, as_json, body = shlex.split(command)
    assert (curl, silent, as_json) == ("curl", "-s", "--json")
    answer: dict[str, Any] = httpx.post(address.replace(ADDRESS, url), json=json.loads(body), timeout=60).json()
    return answer


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
def test_the_commands_of_the_page_do_what_it_says(url: str, tmp_path: Path) -> None:
    commands = [line for block in blocks("bash") for line in block.splitlines()]
    assert commands.count("recollect serve") == 1
    answers: list[str] = []
    for command in commands:
        if command.startswith("curl"):
            user = made(command, url)
            assert user.keys() == json.loads(blocks("json")[0]).keys()
            written(tmp_path, configurations()[0].replace(ADDRESS, url).replace(KEY, user["user_key"]))
        elif command != "recollect serve":
            answers.append(run(command, tmp_path))
    offline, known, _, _, recalled = answers
    assert offline.startswith("Added to MEMORY.md.")
    assert "- the parrot is called Coco" in known
    assert blocks("text")[0] in recalled


@pytest.mark.parametrize("body", configurations(), ids=["hybrid", "curated", "anthropic", "own server"])
def test_a_configuration_of_the_page_loads(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", API_KEY)
    load_config(written(tmp_path, body))


def test_the_complete_example_names_every_field_of_the_gateway() -> None:
    gateway = json.loads(configurations()[0])["memory"]["gateway"]
    assert len(gateway) == len(configuration.GatewayConfig.__dataclass_fields__)


def test_the_skill_of_the_page_is_one(tmp_path: Path) -> None:
    (tmp_path / "birds.md").write_text(blocks("markdown")[0])
    library = SkillLibrary.load(tmp_path)
    assert [skill.name for skill in library.activated("Tell me about an owl.")] == ["birds"]
    assert library.warnings == ()


def test_the_figures_and_names_of_the_page_are_those_of_the_code() -> None:
    for figure in (*LIMITS.values(), REFERENCE_TOKENS):
        assert f"{figure:,}" in PAGE
    for name in (*FILES.values(), *configuration.SCOPES, *configuration.PROVIDERS, *get_args(Category)):
        assert f"`{name}`" in PAGE
    defaults = dict(re.findall(r"^\| `[\w.]+?\.(\w+)`[^|]*\| ([^|]+) \|", PAGE, re.M))
    assert {name: defaults[name] for name in ("topK", "timeoutSeconds", "maxTokens", "maxToolRounds")} == {
        "topK": str(configuration.DEFAULT_TOP_K),
        "timeoutSeconds": f"{configuration.DEFAULT_TIMEOUT_SECONDS:g}",
        "maxTokens": str(configuration.DEFAULT_TOKENS),
        "maxToolRounds": str(configuration.DEFAULT_TOOL_ROUNDS),
    }


def test_every_block_is_run_by_some_test() -> None:
    assert {match["language"] for match in BLOCK.finditer(PAGE)} == {"bash", "json", "text", "markdown", "python"}
