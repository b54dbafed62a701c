"""Four locks: what runs, and what runs with the tools for tests, with the yardsticks, or with the frameworks."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def locked(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==([^ ;]+)", (ROOT / name).read_text(), re.M))


def wanted(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[]", requirement)[0] for requirement in requirements}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_lock_of_what_runs_has_every_dependency_and_extra_and_no_tool() -> None:
    needed = wanted(PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["build"])
    of_server = re.search(r"^EXTRAS := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert of_server is not None
    extras = wanted(
        [name for extra in of_server[1].split() for name in PROJECT["project"]["optional-dependencies"][extra]]
    )
    assert needed | extras <= locked("requirements.lock").keys()
    assert not wanted(PROJECT["dependency-groups"]["dev"]) & locked("requirements.lock").keys()


@pytest.mark.parametrize("group", ["dev", "yardsticks"])
def test_the_lock_of_a_group_adds_to_what_runs_and_changes_nothing(group: str) -> None:
    runs, added = locked("requirements.lock"), locked(f"requirements-{group}.lock")
    assert wanted(PROJECT["dependency-groups"][group]) <= added.keys()
    assert runs == {name: added.get(name) for name in runs}


def test_the_lock_of_the_adapters_has_every_extra_and_what_the_makers_tests_need() -> None:
    extras = wanted([name for extra in PROJECT["project"]["optional-dependencies"].values() for name in extra])
    needed = extras | wanted(PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["adapters"])
    assert needed <= locked("requirements-adapters.lock").keys()


def test_the_yardsticks_are_in_no_lock_but_their_own() -> None:
    yardsticks = wanted(PROJECT["dependency-groups"]["yardsticks"])
    assert not yardsticks & (locked("requirements.lock").keys() | locked("requirements-dev.lock").keys())


def test_every_package_of_the_locks_has_a_hash() -> None:
    for name in (
        "requirements.lock",
        "requirements-dev.lock",
        "requirements-yardsticks.lock",
        "requirements-adapters.lock",
    ):
        blocks = re.split(r"^(?=[a-z0-9._-]+==)", (ROOT / name).read_text(), flags=re.M)
        assert [block.split()[0] for block in blocks if block.strip() and "--hash=sha256:" not in block] == []
