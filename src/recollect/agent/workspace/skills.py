"""Skills: a folder of Markdown files, added to a run that names them or uses one of their trigger words."""

import re
from dataclasses import dataclass
from pathlib import Path

from recollect.agent.faults import FileFault, Refused
from recollect.agent.workspace import files

MAX_CHARACTERS = 20_000
MAX_ACTIVE = 3
COMMAND = re.compile(r"/skill(?:\s+(?P<name>\S+))?(?:\s|$)")
_NAME = re.compile(r"[\w][\w.-]{0,63}")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(?P<fields>.*?)^---[ \t]*\r?$\n?", re.M | re.S)
_FIELD = re.compile(r"^(?P<name>name|description|triggers)[ \t]*:(?P<value>.*)$", re.M)


@dataclass(frozen=True, slots=True)
class Skill:
    """How to do something, and the words that call for it."""

    name: str
    description: str
    body: str
    triggers: tuple[str, ...] = ()


class SkillLibrary:
    """The skills of a workspace, read once when the runtime loads."""

    def __init__(self, skills: dict[str, Skill], warnings: tuple[str, ...] = ()) -> None:
        self._skills = skills
        self.warnings = warnings

    @classmethod
    def load(cls, folder: Path) -> "SkillLibrary":
        """Every `name.md` and `name/SKILL.md`; a file that cannot be used is left out, with a warning."""
        skills: dict[str, Skill] = {}
        warnings: list[str] = []
        for path in sorted([*folder.glob("*.md"), *folder.glob("*/SKILL.md")]):
            try:
                skill = _skill(folder, path)
            except (FileFault, Refused) as problem:
                warnings.append(f"Skipped a skill: {problem}")
                continue
            if skill.name in skills:
                warnings.append(f"Skipped a skill: {path} has the name {skill.name}, which is already taken.")
            skills.setdefault(skill.name, skill)
        return cls(skills, tuple(warnings))

    def all(self) -> list[Skill]:
        """Every skill, by name."""
        return [self._skills[name] for name in sorted(self._skills)]

    def activated(self, prompt: str) -> tuple[Skill, ...]:
        """The skill that `/skill name` at the beginning names, then those whose triggers the prompt holds."""
        command = COMMAND.match(prompt)
        name = command["name"] if command else None
        if command and name not in self._skills:
            known = ", ".join(sorted(self._skills)) or "none; add Markdown files to the folder skills"
            raise Refused(f"Unknown skill {name!r}. Available skills: {known}." if name else f"Name a skill: {known}.")
        active = [self._skills[name]] if name else []
        for skill in self.all():
            called = any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", prompt, re.I) for word in skill.triggers)
            if called and skill not in active:
                active.append(skill)
        return tuple(active[:MAX_ACTIVE])


def _skill(folder: Path, path: Path) -> Skill:
    text = files.read_text(folder.parent, *path.relative_to(folder.parent).parts)
    if len(text) > MAX_CHARACTERS:
        raise Refused(f"{path} has {len(text):,} characters, more than the limit of {MAX_CHARACTERS:,}")
    front = _FRONT_MATTER.match(text)
    fields = {name: value.strip() for name, value in _FIELD.findall(front["fields"])} if front else {}
    body = (text[front.end() :] if front else text).strip()
    name = fields.get("name") or (path.parent.name if path.name == "SKILL.md" else path.stem)
    if not _NAME.fullmatch(name):
        raise Refused(f"{path} has an invalid name, {name!r}: use letters, digits, dots, hyphens and underscores")
    if not body:
        raise Refused(f"{path} is empty")
    triggers = tuple(word.strip(" \"'[]") for word in fields.get("triggers", "").split(","))
    description = fields.get("description") or body.splitlines()[0].lstrip("# ")
    return Skill(name, description, body, tuple(word for word in triggers if word))
