"""A memory with something on every page of the console: the demo's story, and what nobody should have to look at."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from mcp import Client

from recollect.doors.cli.demo import story
from recollect.doors.mcp.server import RecollectServer
from recollect.engine import Engine
from recollect.flows.accounts.access import Access
from recollect.flows.jobs.long_work import PruneTerms, Upload
from recollect.memory.accounts.audit import Entry
from recollect.memory.accounts.connections import NewConnection
from recollect.memory.cognitive.judging import Evaluation, JudgeScore
from recollect.origin import acting
from tests.ended_jobs import ended, notes, uploaded

MONDAY = datetime(2026, 3, 2, 18, 30, tzinfo=UTC)
THURSDAY = MONDAY + timedelta(days=3)

INSIGHTS = (
    "Nora is allergic to peanuts, so nothing with nuts is served at dinner.",
    "Guests are asked about allergies before a menu is planned.",
    "The cook knows that peanuts are dangerous for Nora.",
    "Mira moves into a flat by the river once the lease begins.",
    "Mira signed the lease and leaves her old flat.",
    "The flat by the river lies in Bergen.",
)
QUERIES = (("Who must avoid nuts?", (0, 1, 2)), ("Where will Mira live from now on?", (3, 4, 5)))
MEMORIES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "Mira drinks decaf since she saw the cardiologist.",
        "preference",
        {"metadata": {"topic": "health"}},
    ),
    ("The lease of the flat by the river runs for two years.", "fact", {"valid_from": "2026-04-01T00:00:00Z"}),
    ("Mira took the night bus to Bergen.", "episodic", {"expires_in": 90 * 86400.0}),
)
LESSON = ("Which dessert suits every guest?", 0.8, "Problem: a guest is allergic. Lesson: ask for allergies first.")

# What the golden test found on the days before, in comparison with today.
EARLIER_RUNS = (1.0, 1.0, 1.05, 0.95, 1.0, 0.8, 0.85, 1.0, 1.0)

# Text is anybody's: markup, a line turned around, a word without an end, other scripts.
HOSTILE = "<script>alert('planted')</script><img src=x onerror=alert(1)> \u202egnp.exe\u202c {{ 7 * 7 }} </textarea>"
ENDLESS = "Donaudampfschifffahrtsgesellschaft" * 12
FOREIGN = "دعوة إلى العشاء يوم الجمعة 晚餐改到花园房间"


@dataclass(frozen=True, slots=True)
class Told:
    """Names of what was stored, for the addresses of its pages."""

    key: str
    read_key: str
    session: str
    other_session: str
    message: str
    memory: str
    superseded: str
    insight: int
    query: int
    node: int
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Doors:
    """Two ways in: HTTP as a client with a key, and MCP in this process."""

    http: httpx.AsyncClient
    mcp: Client

    async def post(self, path: str, **body: Any) -> Any:
        answer = await self.http.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    async def tool(self, name: str, **arguments: Any) -> Any:
        with acting("mcp", "dinner planner"):
            result = await self.mcp.call_tool(name, arguments)
        assert not result.is_error, result.content
        return result.structured_content


async def tell(engine: Engine, http: httpx.AsyncClient, *, hostile: bool) -> Told:
    """Store everything in the engine's namespace, which from then on asks for the key."""
    namespace = engine.settings.namespace
    key, read_key = await _keys(engine.access, namespace)
    http.headers["Authorization"] = f"Bearer {key}"
    async with Client(RecollectServer(engine)) as mcp:
        doors = Doors(http, mcp)
        message = await _talks(doors)
        memory, superseded = await _long_term(doors, message)
        insights, node = await _thoughts(doors)
        query = await _golden_set(engine, doors, insights)
        if hostile:
            await _whatever_people_write(doors)
            for text in (HOSTILE, ENDLESS, FOREIGN):
                await engine.access.create_key(namespace, text[:100])
                await engine.access.create_user_key(namespace, text[:60])
    await connect(engine, namespace, key.split("_")[1], HOSTILE[:100] if hostile else "Claude")
    guest = await engine.access.create_key(f"{namespace}-guest", "travel planner")
    await engine.grants.grant(namespace, f"{namespace}-guest", guest.id)
    used = [{"event": "read", "kind": "message", "count": 120, "ids": [message, HOSTILE if hostile else "another"]}]
    author = HOSTILE if hostile else "support desk"
    async with engine.database.transaction(namespace) as tx:
        await engine.capabilities.audit.append(
            tx, [Entry("3f9a1c20", author, "rest", "POST /recall", "done", None, used)]
        )
    with acting("console", "support desk"):
        jobs = await _jobs(engine, namespace, HOSTILE if hostile else "Mira has a cat.")
    await engine.indexer.flush(namespace)
    for question in story.QUESTIONS:
        await doors.post("/recall", query=question.asked)
    await engine.activity.flush()
    other = "difficult" if hostile else "thursday"
    return Told(key, read_key, "monday", other, message, memory, superseded, insights[0], query, node, jobs)


