"""Letta's agent file (.af): agents with their messages, memory blocks and files."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from recollect.errors import Invalid
from recollect.flows.transfer.foreign.json_stream import values
from recollect.flows.transfer.foreign.pieces import (
    Fact,
    LeftOut,
    Piece,
    Refused,
    Said,
    Session,
    Text,
    fields_of,
    iso_moment,
    listed,
    stable_id,
    text_blocks,
    text_of,
    title_of,
    titled,
)
from recollect.flows.transfer.foreign.sources import Member, Reading, Source
from recollect.flows.transfer.import_report import Progress
from recollect.identifiers import uuid_of

FORMAT = "letta"

# Messages come one at a time, in the form of a file with several agents and in the older one with a single agent.
_INSIDE = (
    (),
    ("agents",),
    ("agents", "*"),
    ("agents", "*", "messages"),
    ("messages",),
    ("blocks",),
    ("files",),
    ("core_memory",),
    ("passages",),
    ("archival_memory",),
    ("agents", "*", "passages"),
    ("agents", "*", "archival_memory"),
)
# The tool by which older agents answer.
SEND = "send_message"
EVENTS = ("heartbeat", "login", "system_alert", "system_message")
_PASSAGES = ("passages", "archival_memory")
_SETUP = ("tools", "mcp_servers", "sources", "groups", "tool_rules", "tool_exec_environment_variables", "identities")

SETUP = "setup of the agent: {}"
SYSTEM = "system messages and events"
THOUGHTS = "reasoning of the model"
TOOLS = "tool calls and their results"
BLOCKS = "parts that are not text: {}"
EMPTY = "messages without text"
EMPTY_BLOCKS = "memory blocks without text"

Fields = Mapping[str, Any]


@dataclass(slots=True)
class _Agent:
    """What the file says of an agent apart from its messages."""

    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """By its name rather than its id, which is only a number in the file."""
        return title_of(self.fields.get("name")) or title_of(self.fields.get("id")) or "agent"

    def session(self, user_id: str) -> Session:
        """The one session that a user has with it."""
        began = iso_moment(self.fields.get("created_at"))
        metadata = {"source": FORMAT, "agent": self.name}
        return Session(str(uuid_of(FORMAT, user_id, self.name)), user_id, self.name, metadata, began)


def wanted(source: Source) -> list[Member]:
    """Agent files."""
    if not source.is_folder:
        return list(source.members)
    return [member for member in source.members if member.name.endswith((".af", ".af.json"))]


def read(source: Source, user_id: str, progress: Progress, owner: str | None = None) -> Iterator[Piece]:
    """Blocks as memories, messages as a session of each agent, passages and files as texts."""
    for member in wanted(source):
        yield from _File(member, user_id, owner).pieces(progress)


class _File:
    """One agent file, read twice: what a message belongs to may stand behind it."""

    def __init__(self, member: Member, user_id: str, owner: str | None) -> None:
        self._member = member
        self._user_id = user_id
        self._owner = owner
        self._agents: dict[int, _Agent] = {}

    def pieces(self, progress: Progress) -> Iterator[Piece]:
        """Everything that it says."""
        self._read_agents()
        with self._member.open() as file:
            for number, (path, value) in enumerate(values(Reading(file, progress), _INSIDE), 1):
                place = f"{self._member.name}, {_place_of(path) or f'value {number}'}"
                try:
                    yield from self._value_pieces(place, path, value)
                except Invalid as problem:
                    yield Refused(place, str(problem))

    def _read_agents(self) -> None:
        """Read what the file says of agents."""
        with self._member.open() as file, closing(values(file, _INSIDE)) as read:
            for path, value in read:
                match path:
                    case ("agents", int(number), str(name)):
                        self._agents.setdefault(number, _Agent()).fields[name] = value
                    case ("name" | "id" | "created_at" as name,):
                        self._agents.setdefault(-1, _Agent()).fields[name] = value
        self._agents.setdefault(-1, _Agent())

    def _value_pieces(self, place: str, path: tuple[str | int, ...], value: Any) -> Iterator[Piece]:
        """What one value says, by where it is."""
        match path:
            case ("agents", int(number), "messages", int(index)):
                yield from self._message_pieces(place, self._agents[number], index, fields_of(value, "message"))
            case ("messages", int(index)):
                yield from self._message_pieces(place, self._agents[-1], index, fields_of(value, "message"))
            case ("blocks", int()):
                yield from self._block_pieces(place, fields_of(value, "block"), None)
            case ("core_memory", int()):
                yield from self._block_pieces(place, fields_of(value, "block"), self._agents[-1])
            case ("files", int()):
                yield from self._text(place, "file", fields_of(value, "file"), None)
            case (*above, str(name), int()) if name in _PASSAGES:
                agent = self._agents[above[1]] if above and isinstance(above[1], int) else self._agents[-1]
                yield from self._text(place, "passage", fields_of(value, "passage"), agent)
            case (*_, str(name)) if name in _SETUP and value:
                yield LeftOut(place, SETUP.format(name), len(value) if isinstance(value, list | dict) else 1)

    def _block_pieces(self, place: str, block: Fields, agent: _Agent | None) -> Iterator[Piece]:
        """A memory for each agent that has the block, under the block's label."""
        text, label = text_of(block.get("value")), title_of(block.get("label"))
        if label is None:
            raise Invalid("the block has no label")
        if not text.strip():
            yield LeftOut(place, EMPTY_BLOCKS)
            return
        metadata = {"source": FORMAT, "block": label}
        if about := title_of(block.get("description")):
            metadata["description"] = about
        at = iso_moment(block.get("updated_at")) or iso_moment(block.get("created_at"))
        for each in [agent] if agent is not None else self._holders(block.get("id")):
            name = None if each is None else each.name
            memory_id = uuid_of(FORMAT, self._user_id, name or "", label, text)
            yield Fact(place, memory_id, self._user_id, name, label, text, at, metadata)

    def _holders(self, block_id: object) -> list[_Agent | None]:
        """The agents that have a block; None for a block that nobody has."""
        found: list[_Agent | None] = [
            agent for agent in self._agents.values() if block_id in listed(agent.fields.get("block_ids"))
        ]
        return found or [None]

    def _message_pieces(self, place: str, agent: _Agent, index: int, message: Fields) -> Iterator[Piece]:
        """What was said."""
        role = text_of(message.get("role"))
        text, left_out = _what_was_said(role, message)
        for reason in left_out:
            yield LeftOut(place, reason)
        if not text.strip():
            if not left_out:
                yield LeftOut(place, EMPTY)
            return
        at = iso_moment(message.get("created_at"))
        # An id in the file is a number in it, which moves when the window of messages does.
        message_id = stable_id(at, FORMAT, self._user_id, agent.name, role, text, *([] if at else [str(index)]))
        metadata = {"source": FORMAT} | ({"model": model} if (model := title_of(message.get("model"))) else {})
        name = title_of(message.get("name"))
        yield Said(place, agent.session(self._user_id), message_id, role, text, at, name, metadata)

    def _text(self, place: str, what: str, fields: Fields, agent: _Agent | None) -> Iterator[Piece]:
        text = text_of(fields.get("text") or fields.get("content"))
        if not text.strip():
            yield LeftOut(place, f"{what}s without text")
            return
        title = title_of(fields.get("original_file_name") or fields.get("file_name"))
        own_id = title or title_of(fields.get("id")) if what == "file" else None
        uri = f"letta:{what}/{agent.name if agent else ''}/{own_id or uuid_of(text)}"
        metadata = {"source": FORMAT} | ({"agent": agent.name} if agent else {})
        yield Text(place, uri, self._owner, title, titled(title, text), iso_moment(fields.get("created_at")), metadata)


