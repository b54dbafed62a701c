"""The console over a million messages: the first byte and the size of every page, and recall against the API."""

import asyncio
import json
import re
import statistics
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode
from uuid import UUID

from benchmarks import recall
from benchmarks.report import Report, spread
from benchmarks.rest import recollect_server
from benchmarks.sizes import sized
from recollect import Settings
from recollect.engine import Engine
from recollect.flows.cognitive.golden_test import Entry

NAMESPACE = "default"
NODES = sized(5_000)
QUESTIONS = sized(60, 5)
VISITS = sized(40, 5)
OWNER = "owner-10k"
FIRST_BYTE_MS = 150
MAX_BYTES = 200_000

# As if every message had been stored through the engine, one turn each.
SESSION_ROWS = """
insert into sessions (namespace, id, user_id, next_position, created_at, updated_at)
select namespace, session_id, owner, max(position) + 1, min(at), max(at)
from passages where namespace = $1 and kind = 'message' group by namespace, session_id, owner
on conflict do nothing
"""
MESSAGE_ROWS = """
insert into messages (namespace, id, session_id, position, role, speaker, content, created_at)
select namespace, item_id::uuid, session_id, position, role, speaker, text, at
from passages where namespace = $1 and kind = 'message'
on conflict do nothing
"""
CHANGE_ROWS = """
insert into changes (namespace, number, at, event, kind, item_id, door, detail)
select namespace, row_number() over (order by at), at, 'add', 'message', session_id, 'rest',
       jsonb_build_object('first', position, 'count', 1)
from passages where namespace = $1 and kind = 'message'
on conflict do nothing
"""
COUNTER_ROW = """
insert into change_counters (namespace, last) select $1, count(*) from changes where namespace = $1
on conflict (namespace) do update set last = excluded.last
"""
MEMORY_ROWS = """
insert into memories (namespace, id, text, category, user_id, metadata, identity, origin, created_at, since)
select namespace, item_id::uuid, text, 'fact', owner, '{}', sha256(item_id::bytea), sha256(item_id::bytea), at, at
from passages where namespace = $1 and kind = 'message' and owner = 'owner-100k'
on conflict do nothing
"""
AUDIT_ROWS = """
insert into audit_lines (namespace, number, at, author, door, action, outcome, touched, hash)
select namespace, number, at, 'bench', 'rest', 'POST /stm/{session_id}/messages', 'done',
       jsonb_build_array(jsonb_build_object('event', 'add', 'kind', 'message', 'count', 1, 'ids', array[item_id])),
       sha256(item_id::bytea)
from changes where namespace = $1 and number <= 100000
on conflict do nothing
"""
AUDIT_HEAD = """
insert into audit_heads (namespace, number, at, hash, anchor_hash)
select namespace, max(number), max(at), sha256(''), sha256('') from audit_lines where namespace = $1 group by namespace
on conflict do nothing
"""
HELD_ROWS = """
insert into held (namespace, kind, item_id, state, reasons, trust, digest, door, at)
select namespace, 'memory', id::text, 'held', array['it gives the model an order'], 'document', sha256(''), 'rest',
       since
from memories where namespace = $1 order by id limit 10000
on conflict do nothing
"""
JOB_ROW = """
insert into jobs (namespace, id, kind, about, state, done, total, ended_at)
values ($1, gen_random_uuid(), 'embed', '{}', 'done', 1000, 1000, now())
"""
FILLED = (
    SESSION_ROWS, MESSAGE_ROWS, CHANGE_ROWS, COUNTER_ROW, MEMORY_ROWS, AUDIT_ROWS, AUDIT_HEAD, HELD_ROWS, JOB_ROW
)  # fmt: skip
TABLES = ("sessions", "messages", "changes", "memories", "graph_nodes", "graph_edges", "audit_lines", "held")


async def run(report: Report, home: Path) -> None:
    print("console")
    engine = await Engine.open(Settings(data_dir=home, indexer=False))
    try:
        await fill(engine)
        async with recollect_server(home) as port:
            await measure(report, engine, port)
    finally:
        await engine.close()


async def fill(engine: Engine) -> None:
    """A million messages of owners of all sizes with their sessions and changes, memories, and a graph."""
    others = (recall.TOTAL - sum(recall.OWNERS.values())) // recall.CROWD_SIZE
    crowd = {f"crowd-{n}": recall.CROWD_SIZE for n in range(others)}
    await recall.fill(engine, NAMESPACE, recall.OWNERS | crowd, item_id=lambda number: str(UUID(int=number)))
    async with engine.database.transaction(NAMESPACE) as tx:
        for rows in FILLED:
            await tx._connection.execute(rows, NAMESPACE, timeout=3600)
    for number in range(NODES):
        await engine.graph.add_edge(NAMESPACE, f"node {number}", f"node {(number * 7 + 1) % NODES}", "KNOWS")
        await engine.graph.add_edge(NAMESPACE, f"node {number}", f"node {(number * 31 + 2) % NODES}", "MEETS")
    async with engine.database.alone() as connection:
        for table in TABLES:
            await connection.execute(f"vacuum analyze {table}", timeout=3600)


class Examples(NamedTuple):
    """An id of each kind of thing that has a page."""

    memory: str
    session: str
    message: str
    node: str
    job: str
    query: str


