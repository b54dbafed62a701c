"""Two locks: what runs, and what runs together with the tools for tests."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def locked(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==([^ ;]+)", (ROOT / name).read_text(), re.M))


def wanted(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[]", requirement)[0] for requirement in requirements}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_lock_of_what_runs_has_every_dependency_and_extra_and_no_tool() -> None:
    needed = wanted(PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["build"])
    extras = wanted([name for extra in PROJECT["project"]["optional-dependencies"].values() for name in extra])
    assert needed | extras <= locked("requirements.lock").keys()
    assert not wanted(PROJECT["dependency-groups"]["dev"]) & locked("requirements.lock").keys()


def test_the_lock_of_the_tools_adds_to_the_other_and_changes_nothing() -> None:
    runs, tools = locked("requirements.lock"), locked("requirements-dev.lock")
    assert wanted(PROJECT["dependency-groups"]["dev"]) <= tools.keys()
    assert runs == {name: tools.get(name) for name in runs}


def test_every_package_of_the_locks_has_a_hash() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        blocks = re.split(r"^(?=[a-z0-9._-]+==)", (ROOT / name).read_text(), flags=re.M)
        assert [block.split()[0] for block in blocks if block.strip() and "--hash=sha256:" not in block] == []
