"""By what a record is found: the passages of items that come in whole, the same as when they were first stored."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from recollect.memory.index.passages import Source, analyse
from recollect.memory.records import DOCUMENT, EPISODE, INSIGHT, MEMORY, MESSAGE, RESOURCE, Kind
from recollect.memory.sessions import SessionOwner

Fields = Mapping[str, Any]

FOUND = (MESSAGE, DOCUMENT, MEMORY, INSIGHT, EPISODE, RESOURCE)
"""The kinds that recall finds. Its name is the name of the record's kind."""


def sources(kind: Kind, records: Sequence[Fields], holders: Mapping[str, SessionOwner]) -> list[Source]:
    """The passages of some records; holders are those of the sessions that messages are in."""
    if kind is MESSAGE:
        return [_message(fields, holders[fields["session_id"]]) for fields in records]
    if kind is MEMORY:
        records = [fields for fields in records if fields["superseded_by"] is None]
    return [_BY_KIND[kind.name](fields) for fields in records]


def _message(fields: Fields, holder: SessionOwner) -> Source:
    return Source(
        MESSAGE.name,
        fields["id"],
        analyse(fields["content"], fields["speaker"]),
        _moment(fields["created_at"]),
        owner=holder.user_id,
        session_id=fields["session_id"],
        position=fields["position"],
        role=fields["role"],
        speaker=fields["speaker"],
        metadata=_json(fields["metadata"]),
        realm=holder.realm,
    )


def _document(fields: Fields) -> Source:
    return Source(
        DOCUMENT.name,
        fields["id"],
        analyse(fields["content"]),
        _moment(fields["created_at"]),
        metadata=_json(fields["metadata"]),
    )


def _memory(fields: Fields) -> Source:
    return Source(
        MEMORY.name,
        fields["id"],
        analyse(fields["text"]),
        _moment(fields["created_at"]),
        owner=fields["user_id"] or "",
        agent_id=fields["agent_id"],
        session_id=fields["session_id"],
        category=fields["category"],
        metadata=_json(fields["metadata"]),
    )


def _insight(fields: Fields) -> Source:
    return Source(INSIGHT.name, str(fields["id"]), analyse(fields["content"]), _moment(fields["created_at"]))


def _episode(fields: Fields) -> Source:
    lesson = {"reward": float(fields["reward"]), "reflection": fields["reflection"]}
    return Source(
        EPISODE.name,
        str(fields["id"]),
        analyse(fields["query"]),
        _moment(fields["created_at"]),
        metadata=_json(lesson),
    )


def _resource(fields: Fields) -> Source:
    return Source(
        RESOURCE.name,
        fields["id"],
        analyse(fields["content"], fields["title"]),
        _moment(fields["updated_at"]),
        owner=fields["user_id"],
        metadata=_json(fields["metadata"]),
        realm=fields["realm"],
    )


_BY_KIND: dict[str, Callable[[Fields], Source]] = {
    DOCUMENT.name: _document,
    MEMORY.name: _memory,
    INSIGHT.name: _insight,
    EPISODE.name: _episode,
    RESOURCE.name: _resource,
}


def _moment(value: str) -> datetime:
    return datetime.fromisoformat(value)


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
