"""`recollect demo`: one memory through several doors, in a namespace of its own that is deleted afterwards."""

import asyncio
import json
import secrets
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any

import httpx
from mcp import Client
from mcp.types import TextContent, TextResourceContents

from recollect import logs
from recollect import settings as environment
from recollect.doors.cli.demo import story as story
from recollect.doors.cli.demo.screen import Screen
from recollect.doors.library.memory_manager import MemoryManager
from recollect.doors.mcp.server import RecollectServer
from recollect.doors.rest.app import create_app
from recollect.engine import Engine
from recollect.errors import NotFound, Unavailable
from recollect.flows.kinds.target import NAMESPACE, Target
from recollect.flows.search.recollection import Recollection
from recollect.settings import Settings

# The parts of a score in the words of a reader; docs/recall.md has the formula.
PARTS = {
    "cosine": "semantic",
    "words": "words",
    "neighbour": "nearby",
    "answer": "asked before",
    "session": "session",
    "company": "same session",
    "opening": "opening",
    "speaker": "speaker",
    "role": "person",
    "date": "date",
    "recency": "recent",
    "length": "length",
    "asking": "question",
    "echo": "echo",
    "decay": "age",
}
# The largest; a line has no room for all of them.
SHOWN_PARTS = 4


@dataclass(frozen=True, slots=True)
class Doors:
    """Ways into one memory, all in this process: the library, MCP's client and server, and HTTP."""

    library: MemoryManager
    mcp: Client
    http: httpx.AsyncClient
    engine: Engine
    namespace: str

    async def tool(self, name: str, **arguments: Any) -> Any:
        """The answer of an MCP tool."""
        result = await self.mcp.call_tool(name, arguments)
        (content,) = result.content
        text = content.text if isinstance(content, TextContent) else ""
        if result.is_error:
            raise Unavailable(f"The tool {name} failed: {text}")
        return json.loads(text)

    async def resource(self, uri: str) -> Any:
        """The entries of an MCP resource."""
        (content,) = (await self.mcp.read_resource(uri)).contents
        return json.loads(content.text)["contents"] if isinstance(content, TextResourceContents) else []

    async def post(self, path: str, body: dict[str, Any]) -> None:
        """A REST request."""
        answer = await self.http.post(path, json=body)
        if answer.is_error:
            raise Unavailable(f"POST {path} failed: {answer.text}")


def run(keep: bool) -> bool:
    """Play the demo; says whether everything was as it should be."""
    # Whatever is configured, no provider is asked, nothing waits, and all of it lies in one database.
    settings = environment.load().model_copy(
        update={
            "namespace": f"demo-{secrets.token_hex(4)}",
            "indexer": False,
            "llm": None,
            "embedding_model": "local",
            "redis_url": None,
            "rate_limit_per_minute": None,
        }
    )
    logs.configure("WARNING", "text")
    return asyncio.run(_play(settings, Screen(), keep))


async def _play(settings: Settings, screen: Screen, keep: bool) -> bool:
    began = time.perf_counter()
    screen.title("Recollect: one memory, many interfaces")
    where = "Embedded PostgreSQL" if settings.database_url is None else "The PostgreSQL of RECOLLECT_DATABASE_URL"
    screen.text(f"{where}, local model, no API key. Namespace {settings.namespace}.")
    async with AsyncExitStack() as stack:
        engine = await Engine.open(settings)
        stack.push_async_callback(engine.close)
        library = await stack.enter_async_context(MemoryManager(settings))
        mcp = await stack.enter_async_context(Client(RecollectServer(engine)))
        over_http = httpx.ASGITransport(app=create_app(engine))
        http = await stack.enter_async_context(httpx.AsyncClient(transport=over_http, base_url="http://127.0.0.1"))
        doors = Doors(library, mcp, http, engine, settings.namespace)
        # MCP's client would wrap a failure that passes through it, so that it goes around.
        (outcome,) = await asyncio.gather(_acts(doors, screen, keep), return_exceptions=True)
    if isinstance(outcome, BaseException):
        raise outcome
    screen.space()
    if keep:
        asked = story.QUESTIONS[0].asked
        screen.text("Kept. Explore it, and delete it when you are done:")
        screen.command(f'RECOLLECT_NAMESPACE={settings.namespace} recollect recall "{asked}" --explain')
        screen.command(f"recollect forget --whole-namespace {settings.namespace}")
    else:
        screen.text(f"Done in {time.perf_counter() - began:.1f} s, and everything is deleted again. Now try your own:")
        screen.command('recollect remember "My physician told me to sleep more."')
        screen.command('recollect recall "What did the doctor say?"')
    if not outcome:
        screen.text("Something went wrong. Run `recollect doctor` to see what is missing.")
    return outcome


