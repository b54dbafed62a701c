"""A `ConversationStore` of Pydantic AI in Recollect: conversations are sessions, entries are messages of the log."""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from recollect.adapters.connection import Connection
from recollect.adapters.session_log import FORMAT, PAGE, RENDERED_CHARACTERS, sessions, storable
from recollect.errors import Conflict, NotFound
from recollect.settings import Settings

NAME = "pydantic-ai"

# Keys of a session's metadata: the record as JSON text, and its revision, which a write must expect.
RECORD = "pydantic-ai"
REVISION = "pydantic-ai-revision"

_RECORDS: TypeAdapter[ConversationRecord] = TypeAdapter(ConversationRecord)


class RecollectConversationStore(ConversationStore):
    """Conversations whose messages come back as they were; what was said in them is found by recall.

    A conversation's scope is the user of its session; without a scope it is `user_id`'s. Without a `url`, the embedded
    engine in this process keeps everything. `delete` deletes the messages for good, but for those that a fork shares:
    they go with the last fork. A save with its entries is one transaction; only a fork that is saved while the
    conversation it was taken from is being deleted may lose what it shares.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        user_id: str | None = None,
        namespace: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._connection = Connection(url, key, namespace=namespace, settings=settings)
        self._user_id = user_id

    def close(self) -> None:
        """Let go of the server or the database. The next call opens it again."""
        self._connection.close()

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record of a conversation, or None."""
        try:
            return _record(await self._call("GET", "/sessions/{}", conversation_id))
        except NotFound:
            return None

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """All records, or those of a scope, the last saved first."""
        found = [record async for record in self._records(scope or None) if scope is None or record.scope == scope]
        return sorted(found, key=lambda record: record.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new entries in one step, in the place of the record of the expected revision."""
        if record.head_id is not None and record.head_id not in {entry.id for entry in new_entries}:
            try:
                await self._call("GET", "/messages/{}", record.head_id)
            except NotFound as problem:
                raise ConversationConflict(record.conversation_id) from problem
        body = {
            "messages": [_message(entry) for entry in new_entries],
            "user_id": record.scope or self._user_id,
            "metadata": {RECORD: _RECORDS.dump_json(record).decode(), REVISION: record.revision},
            "expected": {REVISION: expected_revision},
        }
        try:
            await self._call("POST", "/sessions/{}/messages", record.conversation_id, json=body)
        except Conflict as problem:
            raise ConversationConflict(record.conversation_id) from problem

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a record, and the sessions of its entries that no other record needs."""
        record = await self.read_record(conversation_id)
        if record is None:
            raise ConversationConflict(conversation_id)
        used = await self._sessions_of([record]) | {conversation_id}
        body = {"metadata": {RECORD: None, REVISION: None}, "expected": {REVISION: expected_revision}}
        try:
            await self._call("PATCH", "/sessions/{}", conversation_id, json=body)
        except (Conflict, NotFound) as problem:
            raise ConversationConflict(conversation_id) from problem
        forks = [fork async for fork in self._records(None) if fork.forked_from is not None]
        for session_id in used - await self._sessions_of(forks):
            if await self.read_record(session_id) is None:
                await self._call("DELETE", "/sessions/{}", session_id)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """One entry; LookupError if there is none."""
        return _entry(await self._logged(entry_id))

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """The entries up to one of them, in order, or the last of those; a thousand with each request."""
        entries: list[ConversationEntry] = []
        if limit != 0:
            async for message in self._line(head_id):
                entries.append(_entry(message))
                if len(entries) == limit:
                    break
        return entries[::-1]

    async def _line(self, head_id: str | None) -> AsyncIterator[dict[str, Any]]:
        """The messages of a history from its end on; forks go on in the session that they were taken from."""
        wanted, known, session_id = head_id, dict[str, dict[str, Any]](), ""
        while wanted is not None:
            if wanted not in known:
                message = await self._logged(wanted)
                session_id = message["session_id"]
                query = {"limit": PAGE, "newest": "true", "before": wanted}
                page = await self._call("GET", "/sessions/{}/messages", session_id, params=query)
                known = {before["id"]: before for before in page["messages"]} | {wanted: message}
            message = known[wanted]
            yield message | {"session_id": session_id}
            wanted = json.loads(message["payload"])["parent_id"]

    async def _sessions_of(self, records: Iterable[ConversationRecord]) -> set[str]:
        """Where the entries of some records are, those of branches that they left among them."""
        tips = {tip for record in records for tip in (record.head_id, *record.branches)}
        return {message["session_id"] for tip in tips async for message in self._line(tip)}

    async def _logged(self, entry_id: str) -> dict[str, Any]:
        try:
            message: dict[str, Any] = await self._call("GET", "/messages/{}", entry_id)
        except NotFound as problem:
            raise LookupError(str(problem)) from problem
        return message

    async def _records(self, user_id: str | None) -> AsyncIterator[ConversationRecord]:
        async for session in sessions(self._connection, user_id=user_id):
            if record := _record(session):
                yield record

    async def _call(self, method: str, path: str, *ids: str, **options: Any) -> Any:
        return await self._connection.call_async(method, path, *ids, **options)


def _record(session: dict[str, Any]) -> ConversationRecord | None:
    """A session that began elsewhere has none."""
    stored = (session["metadata"] or {}).get(RECORD)
    return None if stored is None else _RECORDS.validate_json(stored)


def _entry(message: dict[str, Any]) -> ConversationEntry:
    """The message goes through JSON text, in which the framework writes bytes."""
    stored = json.loads(message["payload"])
    (said,) = ModelMessagesTypeAdapter.validate_json(json.dumps(stored["messages"]))
    return ConversationEntry(id=message["id"], parent_id=stored["parent_id"], message=said)


def _message(entry: ConversationEntry) -> dict[str, Any]:
    """An entry as a message of the log, under its own id."""
    written = ModelMessagesTypeAdapter.dump_json([entry.message])
    return {
        "id": entry.id,
        "role": _role(entry.message),
        "text": storable("\n".join(filter(None, map(_said, entry.message.parts)))),
        "payload": json.dumps({"parent_id": entry.parent_id, "messages": json.loads(written)}),
        "metadata": {FORMAT: NAME},
    }


def _role(message: ModelMessage) -> str:
    if not isinstance(message, ModelRequest):
        return "assistant"
    return "user" if any(isinstance(part, UserPromptPart) for part in message.parts) else "tool"


def _said(part: object) -> str:
    """What was said, or which tool was called and what it answered; instructions and reasoning are not said."""
    if isinstance(part, TextPart):
        return part.content
    if isinstance(part, UserPromptPart):
        content = [part.content] if isinstance(part.content, str) else part.content
        return "\n".join(text for text in content if isinstance(text, str))
    if isinstance(part, ToolCallPart):
        return f"{part.tool_name}({part.args_as_json_str()})"[:RENDERED_CHARACTERS]
    if isinstance(part, ToolReturnPart):
        return part.model_response_str()[:RENDERED_CHARACTERS]
    return ""
