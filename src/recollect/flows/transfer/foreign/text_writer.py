"""TextWriter: keeps the texts of foreign files in their last version, as documents or as resources of a user."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from recollect import checks
from recollect.flows.capabilities import Capabilities
from recollect.flows.indexing.node_passages import NodePassages
from recollect.flows.kinds.kind import Kind
from recollect.flows.kinds.long_term import DOCUMENT, RESOURCE
from recollect.flows.transfer.foreign.message_writer import Stored
from recollect.flows.transfer.foreign.pieces import Note, Text
from recollect.flows.transfer.importing import Importing
from recollect.identifiers import uuid_of
from recollect.memory.changes import Change
from recollect.storage.database import Database, Transaction

NOTE_LABEL = "note"
LINKS_TO = "links_to"


class TextWriter:
    """Writes the texts of one import, and the nodes and links of those that are notes."""

    def __init__(
        self, database: Database, memory: Capabilities, importing: Importing, namespace: str, *, dry_run: bool
    ) -> None:
        self._database = database
        self._memory = memory
        self._importing = importing
        self._namespace = namespace
        self._dry_run = dry_run

    async def store(self, batch: Sequence[Text]) -> Stored:
        """Store texts in one transaction; all of a batch have an owner, or none has."""
        kind = DOCUMENT if batch[0].owner is None else RESOURCE
        given = {_id(text): text for text in reversed(batch)}
        async with self._database.reading(self._namespace) as db:
            present = await self._memory.records.shown(db, kind.record, list(given), checks.MAX_TEXT_BYTES)
        new = [text for text_id, text in given.items() if text_id not in present]
        changed = [
            text for text_id, text in given.items() if text_id in present and present[text_id]["text"] != text.content
        ]
        if (new or changed) and not self._dry_run:
            await self._write(kind, new[::-1], changed[::-1])
        stored = Stored()
        stored.added[kind.name], stored.changed[kind.name] = len(new), len(changed)
        stored.known[kind.name] = len(batch) - len(new) - len(changed)
        return stored

    async def _write(self, kind: Kind, new: Sequence[Text], changed: Sequence[Text]) -> None:
        memory, importing = self._memory, self._importing
        async with self._database.transaction(self._namespace) as tx:
            for texts, store in ((new, importing.add), (changed, importing.replace)):
                if texts:
                    records = [_record_of(text) for text in texts]
                    await store(tx, kind, [json.dumps(record, ensure_ascii=False) for record in records], records)
            changes = [Change("import", kind.name, _id(text)) for text in new]
            changes += [Change("update", kind.name, _id(text)) for text in changed]
            changes += await self._link(tx, [text.note for text in (*new, *changed) if text.note])
            await memory.changes.record(tx, changes)

    async def _link(self, tx: Transaction, notes: Sequence[Note]) -> list[Change]:
        """The nodes of notes, and edges to those that they link to; nodes that exist keep what they have."""
        graph = self._memory.graph
        properties = {
            name: json.dumps({"folder": note.folder, "path": path})
            for note in notes
            for name, path in {**note.links, note.name: note.path}.items()
        }
        if not properties:
            return []
        nodes = await graph.create_nodes(tx, NOTE_LABEL, properties)
        await graph.label_ends(tx, dict.fromkeys(sorted(properties), NOTE_LABEL))
        await NodePassages(self._memory.entities, self._memory.passages).judge(tx, nodes)
        ends = await graph.view().ends(tx, properties)
        links = {(ends[note.name].id, ends[name].id, LINKS_TO) for note in notes for name in note.links}
        edges = await graph.create_edges(tx, links)
        changes = [Change("import", "node", str(node_id)) for node_id in sorted(nodes)]
        return changes + [Change("import", "edge", str(edge_id)) for edge_id in sorted(edges.values())]


def _id(text: Text) -> str:
    # A resource has the id that the gateway would give it.
    return str(uuid_of("foreign", text.uri) if text.owner is None else uuid_of(text.owner, "", text.uri))


def _record_of(text: Text) -> dict[str, Any]:
    """A text as a record of its kind."""
    at = (text.at or datetime.now(UTC)).isoformat()
    common = {
        "id": _id(text),
        "content": text.content,
        "metadata": dict(text.metadata),
        "created_at": at,
        "updated_at": at,
    }
    if text.owner is None:
        return common | {"embedding": None}
    return common | {"user_id": text.owner, "realm": "", "uri": text.uri, "title": text.title}