async def _keys(access: Access, namespace: str) -> tuple[str, str]:
    """Keys of every role and state, and users of the gateway; returns one that may do everything and one to read."""
    laptop = await access.create_key(namespace, "old laptop")
    await access.revoke(namespace, laptop.id)
    read = await access.create_key(namespace, "dashboard", "read", datetime.now(UTC) + timedelta(days=30))
    await access.create_key(namespace, "dinner planner", "write")
    for user in (story.USER, "ben", "nora"):
        await access.create_user_key(namespace, user)
    return (await access.create_key(namespace, "support desk")).secret, read.secret


async def connect(engine: Engine, namespace: str, key_id: str, name: str) -> None:
    """An MCP client that somebody connected with a key."""
    place = "https://claude.ai/api/mcp/auth_callback"
    new = NewConnection("1f2e3d4c", key_id, "oc_claude", name, place, "/mcp", "", "write")
    async with engine.database.transaction(namespace) as tx:
        await engine.capabilities.connections.add(tx, new)
        await engine.capabilities.connections.add_token(tx, new.id, b"no secret", "refresh", "write", 3600)


async def _jobs(engine: Engine, namespace: str, text: str) -> tuple[str, ...]:
    """An import with something left out, one that failed, and a count of what could be pruned."""
    work, user = engine.long_work, text[:60]
    started = [
        await work.import_file(namespace, Upload(notes(Cat=f"{text} [[Nowhere]]"), user_id=user)),
        await work.prune(namespace, PruneTerms(1), dry_run=True),
    ]
    for job in started:
        await ended(engine, namespace, job)
    started.append(await work.import_file(namespace, Upload(uploaded("letters.jsonl", text.encode()))))
    await ended(engine, namespace, started[-1])
    return tuple(map(str, started))


async def _talks(doors: Doors) -> str:
    """Two sessions; returns the message with the allergy."""
    stored: list[Any] = []
    for session, began, exchanges in (("monday", MONDAY, story.MONDAY), ("thursday", THURSDAY, story.THURSDAY)):
        said = [
            (role, text, began + timedelta(minutes=minute))
            for minute, exchange in enumerate(exchanges)
            for role, text in (("user", exchange.said), ("assistant", exchange.answered))
        ]
        messages = [{"role": role, "text": text, "at": at.isoformat()} for role, text, at in said]
        added = await doors.post(f"/sessions/{session}/messages", messages=messages, user_id=story.USER)
        stored += added["messages"]
    return str(next(message["id"] for message in stored if message["text"] == story.ALLERGY))


