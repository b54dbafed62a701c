"""Imports of memories from other programs, in their formats."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, BinaryIO

from recollect import checks
from recollect.errors import Conflict, Invalid
from recollect.flows.defence.masking import MasksSecrets
from recollect.flows.indexing.node_passages import NodePassages
from recollect.flows.kinds.long_term import MEMORY_HISTORY, MEMORY_KIND
from recollect.flows.transfer.import_lines import BadLine, Line, read
from recollect.flows.transfer.import_report import Progress, Report, each_alone_if_not_together
from recollect.flows.transfer.importing import Importing
from recollect.flows.transfer.mem0_file import Mem0Memory
from recollect.flows.transfer.mem0_file import parse as parse_mem0
from recollect.memory.changes import Change, Changes
from recollect.memory.cognitive.graph import Graph
from recollect.memory.records import Outcome, Records
from recollect.storage.database import Database, Transaction

BATCH_MEMORIES = 100

OBSERVATIONS = "observations"

# The file says of a relation only that it is there.
WEIGHT = 1.0


class Adopting(MasksSecrets):
    """Takes over what others kept. What is there already stays as it is, so it can be run again."""

    def __init__(
        self,
        database: Database,
        records: Records,
        graph: Graph,
        node_passages: NodePassages,
        changes: Changes,
        importing: Importing,
        written: Callable[[str], None],
    ) -> None:
        self._database = database
        self._records = records
        self._graph = graph
        self._node_passages = node_passages
        self._changes = changes
        self._importing = importing
        self._written = written

    async def memory_json(self, namespace: str, file: BinaryIO, progress: Progress | None = None) -> Report:
        """Take over the knowledge graph of the MCP reference memory server.

        An entity becomes a node with its observations as a property, by which recall finds it.
        """
        report = Report(checks.namespace(namespace))
        async with self.counting_once(namespace):
            for line in read(file):
                try:
                    if isinstance(line, BadLine):
                        raise Invalid(line.reason)
                    line = replace(line, fields=await self.cleaned(namespace, line.fields))
                    kind, new = await self._take_over(namespace, line)
                except (Invalid, Conflict) as problem:
                    report.refuse(line.place, problem)
                else:
                    (report.added if new else report.known)[kind] += 1
                if progress is not None:
                    progress(line.size)
        self._written(namespace)
        return report

    async def mem0(
        self, namespace: str, file: BinaryIO, user_id: str | None = None, progress: Progress | None = None
    ) -> Report:
        """Take over what mem0's `get_all` or an export of it returned; records without a user belong to `user_id`."""
        report = Report(checks.namespace(namespace))
        content = file.read()
        batch: list[Mem0Memory] = []
        async with self.counting_once(namespace):
            for entry in parse_mem0(content, user_id, datetime.now(UTC)):
                if isinstance(entry, Mem0Memory):
                    if self.masking is not None:
                        entry = replace(
                            entry, fields=dict(await self.masking.record(namespace, MEMORY_KIND, entry.fields))
                        )
                    batch.append(entry)
                else:
                    report.refuse(entry.place, entry.reason)
                if len(batch) == BATCH_MEMORIES:
                    await self._add_memories(namespace, batch, report)
                    batch = []
            await self._add_memories(namespace, batch, report)
        if progress is not None:
            progress(len(content))
        self._written(namespace)
        return report

    async def _take_over(self, namespace: str, line: Line) -> tuple[str, bool]:
        what = line.fields.get("type")
        if what == "entity":
            observations = line.fields.get(OBSERVATIONS)
            if not isinstance(observations, list):
                raise Invalid("observations must be a list of texts")
            name, label = (checks.short_name(_given(line.fields, key), key) for key in ("name", "entityType"))
            texts = list(dict.fromkeys(checks.text(text, "an observation") for text in observations))
            async with self._database.transaction(namespace) as tx:
                return "entity", await self._add_entity(tx, name, label, texts)
        if what == "relation":
            source, target, relation = (
                checks.short_name(_given(line.fields, name), name) for name in ("from", "to", "relationType")
            )
            async with self._database.transaction(namespace) as tx:
                created = await self._graph.create_ends(tx, dict.fromkeys((source, target)))
                ends = await self._graph.view().ends(tx, {source, target})
                await self._node_passages.judge(tx, sorted(ends[name].id for name in created))
                edge_id = await self._graph.create_edge(tx, ends[source].id, ends[target].id, relation, WEIGHT)
                changes = [Change("import", "node", str(ends[name].id)) for name in sorted(created)]
                if edge_id is not None:
                    changes.append(Change("import", "edge", str(edge_id)))
                await self._changes.record(tx, changes)
                return "relation", edge_id is not None
        raise Invalid(f"type is {what!r}, neither entity nor relation")

    async def _add_entity(self, tx: Transaction, name: str, label: str, observations: Sequence[str]) -> bool:
        before = (await self._graph.view().ends(tx, [name])).get(name)
        node = await self._graph.add_node(tx, name, label, "{}", None)
        known = node.properties.get(OBSERVATIONS)
        known = known if isinstance(known, list) else []
        together = list(dict.fromkeys([*map(str, known), *observations]))
        tells_more = bool(observations) and together != known
        if tells_more:
            properties = checks.metadata({OBSERVATIONS: together}, OBSERVATIONS) or "{}"
            await self._graph.add_node(tx, name, label, properties, None)
            await self._node_passages.renew(tx, [node.id])
        else:
            await self._node_passages.judge(tx, [node.id])
        is_new = before is None or not before.labelled or tells_more
        if is_new:
            await self._changes.record(tx, [Change("import", "node", str(node.id))])
        return is_new

    async def _add_memories(self, namespace: str, batch: Sequence[Mem0Memory], report: Report) -> None:
        # Of two with the same id, the first is taken.
        by_id = {memory.fields["id"]: memory for memory in reversed(batch)}
        report.known[MEMORY_KIND.name] += len(batch) - len(by_id)

        async def store(memories: Sequence[Mem0Memory]) -> None:
            async with self._database.transaction(namespace) as tx:
                fields = [memory.fields for memory in memories]
                outcomes = await self._importing.add(tx, MEMORY_KIND, list(map(_json, fields)), fields)
                new = [memory for memory in memories if outcomes[(memory.fields["id"],)] is Outcome.ADDED]
                if new:
                    await self._records.restore(tx, MEMORY_HISTORY.record, [_json(memory.history) for memory in new])
                await self._importing.record(tx, MEMORY_KIND, fields, outcomes)
            report.added[MEMORY_KIND.name] += len(new)
            # There under its id, or one of the same scope says the same.
            report.known[MEMORY_KIND.name] += len(memories) - len(new)

        if by_id:
            await each_alone_if_not_together(
                list(by_id.values())[::-1], store, lambda memory, problem: report.refuse(memory.place, problem)
            )


def _given(fields: Any, name: str) -> Any:
    if name not in fields:
        raise Invalid(f"the {fields['type']} has no {name}")
    return fields[name]


def _json(fields: Iterable[Any]) -> str:
    return json.dumps(fields, ensure_ascii=False)
