"""A provider with no model, no key and no network: it answers from memory, and shows both memories at work."""

import json
import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

from recollect.agent import entries
from recollect.agent.messages import Event, Finished, Message, TextDelta, ToolCall, ToolSpec

MAX_SHOWN = 10
SHOWN = 300

RECALLED = "Recalled from the memory gateway:"
CURATED = "Curated in "
NOTHING = "Memory holds nothing on this yet."
HELP = (
    "No model is configured, so this answer is put together from memory alone. "
    "Try: remember that ..., remember about me ..., replace X with Y, forget X, search X."
)
_CURATED = re.compile(r'^<curated_memory file="(?P<file>[^"]+)">\n(?P<text>.*?)\n</curated_memory>$', re.M | re.S)
_TARGETS = {"MEMORY.md": "memory", "USER.md": "user"}
_EMPTY = "(empty)"

_COMMANDS = (
    re.compile(r"remember\s+about\s+me(?:\s+that|\s*:)?\s+(?P<about_me>.+)", re.I | re.S),
    re.compile(r"remember(?:\s+that|\s*:)?\s+(?P<fact>.+)", re.I | re.S),
    re.compile(r"replace\s+(?P<old>.+?)\s+with\s+(?P<new>.+)", re.I | re.S),
    re.compile(r"forget(?:\s+that|\s+about|\s*:)?\s+(?P<gone>.+)", re.I | re.S),
    re.compile(r"search(?:\s+for|\s*:)?\s+(?P<query>.+)", re.I | re.S),
)


@dataclass(frozen=True, slots=True)
class _Memories:
    """What the messages of a run say that is known."""

    curated: dict[str, list[str]]
    recalled: list[str]

    def target_of(self, text: str) -> str:
        """The file that holds a text; `memory` if none does."""
        file = self._file_of(text)
        return _TARGETS.get(file, "memory") if file else "memory"

    def entry_of(self, text: str) -> str | None:
        """The entry that the memory tool would take a text for, in the file that holds it; None if that is unclear."""
        said = self.curated.get(self._file_of(text) or "", [])
        chosen = (
            [entry for entry in said if entry == text]
            or [entry for entry in said if text in entry]
            or [entry for entry in said if text.casefold() in entry.casefold()]
        )
        return chosen[0] if len(chosen) == 1 else None

    def _file_of(self, text: str) -> str | None:
        wanted = text.casefold()
        return next((file for file, said in self.curated.items() if any(wanted in e.casefold() for e in said)), None)


class OfflineProvider:
    """Deterministic: the same messages have the same answer."""

    @property
    def model(self) -> str:
        """There is none."""
        return "offline"

    async def stream(self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]) -> AsyncGenerator[Event, None]:
        """A call for a command, the results of calls once they are there, and what memory holds for anything else."""
        if results := [message.content for message in messages if message.role == "tool"]:
            text = "\n".join(results)
        else:
            known = _known(messages)
            prompt = next((message.content for message in messages if message.kind == "prompt"), "")
            call = _command(prompt.strip(), known)
            if call and call.name in {tool.name for tool in tools}:
                yield call
                yield Finished("tools")
                return
            text = _answer(known)
        for piece in re.findall(r"\s*\S+", text):
            yield TextDelta(piece)
        yield Finished("stop")

    async def close(self) -> None:
        """Nothing is open."""


def _command(prompt: str, known: _Memories) -> ToolCall | None:
    for pattern in _COMMANDS:
        if match := pattern.fullmatch(prompt):
            return _call(match.groupdict(), known)
    return None


def _call(words: dict[str, str], known: _Memories) -> ToolCall:
    match words:
        case {"about_me": text}:
            arguments = {"action": "add", "target": "user", "content": text}
        case {"fact": text}:
            arguments = {"action": "add", "target": "memory", "content": text}
        case {"old": old, "new": new}:
            # Without an entry that is meant, the tool refuses and says why.
            entry = known.entry_of(old)
            content = new if entry is None else _substituted(entry, old, new)
            arguments = {
                "action": "replace",
                "target": known.target_of(old),
                "old_text": entry or old,
                "content": content,
            }
        case {"gone": text}:
            # A sentence's full stop is seldom part of what is to be forgotten.
            text = text.rstrip(".!") or text
            arguments = {"action": "remove", "target": known.target_of(text), "old_text": text}
        case _:
            return ToolCall("offline_1", "session_search", json.dumps({"query": words["query"]}))
    return ToolCall("offline_1", "memory", json.dumps(arguments))


def _substituted(entry: str, old: str, new: str) -> str:
    """The entry with `new` for every `old` in it: as written, else in any case, else inside of words, too."""
    anywhere = re.escape(old)
    whole = rf"(?<!\w){anywhere}(?!\w)"
    for pattern, flags in ((whole, re.NOFLAG), (whole, re.I), (anywhere, re.I)):
        text, found = re.subn(pattern, lambda _: new, entry, flags=flags)
        if found:
            return text
    return entry


def _known(messages: tuple[Message, ...]) -> _Memories:
    system = "\n".join(message.content for message in messages if message.kind == "system")
    curated = {
        match["file"]: [block.entry for block in entries.blocks(match["text"]) if block.entry is not None]
        for match in _CURATED.finditer(system)
        if match["text"] != _EMPTY
    }
    recalled = [text for message in messages if message.kind == "reference" for text in _recalled(message.content)]
    return _Memories(curated, recalled)


def _recalled(reference: str) -> Iterator[str]:
    """The texts of a reference message, whose results are lines of JSON."""
    for line in reference.splitlines():
        text = str(json.loads(line).get("text", "")) if line.startswith("{") else ""
        # The gateway keeps answers, too: repeating them would make each longer than the last.
        if text and not text.startswith((RECALLED, CURATED, NOTHING)):
            yield text


def _answer(known: _Memories) -> str:
    parts = []
    if known.recalled:
        parts.append(_listed(RECALLED, known.recalled))
    parts += [_listed(f"{CURATED}{file}:", said) for file, said in known.curated.items() if said]
    return "\n\n".join([*(parts or [NOTHING]), HELP])


def _listed(title: str, texts: list[str]) -> str:
    more = [f"- and {len(texts) - MAX_SHOWN} more"] if len(texts) > MAX_SHOWN else []
    return "\n".join([title, *(f"- {_shortened(text)}" for text in texts[:MAX_SHOWN]), *more])


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