def _what_was_said(role: str, message: Fields) -> tuple[str, list[str]]:
    """What was said to the other, and why the rest is left out.

    Where an agent answers by the tool `send_message`, the text beside it is what it thought. What a user says may be
    wrapped in JSON, as are events, such as a login.
    """
    if role not in ("user", "assistant"):
        return "", [SYSTEM if role == "system" else TOOLS]
    text, others = text_blocks(message.get("content") or message.get("text"))
    left_out = [BLOCKS.format(kind) for kind in others]
    if role == "user":
        event = _object(text)
        if event.get("type") == "user_message":
            return text_of(event.get("message")), left_out
        return ("", [SYSTEM]) if event.get("type") in EVENTS else (text, left_out)
    given = [call.get("function") for call in listed(message.get("tool_calls")) if isinstance(call, dict)]
    calls = [call for call in given if isinstance(call, dict)]
    replies = [_object(call.get("arguments")) for call in calls if call.get("name") == SEND]
    left_out += [TOOLS] * (len(calls) - len(replies))
    if replies:
        left_out += [THOUGHTS] if text.strip() else []
        text = "\n\n".join(text_of(reply.get("message")) for reply in replies)
    return text, left_out


def _object(text: object) -> Fields:
    """The JSON object that a text is; empty if it is none."""
    try:
        found = json.loads(text) if isinstance(text, str) and text.lstrip().startswith("{") else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _place_of(path: tuple[str | int, ...]) -> str:
    """Where a value is: `agents 1, messages 3`."""
    words = [f" {step + 1}" if isinstance(step, int) else f", {step}" for step in path]
    return "".join(words).removeprefix(", ")
