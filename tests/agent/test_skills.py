"""Skills: Markdown files that join a run by name or by a word."""

from pathlib import Path

import pytest

from recollect.agent.faults import Refused
from recollect.agent.workspace.skills import MAX_CHARACTERS, SkillLibrary
from tests.agent.runtime import FakeGateway, ScriptedProvider, lines, running, says

COFFEE = "---\nname: coffee\ndescription: Brews well\ntriggers: espresso, flat white\n---\n# Coffee\n\nGrind first.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tea").mkdir()
    (tmp_path / "brew.md").write_text(COFFEE)
    (tmp_path / "tea" / "SKILL.md").write_text("# Steep it\n\nThree minutes.\n")
    return tmp_path


def test_files_and_folders_are_skills_with_or_without_front_matter(folder: Path) -> None:
    coffee, tea = SkillLibrary.load(folder).all()
    assert (coffee.name, coffee.description, coffee.triggers) == ("coffee", "Brews well", ("espresso", "flat white"))
    assert coffee.body == "# Coffee\n\nGrind first."
    assert (tea.name, tea.description, tea.triggers) == ("tea", "Steep it", ())


@pytest.mark.parametrize(
    ("prompt", "names"),
    [
        ("/skill tea for two", ["tea"]),
        ("/skill tea", ["tea"]),
        ("An Espresso, please!", ["coffee"]),
        ("a FLAT WHITE", ["coffee"]),
        ("/skill tea or espresso?", ["tea", "coffee"]),
        ("espressos", []),
        ("tell me of /skill tea", []),
        ("tea", []),
    ],
)
def test_a_skill_is_activated_by_name_or_by_a_trigger(folder: Path, prompt: str, names: list[str]) -> None:
    assert [skill.name for skill in SkillLibrary.load(folder).activated(prompt)] == names


@pytest.mark.parametrize("prompt", ["/skill", "/skill juice", "/skill ../tea", "/skill brew"])
def test_an_unknown_skill_is_refused_and_the_known_are_named(folder: Path, prompt: str) -> None:
    with pytest.raises(Refused, match="coffee, tea"):
        SkillLibrary.load(folder).activated(prompt)


def test_at_most_three_skills_join_a_run(tmp_path: Path) -> None:
    for name in "abcde":
        (tmp_path / f"{name}.md").write_text("---\ntriggers: [go]\n---\nbody\n")
    assert [skill.name for skill in SkillLibrary.load(tmp_path).activated("go")] == ["a", "b", "c"]
    assert [skill.name for skill in SkillLibrary.load(tmp_path).activated("/skill e go")] == ["e", "a", "b"]


def test_files_that_cannot_be_used_are_left_out_with_a_warning(folder: Path) -> None:
    (folder / "bytes.md").write_bytes(b"\xff")
    (folder / "empty.md").write_text("---\nname: empty\n---\n")
    (folder / "huge.md").write_text("x" * (MAX_CHARACTERS + 1))
    (folder / "odd.md").write_text("---\nname: ../odd\n---\nbody")
    (folder / "zweite.md").write_text(COFFEE)
    library = SkillLibrary.load(folder)
    assert [skill.name for skill in library.all()] == ["coffee", "tea"]
    assert len(library.warnings) == 5
    assert all(warning.startswith("Skipped a skill: ") for warning in library.warnings)


def test_no_folder_is_no_skills(tmp_path: Path) -> None:
    assert SkillLibrary.load(tmp_path / "none").all() == []


async def test_the_activation_is_shown_to_the_model_and_recorded_by_name_only(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "brew.md").write_text(COFFEE)
    provider = ScriptedProvider(says("Done."), says("Again."))
    async with running(tmp_path, provider, FakeGateway(), "curated") as runtime:
        result = await runtime.loop.run("s1", "/skill coffee now")
        await runtime.loop.run("s1", "Thanks")
    assert result.skills == ("coffee",)
    assert "Grind first." in provider.seen[0][1].content
    assert not any("Grind first." in message.content for message in provider.seen[1])
    assert lines(tmp_path, "s1")[1]["payload"] == {"names": ["coffee"]}
    assert "Grind" not in (tmp_path / "sessions" / "s1.jsonl").read_text()
