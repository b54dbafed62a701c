"""Session transcripts of Claude Code: a file of JSON lines for each session, in folders by project."""

from collections.abc import Iterator, Mapping
from typing import Any

from recollect.errors import Invalid
from recollect.flows.transfer.foreign.pieces import (
    LeftOut,
    Piece,
    Refused,
    Said,
    Session,
    identity_of,
    iso_moment,
    stable_id,
    text_blocks,
    text_of,
    title_of,
)
from recollect.flows.transfer.foreign.sources import Member, Reading, Source
from recollect.flows.transfer.import_lines import BadLine, Line
from recollect.flows.transfer.import_lines import read as lines_of
from recollect.flows.transfer.import_report import Progress
from recollect.identifiers import uuid_of

FORMAT = "claude-code"

TITLE_CHARACTERS = 80

SIDECHAIN = "messages of sub-agents"
BLOCKS = "parts that are not text: {}"
NOTES = "lines that are no messages: {}"
MARKED = "notes of the program to the model"

Fields = Mapping[str, Any]


def wanted(source: Source) -> list[Member]:
    """The transcripts."""
    return [member for member in source.members if member.name.endswith(".jsonl")]


def read(source: Source, user_id: str, progress: Progress) -> Iterator[Piece]:
    """What user and assistant wrote in every session."""
    for member in wanted(source):
        try:
            with member.open() as file:
                yield from _Transcript(member.name, user_id).pieces(file, progress)
        except OSError as problem:
            yield Refused(member.name, f"the transcript cannot be read: {problem.strerror}")


class _Transcript:
    """One file, of which every line names its session."""

    def __init__(self, name: str, user_id: str) -> None:
        self._name = name
        self._user_id = user_id
        self._summary: str | None = None
        self._session: Session | None = None

    def pieces(self, file: Any, progress: Progress) -> Iterator[Piece]:
        """Everything that it says."""
        for line in lines_of(Reading(file, progress)):  # type: ignore[arg-type]
            place = f"{self._name}, {line.place}"
            if isinstance(line, BadLine):
                yield Refused(place, line.reason)
                continue
            try:
                yield from self._line_pieces(place, line)
            except Invalid as problem:
                yield Refused(place, str(problem))

    def _line_pieces(self, place: str, line: Line) -> Iterator[Piece]:
        """What one line says."""
        fields = line.fields
        kind = text_of(fields.get("type")) or "unknown"
        if kind == "summary":
            self._summary = self._summary or title_of(fields.get("summary"))
        elif kind not in ("user", "assistant"):
            yield LeftOut(place, NOTES.format(kind))
        elif fields.get("isSidechain"):
            yield LeftOut(place, SIDECHAIN)
        elif fields.get("isMeta"):
            yield LeftOut(place, MARKED)
        else:
            yield from self._message_pieces(place, kind, fields)

    def _message_pieces(self, place: str, kind: str, fields: Fields) -> Iterator[Piece]:
        """What was said in one line."""
        message = fields.get("message")
        if not isinstance(message, dict):
            raise Invalid("the line has no message")
        text, others = text_blocks(message.get("content"))
        for other in others:
            yield LeftOut(place, BLOCKS.format(other))
        if not text.strip():
            return
        at = iso_moment(fields.get("timestamp"))
        own_id = identity_of(fields, "uuid")
        session = self._session_of(fields, text)
        metadata = {"source": FORMAT, "message_id": own_id}
        for name, value in (("model", message.get("model")), ("cwd", fields.get("cwd"))):
            if stated := title_of(value):
                metadata[name] = stated
        # A session that is resumed begins with copies of the messages before, under their own ids.
        message_id = stable_id(at, FORMAT, self._user_id, own_id)
        yield Said(place, session, message_id, text_of(message.get("role")) or kind, text, at, None, metadata)

    def _session_of(self, fields: Fields, text: str) -> Session:
        """The session that a line names."""
        own_id = identity_of(fields, "sessionId")
        session_id = str(uuid_of(FORMAT, self._user_id, own_id))
        if self._session is None or self._session.id != session_id:
            title = self._summary or " ".join(text.split())[:TITLE_CHARACTERS]
            metadata = {"source": FORMAT, "session_id": own_id}
            for name in ("cwd", "gitBranch"):
                if stated := title_of(fields.get(name)):
                    metadata[name] = stated
            self._session = Session(session_id, self._user_id, title, metadata, iso_moment(fields.get("timestamp")))
        return self._session
