"""Claude's data export: conversations.json, projects.json or the folder projects, and memories.json."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
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
    identity_of,
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

FORMAT = "claude"

_FILES = re.compile(r"(conversations(-\d+)?|projects|memories)\.json")
_ROLES = {"human": "user", "assistant": "assistant"}

BRANCH = "messages on a branch that is not the current one"
EMPTY = "messages without text"
FILES = "attached files without their text"
BLOCKS = "parts that are not text: {}"

Fields = Mapping[str, Any]


def wanted(source: Source) -> list[Member]:
    """The files with conversations, projects and memories."""
    if not source.is_folder:
        return list(source.members)
    folders = re.compile(r"(^|/)(projects|memories)/[^/]+\.json$")
    return [
        member for member in source.members if _FILES.fullmatch(member.basename) or folders.search(f"/{member.name}")
    ]


def read(source: Source, user_id: str, progress: Progress, owner: str | None = None) -> Iterator[Piece]:
    """Conversations with the texts of attachments, instructions and documents of projects, and Claude's own memory."""
    for member in wanted(source):
        with member.open() as file:
            # A project may have a file of its own, which is then an object: it comes whole.
            inside = [()] if _is_array(member) else []
            for path, value in values(Reading(file, progress), inside):
                number = path[0] + 1 if path and isinstance(path[0], int) else 1
                place = f"{member.name}, record {number}"
                try:
                    yield from _record_pieces(place, fields_of(value, "record"), user_id, owner)
                except Invalid as problem:
                    yield Refused(place, str(problem))


def _is_array(member: Member) -> bool:
    """Whether a file has several records."""
    with member.open() as file:
        return file.read(64).decode("utf-8-sig", "replace").lstrip().startswith("[")


def _record_pieces(place: str, fields: Fields, user_id: str, owner: str | None) -> Iterator[Piece]:
    """What a record says, by what it is."""
    if "chat_messages" in fields:
        yield from _conversation_pieces(place, fields, user_id)
    elif "docs" in fields or "prompt_template" in fields:
        yield from _project_pieces(place, fields, owner)
    elif "conversations_memory" in fields or "project_memories" in fields:
        yield from _memory_pieces(place, fields, user_id)
    else:
        raise Invalid("it is neither a conversation, a project nor a memory of Claude")


def _conversation_pieces(place: str, fields: Fields, user_id: str) -> Iterator[Piece]:
    """What was said in a conversation."""
    own_id = identity_of(fields, "uuid")
    messages = fields["chat_messages"]
    if not isinstance(messages, list):
        raise Invalid("chat_messages must be a list")
    began = iso_moment(fields.get("created_at"))
    metadata = {"source": FORMAT, "conversation_id": own_id}
    if model := title_of(fields.get("model")):
        metadata["model"] = model
    session = Session(str(uuid_of(FORMAT, user_id, own_id)), user_id, title_of(fields.get("name")), metadata, began)
    branch = _current_branch(messages, fields.get("current_leaf_message_uuid"))
    if len(branch) < len(messages):
        yield LeftOut(place, BRANCH, len(messages) - len(branch))
    at = began
    for message in branch:
        at = iso_moment(message.get("created_at")) or at
        try:
            yield from _message_pieces(place, session, own_id, message, at)
        except Invalid as problem:
            yield Refused(place, f"a message: {problem}")


def _current_branch(messages: Sequence[object], leaf: object) -> list[Fields]:
    """The messages from the first to the last; where one was answered or asked anew, those of the newest branch."""
    by_id = {str(message.get("uuid")): message for message in messages if isinstance(message, dict)}
    if len(by_id) < len(messages):
        raise Invalid("a message is not a JSON object, or two have the same uuid")
    parents = [parent for message in by_id.values() if (parent := text_of(message.get("parent_message_uuid")))]
    if len(set(parents)) == len(parents):
        return list(by_id.values())
    if not isinstance(leaf, str) or leaf not in by_id:
        leaves = [name for name in by_id if name not in set(parents)]
        leaf = max(leaves, key=lambda name: text_of(by_id[name].get("created_at")), default=None)
    found: dict[str, Fields] = {}
    while isinstance(leaf, str) and leaf in by_id and leaf not in found:
        found[leaf] = by_id[leaf]
        leaf = by_id[leaf].get("parent_message_uuid")
    return list(found.values())[::-1]


def _message_pieces(
    place: str, session: Session, conversation: str, message: Fields, at: datetime | None
) -> Iterator[Piece]:
    """A message with the texts that were attached."""
    own_id = identity_of(message, "uuid")
    # The field `text` has placeholders for parts that are not text.
    text, others = text_blocks(message.get("content") or message.get("text"))
    for kind in others:
        yield LeftOut(place, BLOCKS.format(kind))
    attached, bare = _attached_texts(message)
    if bare:
        yield LeftOut(place, FILES, bare)
    text = "\n\n".join(part for part in (text, *attached) if part.strip())
    if not text.strip():
        if not others and not bare:
            yield LeftOut(place, EMPTY)
        return
    sender = text_of(message.get("sender"))
    metadata = {"source": FORMAT, "message_id": own_id}
    own_time = iso_moment(message.get("created_at"))
    message_id = stable_id(own_time, FORMAT, session.user_id, conversation, own_id)
    yield Said(place, session, message_id, _ROLES.get(sender, sender), text, at, None, metadata)


def _attached_texts(message: Fields) -> tuple[list[str], int]:
    """Attached texts under their names, and the number of files that came without."""
    texts, bare = [], 0
    for name in ("attachments", "files"):
        for file in listed(message.get(name)):
            text = text_of(file.get("extracted_content")) if isinstance(file, dict) else ""
            if text.strip():
                texts.append(f"[{title_of(file.get('file_name')) or 'attachment'}]\n{text}")
            else:
                bare += 1
    return texts, bare


def _project_pieces(place: str, fields: Fields, owner: str | None) -> Iterator[Piece]:
    """The instructions and documents of a project."""
    own_id = identity_of(fields, "uuid")
    name = title_of(fields.get("name"))
    metadata = {"source": FORMAT, "project": name, "project_id": own_id}
    at = iso_moment(fields.get("created_at"))
    about = [text_of(fields.get(field)) for field in ("description", "prompt_template")]
    if instructions := "\n\n".join(text for text in about if text.strip()):
        yield Text(place, f"claude:project/{own_id}", owner, name, titled(name, instructions), at, metadata)
    for number, document in enumerate(listed(fields.get("docs")), 1):
        document = fields_of(document, "document of the project")
        title = title_of(document.get("filename"))
        if not text_of(document.get("content")).strip():
            yield LeftOut(place, "documents of projects without text")
            continue
        uri = f"claude:project/{own_id}/{document.get('uuid') or title or number}"
        content = titled(title, text_of(document.get("content")))
        yield Text(place, uri, owner, title, content, iso_moment(document.get("created_at")) or at, metadata)


def _memory_pieces(place: str, fields: Fields, user_id: str) -> Iterator[Piece]:
    """What Claude remembered of the user, and of each project."""
    of_projects = fields.get("project_memories")
    texts = {"claude memory": fields.get("conversations_memory")}
    if isinstance(of_projects, dict):
        texts |= {f"claude memory of project {project}": text for project, text in of_projects.items()}
    for key, value in texts.items():
        if (text := text_of(value)).strip():
            memory_id = uuid_of(FORMAT, user_id, key, text)
            yield Fact(place, memory_id, user_id, None, key, text, None, {"source": FORMAT})