def pages(of: Examples) -> dict[str, str]:
    """An address of every page, with something to show, and of the slowest ways to look at it."""
    asked = quote(recall.question())
    words = quote(recall.sentence(2))
    past, now = "2025-06-01T00:00:00", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    path = urlencode({"from": "node 3", "to": "node 4000"})
    return {
        "overview": "/console",
        "recall, a form": "/console/recall",
        "recall, a question": f"/console/recall?query={asked}&user_id={OWNER}",
        "recall, in the past": f"/console/recall?as_of={past}&query={asked}&user_id={OWNER}",
        "recall, two questions": f"/console/recall?query={asked}&user_id={OWNER}&other_query={words}",
        "sessions": "/console/sessions",
        "sessions of a user": f"/console/sessions?user={OWNER}",
        "sessions, by what a user said": f"/console/sessions?user={OWNER}&said={words}",
        "a session": f"/console/session?{urlencode({'id': of.session})}",
        "a message in its place": f"/console/session?{urlencode({'id': of.session, 'at': of.message})}",
        "a message": f"/console/item?name=message:{of.message}",
        "memories": "/console/memories",
        "memories of a user": "/console/memories?user=owner-100k",
        "memories, in the past": f"/console/memories?as_of={past}",
        "a memory": f"/console/memory?id={of.memory}",
        "a memory, to replace": f"/console/memory/replace?id={of.memory}",
        "graph": "/console/graph",
        "graph, by a part of a name": "/console/graph?q=4999",
        "graph, in the past": f"/console/graph?as_of={now}",
        "graph, in the past, the busiest": f"/console/graph?order=busiest&as_of={now}",
        "a node": f"/console/graph?node={of.node}",
        "a path": f"/console/graph?{path}",
        "quality": "/console/quality",
        "a golden query": f"/console/quality/query?id={of.query}",
        "access": "/console/access",
        "audit": "/console/audit",
        "audit, by nobody": "/console/audit?by=nobody",
        "jobs": "/console/jobs",
        "a job": f"/console/jobs/job?id={of.job}",
        "watch": "/console/watch",
        "watch, of a kind that never changed": "/console/watch?kind=document",
        "review": "/console/review",
        "forget, a form": "/console/forget",
        "forget, what matches": f"/console/forget?q={words}&of_user={OWNER}",
        "forget, a memory": f"/console/forget?name=memory:{of.memory}",
        "forget, a session": f"/console/forget?{urlencode({'session': of.session})}",
        "forget, a user with 10,000 messages": f"/console/forget?user={OWNER}",
    }


async def measure(report: Report, engine: Engine, port: int) -> None:
    """Every page over one connection, and a question through the console and through the API in turn."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for name, address in pages(await _examples(engine)).items():
        for _ in range(3):
            await visit(reader, writer, address)
        seen = [await visit(reader, writer, address) for _ in range(VISITS)]
        p50, p95 = spread([first_byte for first_byte, _ in seen])
        size = max(length for _, length in seen)
        report.add(
            f"{name}: first byte and size over {recall.TOTAL:,} messages",
            f"p50 {p50:.0f} ms, p95 {p95:.0f} ms, {size / 1000:.0f} kB",
            f"< {FIRST_BYTE_MS} ms, < {MAX_BYTES // 1000} kB",
        )
    took: dict[str, list[float]] = {"page": [], "plain": [], "explained": []}
    for number in range(QUESTIONS * len(took)):
        # Whoever asks first pays for what the others find in caches, so each asks its own questions, in turn.
        way, text = list(took)[number % len(took)], recall.question()
        body = {"query": text, "user_id": OWNER} | ({"explain": True} if way == "explained" else {})
        address = f"/console/recall?query={quote(text)}&user_id={OWNER}" if way == "page" else "/recall"
        took[way].append((await visit(reader, writer, address, None if way == "page" else body))[0])
    middle = {way: statistics.median(times) for way, times in took.items()}
    report.add(
        "recall in the console over the API's, with and without explain",
        f"{middle['page'] / middle['explained']:.2f}, {middle['page'] / middle['plain']:.2f} "
        f"({middle['page']:.1f} / {middle['explained']:.1f} / {middle['plain']:.1f} ms)",
        "<= 1.2",
    )
    writer.close()


async def _examples(engine: Engine) -> Examples:
    (query,) = await engine.golden_test.add(NAMESPACE, [Entry(recall.question(), [])])
    async with engine.database.reading(NAMESPACE) as db:
        found = await db._connection.fetchrow(
            "select (select id::text from memories where namespace = $1 order by id desc limit 1), s.id, m.id::text, "
            "(select id::text from graph_nodes where namespace = $1 limit 1), "
            "(select id::text from jobs where namespace = $1 limit 1) "
            "from sessions s join messages m on m.namespace = $1 and m.session_id = s.id and m.position = 30 "
            "where s.namespace = $1 and s.user_id = $2 limit 1",
            NAMESPACE,
            OWNER,
        )
    assert found is not None
    memory, session, message, node, job = found
    return Examples(memory, session, message, node, job, str(query.id))


async def visit(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str, body: Mapping[str, object] | None = None
) -> tuple[float, int]:
    """Milliseconds until the first byte of an answer, and its length."""
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{'GET' if body is None else 'POST'} {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    if content:
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    began = time.perf_counter()
    writer.write(f"{head}\r\n".encode() + content)
    first = await reader.readexactly(1)
    took = (time.perf_counter() - began) * 1000
    answer = first + await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in answer.split(b"\r\n", 1)[0], (address, answer)
    found = re.search(rb"content-length: (\d+)", answer.lower())
    assert found is not None, (address, answer)
    length = int(found[1])
    await reader.readexactly(length)
    return took, length