async def _acts(doors: Doors, screen: Screen, keep: bool) -> bool:
    try:
        await _remember(doors, screen)
        right = [await _recall(doors, screen), await _evict(doors, screen), await _connect(doors, screen)]
    finally:
        if not keep:
            with suppress(NotFound):  # it failed before anything was written, and that is what to tell
                await doors.engine.forget.forget(doors.namespace, Target(NAMESPACE, doors.namespace))
    return all(right)


async def _remember(doors: Doors, screen: Screen) -> None:
    """Two sessions and a fact, through three doors."""
    screen.section("On Monday, Mira talks to her assistant", "MCP: record_interaction")
    conversation = (await doors.tool("create_conversation", user_id=story.USER))["id"]
    for exchange in story.MONDAY:
        await doors.tool(
            "record_interaction",
            conversation_id=conversation,
            user_message=exchange.said,
            assistant_response=exchange.answered,
        )
        _show(screen, exchange)
    screen.section("On Thursday, Mira talks to another agent", "REST: POST /stm/thursday/messages")
    for exchange in story.THURSDAY:
        messages = [{"role": "user", "content": exchange.said}, {"role": "assistant", "content": exchange.answered}]
        await doors.post("/stm/thursday/messages", {"messages": messages})
        _show(screen, exchange)
    screen.section("A long-term memory", "REST: POST /ltm/memories")
    await doors.post("/ltm/memories", {"messages": story.HABIT, "category": "preference", "user_id": story.USER})
    screen.text(story.HABIT)


async def _recall(doors: Doors, screen: Screen) -> bool:
    """Questions in other words than their answers."""
    screen.section("Later: three questions that share no words with the answers", "Python: MemoryManager.recall")
    await doors.library.flush()
    right = True
    for number, question in enumerate(story.QUESTIONS):
        if number:
            screen.space()
        found = await doors.library.recall(question.asked, top_k=2, explain=True)
        right &= _answered(screen, question, found)
    return right


def _answered(screen: Screen, question: story.Question, found: Recollection) -> bool:
    screen.asks(question.asked)
    if not found.memories:
        screen.mark(False, "Nothing was recalled.")
        return False
    best, *others = found.memories
    right = best.text == question.answer
    screen.mark(right, best.text)
    assert best.explanation is not None
    parts = sorted(best.explanation.parts._asdict().items(), key=lambda part: -part[1])
    shown = [(PARTS[name], value) for name, value in parts[:SHOWN_PARTS]]
    screen.score(best.score, [*shown, ("other", best.score - sum(value for _, value in shown))])
    said = "Said on Thursday over REST" if best.session_id == "thursday" else "Said on Monday over MCP"
    place = "Kept as a long-term memory" if best.kind == "memory" else said
    words = best.explanation.matched_words
    shared = f"matching words: {', '.join(words)}" if words else "no words in common"
    next_best = f" Next best score: {others[0].score:.2f}." if others else ""
    screen.note(f"{place}, {shared}.{next_best}")
    return right


async def _evict(doors: Doors, screen: Screen) -> bool:
    """Eleven things for a memory of ten."""
    screen.section("Working memory holds ten items", "MCP: update_working_memory")
    for thought in story.IN_MIND:
        await doors.tool("update_working_memory", content=thought.content, importance=thought.importance)
    update = await doors.tool(
        "update_working_memory", content=story.ONE_MORE.content, importance=story.ONE_MORE.importance
    )
    kept = [item["content"] for item in await doors.resource("memory://working-memory")]
    gone = [item["original_content"] for item in await doors.resource("memory://stale-memory")]
    oldest = story.IN_MIND[0]
    right = (
        update["evicted_id"] is not None
        and gone == [story.CROWDED_OUT.content]
        and len(kept) == len(story.IN_MIND)
        and oldest.content in kept
    )
    screen.text(f"Adding an eleventh: {story.ONE_MORE.content}.")
    screen.mark(right, f"Evicted: {', '.join(gone) or 'nothing'}.")
    if right:
        screen.note(
            f"“{oldest.content}” is older but critical ({oldest.importance}), so it stays. The evicted item is "
            "kept for audit in memory://stale-memory."
        )
    return right


async def _connect(doors: Doors, screen: Screen) -> bool:
    """A path through the graph."""
    screen.section(f"How does {story.ENDS[0]} get into the {story.ENDS[1]}?", "MCP: graph_find_path")
    for source, relation, target in story.RELATIONS:
        await doors.tool("graph_add_edge", source_name=source, relation=relation, target_name=target)
    found = await doors.tool("graph_find_path", start_node=story.ENDS[0], end_node=story.ENDS[1])
    path = found["path"]
    right = tuple(node["name"] for node in path) == story.PATH
    hops = (f" ─{node['relation_to_next']}→ " if node["relation_to_next"] else "" for node in path)
    arrows = "".join(node["name"] + hop for node, hop in zip(path, hops, strict=True))
    screen.mark(right, arrows if path else "No path was found.")
    return right


def _show(screen: Screen, exchange: story.Exchange) -> None:
    screen.says("Mira", exchange.said, emphasised=True)
    screen.says("assistant", exchange.answered, emphasised=False)