async def _long_term(doors: Doors, message: str) -> tuple[str, str]:
    """Memories: one that replaced another, one from a message, one pinned; returns those two."""
    add = {"user_id": story.USER, "at": MONDAY.isoformat()}
    await doors.post("/ltm/memories", messages=story.HABIT, category="preference", pinned=True, **add)
    old = await doors.post("/ltm/memories", messages="Mira lives in Oslo.", category="fact", key="home city", **add)
    new = await doors.post("/ltm/memories", messages="Mira lives in Bergen.", category="fact", key="home city", **add)
    text = "Nora must not eat peanuts."
    await doors.tool("add_memory", text=text, user_id=story.USER, sources=[f"message:{message}"])
    for text, category, details in MEMORIES:
        await doors.post("/ltm/memories", messages=text, category=category, **add, **details)
    return new["id"], old["id"]


async def _thoughts(doors: Doors) -> tuple[list[int], int]:
    """Insights with their sources, an episode, working memory and a graph; returns the insights and a node."""
    said = [
        await doors.tool("store_raw_dialogue", session_id="planning", speaker="Mira", content=exchange.said)
        for exchange in story.MONDAY[1:]
    ]
    sources = [message["id"] for message in said]
    insights = [
        (await doors.tool("compress_to_l2_insight", content=text, source_ids=sources))["id"] for text in INSIGHTS
    ]
    query, reward, reflection = LESSON
    await doors.tool("store_episode", query=query, reward=reward, reflection=reflection)
    for thought in (*story.IN_MIND, story.ONE_MORE):
        await doors.tool("update_working_memory", content=thought.content, importance=thought.importance)
    edges = [
        await doors.tool("graph_add_edge", source_name=source, relation=relation, target_name=target)
        for source, relation, target in story.RELATIONS
    ]
    return insights, edges[0]["source_node_id"]


async def _golden_set(engine: Engine, doors: Doors, insights: list[int]) -> int:
    """Queries, the runs of ten days, and what two judges said; returns a query."""
    golden = [
        await doors.tool("add_golden_query", query=query, expected_ids=[insights[number] for number in expected])
        for query, expected in QUERIES
    ]
    namespace, capabilities = engine.settings.namespace, engine.capabilities
    await engine.golden_test.run(namespace)
    query_id: int = golden[0]["query_id"]
    scores = (
        JudgeScore(insights[0], 1.0, "It names who must avoid them.", 0.9, "It says what is served."),
        JudgeScore(insights[1], 0.3, "It is about guests in general.", 0.7, "It helps to find out."),
        JudgeScore(insights[3], 0.0, "It is about a flat.", 0.0, "It is about a flat."),
    )
    judged = Evaluation(query_id, QUERIES[0][0], "gpt-4o", "claude-haiku", 0.43, 0.53, 0.4, "fair", scores)
    (run,) = await engine.golden_test.history(namespace)
    async with engine.database.transaction(namespace) as tx:
        await capabilities.judging.add(tx, judged)
        for days, part in enumerate(EARLIER_RUNS, 1):
            day, precision = run.day - timedelta(days), run.precision_at_5 * part
            earlier = replace(run, day=day, precision_at_5=precision, drift_detected=part < 0.95)
            await capabilities.golden.record(tx, earlier, [])
    return query_id


async def _whatever_people_write(doors: Doors) -> None:
    """The same kinds of memory with text that a page must survive."""
    for text in (HOSTILE, ENDLESS, FOREIGN):
        said = [{"role": "user", "text": text, "speaker": text[:60], "metadata": {"note": text}}]
        await doors.post("/sessions/difficult/messages", messages=said, user_id=text[:60])
        await doors.tool("add_memory", text=text, user_id=text[:60], key=text[:60], metadata={text[:60]: text})
        stored = await doors.tool("store_raw_dialogue", session_id=text[:60], speaker=text[:60], content=text)
        await doors.tool("compress_to_l2_insight", content=text, source_ids=[stored["id"]])
        await doors.tool("store_episode", query=text, reward=-1.0, reflection=text)
        await doors.tool("graph_add_edge", source_name="Mira", relation=text[:60], target_name=text[:60])
        await doors.tool("add_golden_query", query=text, expected_ids=[])
        await doors.tool("update_working_memory", content=text, importance=0.99)
