"""A provider with no model, no key and no network: it answers from both memories."""

import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from recollect.agent.messages import Event, Finished, Message, Quote, TextDelta, ToolCall, ToolSpec
from recollect.agent.workspace import entries

MAX_SHOWN = 10
SHOWN = 300

RECALLED = "Recalled from the memory gateway:"
CURATED = "Curated in "
NOTHING = "Nothing found in memory."
HELP = (
    "No model is configured, so this answer comes from memory alone. "
    "Try: remember that ..., remember about me ..., replace X with Y, forget X, search X."
)
# What the session and the gateway keep of such answers. The texts themselves are in memory already.
KEPT_ANSWER = "Answered from memory, without a model."
KEPT_RESULT = "Answered by a tool, without a model."
_OPENING, _NAME_ENDS, _CLOSING = '<curated_memory file="', '">\n', "\n</curated_memory>"
_TARGETS = {"MEMORY.md": "memory", "USER.md": "user"}
_EMPTY = "(empty)"

# Words that name no entry, and words with which a question begins that only sounds like a command.
_PRONOUNS = frozenset(("it", "this", "that", "these", "those", "them", "me", "us", "all", "everything", "anything"))
_ASKING = frozenset(("when", "what", "who", "whom", "whose", "how", "where", "why", "which", "whether", "if"))
_UNCLEAR = "Say which entry you mean, with a few words from it."
_NOT_THERE = "No memory entry contains these words."


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

    def holding(self, text: str) -> list[tuple[str, str]]:
        """Target and text of the entries that hold some whole words."""
        wanted = text.casefold()
        return [
            (_TARGETS.get(file, "memory"), entry)
            for file, said in self.curated.items()
            for entry in said
            if wanted in entry.casefold() and re.search(_whole(text), entry, re.I)
        ]

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
            yield Quote("\n".join(results), KEPT_RESULT)
            yield Finished("stop")
            return
        known = _known(messages)
        prompt = next((message.content for message in messages if message.kind == "prompt"), "")
        reply = _command(prompt.strip(), known)
        if isinstance(reply, ToolCall) and reply.name in {tool.name for tool in tools}:
            yield reply
            yield Finished("tools")
            return
        if isinstance(reply, str):
            yield TextDelta(reply)
        else:
            parts = [_listed(RECALLED, known.recalled)] if known.recalled else []
            parts += [_listed(f"{CURATED}{file}:", said) for file, said in known.curated.items() if said]
            yield Quote("\n\n".join([*(parts or [NOTHING]), HELP]), KEPT_ANSWER)
        yield Finished("stop")

    async def close(self) -> None:
        """Nothing is open."""


def _command(prompt: str, known: _Memories) -> ToolCall | str | None:
    """The call that a command asks for, or a sentence if it cannot be done; None if the prompt is no command."""
    verb, rest = _first_word(prompt)
    match verb.casefold():
        case "remember":
            return _remember(prompt, rest)
        case "replace":
            return _replace(rest, known)
        case "forget":
            return _forget(_without(rest, "that", "about"), known)
        case "search":
            query = _without(rest, "for")
            return _call("session_search", query=query) if query else None
    return None


def _remember(prompt: str, rest: str) -> ToolCall | None:
    about, fact = _first_word(rest)
    me, about_me = _first_word(fact)
    if (about.casefold(), me.casefold()) == ("about", "me"):
        text, target = _without(about_me, "that"), "user"
    else:
        text, target = _without(rest, "that"), "memory"
        said_outright = text != rest or prompt[len("remember") :].lstrip().startswith(":")
        # "Remember when we went to Paris?" asks.
        if not said_outright and (prompt.endswith("?") or about.casefold() in _ASKING):
            return None
    return _call("memory", action="add", target=target, content=text) if text else None


def _replace(rest: str, known: _Memories) -> ToolCall | str | None:
    """Without an entry that is meant, the tool refuses and says why."""
    parts = re.split(r"\swith\s", rest, maxsplit=1, flags=re.I)
    old, new = (parts[0].strip(), parts[1].strip()) if len(parts) == 2 else ("", "")
    if not old or not new:
        return None
    if old.casefold() in _PRONOUNS:
        return _UNCLEAR
    entry = known.entry_of(old)
    content = new
    if entry is not None:
        # Every `old` in it: as written, else in any case, else inside of words, too.
        ways = ((_whole(old), re.NOFLAG), (_whole(old), re.I), (re.escape(old), re.I))
        tried = (re.subn(pattern, lambda _: new, entry, flags=flags) for pattern, flags in ways)
        content = next((text for text, found in tried if found), entry)
    target = known.target_of(old)
    return _call("memory", action="replace", target=target, old_text=entry or old, content=content)


def _forget(text: str, known: _Memories) -> ToolCall | str | None:
    """By whole words only: to forget "it" must not take the kitchen along. A full stop is seldom part of an entry."""
    text = text.rstrip(".!") or text
    if not text:
        return None
    if text.casefold() in _PRONOUNS:
        return _UNCLEAR
    found = known.holding(text)
    if not found:
        return _NOT_THERE
    target, entry = found[0]
    return _call("memory", action="remove", target=target, old_text=entry if len(found) == 1 else text)


def _call(tool: str, **arguments: str) -> ToolCall:
    return ToolCall("offline_1", tool, json.dumps(arguments))


def _first_word(text: str) -> tuple[str, str]:
    """A text's first word without a colon, and the rest."""
    word, *rest = text.split(None, 1) or [""]
    following = rest[0] if rest else ""
    if ":" not in word:
        return word, following.removeprefix(":").lstrip()
    word, _, after = word.partition(":")
    return word, f"{after} {following}".strip()


def _without(text: str, *leading: str) -> str:
    """A text without one of some words at its beginning."""
    word, rest = _first_word(text)
    return rest if word.casefold() in leading and rest else text


def _whole(text: str) -> str:
    """A pattern of a text that is no part of longer words."""
    return rf"(?<!\w){re.escape(text)}(?!\w)"


def _known(messages: tuple[Message, ...]) -> _Memories:
    system = "\n".join(message.content for message in messages if message.kind == "system")
    curated = {}
    for part in system.split(_OPENING)[1:]:
        file, _, rest = part.partition(_NAME_ENDS)
        text = rest.partition(_CLOSING)[0]
        if text != _EMPTY:
            curated[file] = [block.entry for block in entries.blocks(text) if block.entry is not None]
    lines = [line for message in messages if message.kind == "reference" for line in message.content.splitlines()]
    texts = [str(json.loads(line).get("text", "")) for line in lines if line.startswith("{")]
    # The gateway keeps answers, too: repeating them would make each longer than the last.
    answers = (RECALLED, CURATED, NOTHING, KEPT_ANSWER, KEPT_RESULT)
    return _Memories(curated, [text for text in texts if text and not text.startswith(answers)])


def _listed(title: str, texts: list[str]) -> str:
    lines = [" ".join(text.split()) for text in texts[:MAX_SHOWN]]
    shortened = [line if len(line) <= SHOWN else line[: SHOWN - 1] + "…" for line in lines]
    more = [f"- and {len(texts) - MAX_SHOWN} more"] if len(texts) > MAX_SHOWN else []
    return "\n".join([title, *(f"- {line}" for line in shortened), *more])
