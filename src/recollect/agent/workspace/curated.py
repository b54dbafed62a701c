"""Curated memory: `MEMORY.md` and `USER.md`, a few thousand characters that go into every system prompt."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from recollect.agent.faults import Refused
from recollect.agent.workspace import entries, files, screening
from recollect.agent.workspace.entries import Block

Target = Literal["memory", "user"]
FILES: dict[Target, str] = {"memory": "MEMORY.md", "user": "USER.md"}
# Characters: about 1,000 and 500 tokens in every run.
LIMITS: dict[Target, int] = {"memory": 4_000, "user": 2_000}
# A file that a person made larger is still loaded, up to so many times the limit.
LOADED_AT_MOST = 4
LOCK = ".memory.lock"
SHOWN = 80


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """Both files as they were when the run began; what is written during the run shows in the next one."""

    memory: str
    user: str
    warnings: tuple[str, ...] = ()

    def text(self, target: Target) -> str:
        """One of the two."""
        return self.memory if target == "memory" else self.user


@dataclass(frozen=True, slots=True)
class Change:
    """What a write did, in a sentence, and how full the file is now."""

    done: str
    used: int
    limit: int


class MemoryStore:
    """The two files. A write holds a lock that every agent on this workspace asks for, so none is lost."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace

    def read(self, target: Target) -> str:
        """The file as it stands; empty if there is none."""
        return files.read_text(self._workspace, FILES[target])

    def update(self, target: Target, change: Callable[[str], str]) -> str:
        """Replace the file's text by what `change` makes of it, with no other writer in between."""
        files.private_directory(self._workspace)
        with files.locked(self._workspace, LOCK):
            before = self.read(target)
            after = change(before)
            if after != before:
                files.replace_text(self._workspace, FILES[target], after)
            return after


class MemoryService:
    """The rules of curated memory: what may be written, how much, and which entry is meant."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def snapshot(self) -> MemorySnapshot:
        """Both files, frozen for one run."""
        texts = {target: self._store.read(target) for target in FILES}
        warnings = [warning for target in FILES for warning in _warnings(target, texts[target])]
        memory, user = (texts[target].lstrip("\ufeff")[: LIMITS[target] * LOADED_AT_MOST] for target in FILES)
        return MemorySnapshot(memory, user, tuple(warnings))

    def characters(self, target: Target) -> int:
        """How full a file is."""
        return len(self._store.read(target).lstrip("\ufeff"))

    def entries(self, target: Target) -> list[str]:
        """What a file says, entry by entry."""
        return [block.entry for block in entries.blocks(self._store.read(target)) if block.entry is not None]

    def add(self, target: Target, content: str) -> Change:
        """One entry more; one that is there already stays as it is."""
        entry = _checked(content)
        done = f"Added to {FILES[target]}."

        def change(text: str) -> str:
            nonlocal done
            if any(block.entry == entry for block in entries.blocks(text)):
                done = f"{FILES[target]} already contains this; nothing was added."
                return text
            return _within(target, text, entries.appended(text, entry))

        return self._changed(target, change, lambda: done)

    def replace(self, target: Target, old_text: str, content: str) -> Change:
        """Put a new entry in the place of the one that holds `old_text`."""
        entry = _checked(content)

        def change(text: str) -> str:
            return _within(target, text, _edited(target, text, old_text, lambda block: entries.written(entry, block)))

        return self._changed(target, change, lambda: f"Replaced an entry in {FILES[target]}.")

    def remove(self, target: Target, old_text: str) -> Change:
        """Take out the entry that holds `old_text`. This works in a file that is too large, too."""
        return self._changed(
            target,
            lambda text: _edited(target, text, old_text, lambda block: ""),
            lambda: f"Removed an entry from {FILES[target]}.",
        )

    def _changed(self, target: Target, change: Callable[[str], str], done: Callable[[], str]) -> Change:
        after = self._store.update(target, change)
        return Change(done(), len(after), LIMITS[target])


def _edited(target: Target, text: str, old_text: str, edit: Callable[[Block], str]) -> str:
    """The file with one entry edited: the one that is a text, or the only one that holds it."""
    wanted = old_text.strip()
    if not wanted:
        raise Refused("old_text is empty: pass a few words from the entry")
    found = entries.blocks(text)
    said = {place: block.entry for place, block in enumerate(found) if block.entry is not None}
    # The nearest way of matching that finds anything decides.
    chosen = (
        [place for place, entry in said.items() if entry == wanted]
        or [place for place, entry in said.items() if wanted in entry]
        or [place for place, entry in said.items() if wanted.casefold() in entry.casefold()]
    )
    if len(chosen) != 1:
        raise Refused(_which_is_meant(FILES[target], wanted, [said[place] for place in chosen], list(said.values())))
    place = chosen[0]
    return (
        "".join(block.raw for block in found[:place])
        + edit(found[place])
        + "".join(block.raw for block in found[place + 1 :])
    )


def _which_is_meant(name: str, wanted: str, matches: list[str], present: list[str]) -> str:
    quoted = f"'{_shortened(wanted)}'"
    if matches:
        return f"{len(matches)} entries in {name} contain {quoted}: pass more of the entry's text. {_listed(matches)}"
    if not present:
        return f"No entry in {name} contains {quoted}: the file is empty."
    return f"No entry in {name} contains {quoted}. Its entries: {_listed(present)}"


def _within(target: Target, before: str, after: str) -> str:
    """The new text if it fits, or is a step towards that; the refusal says what could make room."""
    limit = LIMITS[target]
    if len(after) <= max(limit, len(before) - 1):
        return after
    present = [block.entry for block in entries.blocks(before) if block.entry is not None]
    longest = sorted(present, key=len, reverse=True)[:3]
    room = f" The longest entries: {_listed(longest)}" if longest else ""
    raise Refused(
        f"{FILES[target]} has {len(before):,} of {limit:,} characters and would have {len(after):,}: "
        f"first free {len(after) - limit:,} characters by removing or shortening entries.{room}"
    )


def _checked(content: str) -> str:
    entry = entries.tidy(content)
    if not entry:
        raise Refused("content is empty: say what to remember")
    if reason := screening.fault(entry):
        raise Refused(f"This cannot be stored: {reason}. State only the fact, in plain words.")
    return entry


@functools.lru_cache(maxsize=8)
def _warnings(target: Target, text: str) -> tuple[str, ...]:
    """What is wrong with a file that somebody edited by hand; the file is used all the same."""
    found = []
    if len(text) > LIMITS[target]:
        found.append(
            f"{FILES[target]} has {len(text):,} characters, above its limit of {LIMITS[target]:,}: "
            "shorten it before adding anything."
        )
    if reason := screening.fault(text.lstrip("\ufeff").replace("\r\n", "\n")):
        found.append(f"{FILES[target]} contains text that the memory tool would reject: {reason}.")
    return tuple(found)


def _listed(items: list[str]) -> str:
    return " ".join(f"({place}) {_shortened(item)}" for place, item in enumerate(items[:20], 1))


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
