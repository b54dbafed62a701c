"""ChatGPT's data export: conversations.json, whose conversations are trees of messages."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from recollect.errors import Invalid
from recollect.flows.transfer.foreign.json_stream import values
from recollect.flows.transfer.foreign.pieces import (
    LeftOut,
    Piece,
    Refused,
    Said,
    Session,
    fields_of,
    identity_of,
    stable_id,
    text_of,
    title_of,
    unix_moment,
)
from recollect.flows.transfer.foreign.sources import Member, Reading, Source
from recollect.flows.transfer.import_report import Progress
from recollect.identifiers import uuid_of

FORMAT = "chatgpt"

# Large exports come in several files.
_CONVERSATIONS = re.compile(r"conversations(-\d+)?\.json")

_REASONING = ("thoughts", "reasoning_recap")
_INSTRUCTIONS = ("user_editable_context", "model_editable_context")

BRANCH = "messages on a branch that is not the current one"
HIDDEN = "system messages and custom instructions"
REASONING = "reasoning of the model"
TOOLS = "tool calls and their results"
EMPTY = "messages without text"
NOT_TEXT = "parts that are not text: {}"

Fields = Mapping[str, Any]


def wanted(source: Source) -> list[Member]:
    """The files with conversations."""
    if not source.is_folder:
        return list(source.members)
    return [member for member in source.members if _CONVERSATIONS.fullmatch(member.basename)]


def read(source: Source, user_id: str, progress: Progress) -> Iterator[Piece]:
    """The current branch of every conversation."""
    for member in wanted(source):
        with member.open() as file:
            for path, conversation in values(Reading(file, progress), [()]):
                number = path[0] + 1 if path and isinstance(path[0], int) else 1
                place = f"{member.name}, conversation {number}"
                try:
                    yield from _conversation_pieces(place, fields_of(conversation, "conversation"), user_id)
                except Invalid as problem:
                    yield Refused(place, str(problem))


def _conversation_pieces(place: str, fields: Fields, user_id: str) -> Iterator[Piece]:
    """What was said on the current branch of a conversation."""
    own_id = identity_of(fields, "conversation_id", "id")
    mapping = fields_of(fields.get("mapping"), "mapping of the conversation")
    began = unix_moment(fields.get("create_time"))
    metadata = {"source": FORMAT, "conversation_id": own_id}
    if model := title_of(fields.get("default_model_slug")):
        metadata["model"] = model
    session = Session(str(uuid_of(FORMAT, user_id, own_id)), user_id, title_of(fields.get("title")), metadata, began)
    branch = _current_branch(mapping, fields.get("current_node"))
    if elsewhere := sum(_is_said(node) for name, node in mapping.items() if name not in branch):
        yield LeftOut(place, BRANCH, elsewhere)
    at = began
    for name in reversed(branch):
        message = mapping[name].get("message")
        if isinstance(message, dict):
            at = unix_moment(message.get("create_time")) or at
            yield from _message_pieces(place, session, (own_id, name), message, at)


def _current_branch(mapping: Fields, leaf: object) -> dict[str, None]:
    """The messages from the last that was shown back to the first; without a mark, from the last in the file."""
    if not isinstance(leaf, str) or leaf not in mapping:
        parents = {text_of(node.get("parent")) for node in mapping.values() if isinstance(node, dict)}
        leaf = next((name for name in reversed(list(mapping)) if name not in parents), None)
    found: dict[str, None] = {}
    # Each once: a damaged tree may have a circle.
    while isinstance(leaf, str) and leaf not in found and isinstance(node := mapping.get(leaf), dict):
        found[leaf] = None
        leaf = node.get("parent")
    return found


def _is_said(node: object) -> bool:
    """Whether a node is a message that could have been taken."""
    message = node.get("message") if isinstance(node, dict) else None
    if not isinstance(message, dict) or _role(message) not in ("user", "assistant"):
        return False
    return bool(_text(message.get("content"))[0].strip())


def _message_pieces(place: str, session: Session, ids: tuple[str, str], message: Fields, at: Any) -> Iterator[Piece]:
    """A message, or why it is left out."""
    content = message.get("content")
    text, others = _text(content)
    if reason := _reason_to_leave_out(message, content):
        if text.strip() or others or reason == REASONING:
            yield LeftOut(place, reason)
        return
    for kind in others:
        yield LeftOut(place, NOT_TEXT.format(kind))
    if not text.strip():
        if not others:
            yield LeftOut(place, EMPTY)
        return
    details = message.get("metadata")
    model = title_of(details.get("model_slug")) if isinstance(details, dict) else None
    metadata = {"source": FORMAT, "message_id": ids[1]} | ({"model": model} if model else {})
    author = message.get("author")
    name = title_of(author.get("name")) if isinstance(author, dict) else None
    own_time = unix_moment(message.get("create_time"))
    message_id = stable_id(own_time, FORMAT, session.user_id, *ids)
    yield Said(place, session, message_id, _role(message), text, at, name, metadata)


def _reason_to_leave_out(message: Fields, content: object) -> str | None:
    """Why a message is no part of what the two said to each other."""
    kind = content.get("content_type") if isinstance(content, dict) else None
    details = message.get("metadata")
    hidden = isinstance(details, dict) and details.get("is_visually_hidden_from_conversation")
    if _role(message) == "system" or kind in _INSTRUCTIONS or hidden:
        return HIDDEN
    if kind in _REASONING:
        return REASONING
    if _role(message) != "user" and (_role(message) != "assistant" or message.get("recipient") not in (None, "all")):
        return TOOLS
    return None


def _role(message: Fields) -> str:
    author = message.get("author")
    return text_of(author.get("role")) if isinstance(author, dict) else ""


def _text(content: object) -> tuple[str, list[str]]:
    """The text of a message, and the types of its parts that are none."""
    if not isinstance(content, dict):
        return "", []
    parts = content.get("parts")
    if not isinstance(parts, list):
        return text_of(content.get("text")), []
    texts, others = [], []
    for part in parts:
        if isinstance(part, str):
            texts.append(text_of(part))
        elif isinstance(part, dict):
            # What was spoken comes with its words.
            said = text_of(part.get("text"))
            texts += [said] if said else []
            others += [] if said else [str(part.get("content_type") or "unknown")]
    return "\n".join(text for text in texts if text), others
