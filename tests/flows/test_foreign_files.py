"""Exports of other programs are taken over once, with their times and authors, and what is left out is named."""

import json
import os
import random
import struct
import subprocess
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recollect import trust
from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.kinds.target import USER, Target
from recollect.flows.long_term.memory_requests import Chosen
from recollect.flows.transfer.foreign import foreign_files, json_stream, sources
from recollect.flows.transfer.import_report import Report
from recollect.memory.memories import MemoryScope
from recollect.origin import acting
from recollect.tasks import in_thread
from tests.commands import MODULE
from tests.foreign_exports import MAKERS

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

KILLS = 2
CLAUDE_ROOT = "00000000-0000-4000-8000-000000000000"


async def take(
    engine: Engine, namespace: str, path: Path, origin: str, user: str | None = "mira", dry_run: bool = False
) -> Report:
    return await engine.foreign_files.run(namespace, path, origin, user, dry_run=dry_run)


async def exported(engine: Engine, namespace: str, user: str | None = None) -> list[dict[str, Any]]:
    return [json.loads(line) async for line in engine.exporting.lines(namespace, user)][1:-1]


async def count_passages(engine: Engine, namespace: str) -> int:
    sessions = [each["id"] for each in await exported(engine, namespace) if each["kind"] == "session"]
    async with engine.database.reading(namespace) as db:
        return await engine.capabilities.passages.count_in_sessions(db, sessions)


async def dialogue(engine: Engine, namespace: str) -> list[tuple[str, str | None, list[tuple[str, str]]]]:
    """Owner and title of every session with what was said in it."""
    records = await exported(engine, namespace)
    messages = sorted((each for each in records if each["kind"] == "message"), key=lambda each: int(each["position"]))
    return [
        (
            session["user_id"],
            session["title"],
            [(each["role"], each["content"]) for each in messages if each["session_id"] == session["id"]],
        )
        for session in sorted(
            (each for each in records if each["kind"] == "session"), key=lambda each: str(each["created_at"])
        )
    ]


def written(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def node(name: str, parent: str | None, role: str, *parts: object, at: float | None = None, **more: Any) -> Any:
    kind = "text" if all(isinstance(part, str) for part in parts) else "multimodal_text"
    message = {
        "id": name,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": at,
        "content": {"content_type": kind, "parts": list(parts)},
        "metadata": {"model_slug": "gpt-4o"} if role == "assistant" else {},
        "recipient": "all",
    } | more
    return name, {"id": name, "message": message, "parent": parent, "children": []}


def chatgpt(*more: Any, leaf: str = "a2", own_id: str = "c1") -> dict[str, Any]:
    hidden = {"is_visually_hidden_from_conversation": True}
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}
    mapping = [
        ("root", {"id": "root", "message": None, "parent": None, "children": ["s"]}),
        node("s", "root", "system", "Be brief.", metadata=hidden),
        node("u1", "s", "user", image, "Which ferry goes to Naxos?", at=1714560000.25),
        node("a1", "u1", "assistant", "None does.", at=1714560005.0),
        node("call", "u1", "assistant", "search('ferry')", recipient="browser"),
        node("found", "call", "tool", "Blue Star"),
        node("a2", "found", "assistant", "The Blue Star leaves at seven.", at=1714560010.0),
        *more,
    ]
    return {
        "conversation_id": own_id,
        "title": "Ferries",
        "create_time": 1714560000.0,
        "mapping": dict(mapping),
        "current_node": leaf,
    }


def claude(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"uuid": "k1", "name": "Bees", "created_at": "2024-05-01T12:00:00Z", "chat_messages": list(messages)} | more


def said(name: str, sender: str, text: str, parent: str = CLAUDE_ROOT, **more: Any) -> dict[str, Any]:
    return {
        "uuid": name,
        "sender": sender,
        "text": "This block is not supported on your current device yet." if more.get("content") else text,
        "content": [],
        "created_at": f"2024-05-01T12:00:0{len(name)}Z",
        "attachments": [],
        "files": [],
        "parent_message_uuid": parent,
    } | more


async def test_of_a_chatgpt_conversation_the_branch_that_was_shown_last_is_taken(
    engine: Engine, namespace: str, tmp_path: Path
) -> None:
    path = written(tmp_path, "conversations.json", [chatgpt()])
    report = await take(engine, namespace, path, "chatgpt")
    assert (report.added, report.refusals) == ({"session": 1, "message": 2}, [])
    assert report.left_out == {
        "messages on a branch that is not the current one": 1,
        "system messages and custom instructions": 1,
        "parts that are not text: image_asset_pointer": 1,
        "tool calls and their results": 2,
    }
    assert all(places == ["conversations.json, conversation 1"] for places in report.examples.values())
    question, answer = ("user", "Which ferry goes to Naxos?"), ("assistant", "The Blue Star leaves at seven.")
    assert await dialogue(engine, namespace) == [("mira", "Ferries", [question, answer])]
    session, *_ = await engine.conversations.of_user(namespace, "mira", 10)
    assert session.metadata == {"source": "chatgpt", "conversation_id": "c1"}
    # The last time of a session is that of its last message, not of the import.
    assert (session.created_at.timestamp(), session.updated_at.timestamp()) == (1714560000.0, 1714560010.0)
    messages = await engine.conversations.messages(namespace, session.id, 10)
    assert [message.created_at.timestamp() for message in messages] == [1714560000.25, 1714560010.0]
    assert messages[1].metadata == {"source": "chatgpt", "message_id": "a2", "model": "gpt-4o"}
    found = await engine.recall.recall(namespace, "When does the Blue Star leave?", top_k=1)
    assert (found.memories[0].text, found.memories[0].trust) == ("The Blue Star leaves at seven.", trust.IMPORT)
    exported = [json.loads(line) async for line in engine.exporting.lines(namespace)]
    assert [each["trust"] for each in exported if each.get("kind") == "message"] == [trust.IMPORT] * 2
    (entry,) = (await engine.feed.page(namespace)).entries
    assert (entry.change.event, entry.change.kind, entry.change.item_id) == ("import", "message", session.id)


async def test_a_conversation_that_has_grown_gets_only_its_new_messages(
    engine: Engine, namespace: str, tmp_path: Path
) -> None:
    path = written(tmp_path, "conversations.json", [chatgpt()])
    await take(engine, namespace, path, "chatgpt")
    once = await exported(engine, namespace)
    again = await take(engine, namespace, path, "chatgpt")
    assert (again.added.total(), again.known) == (0, {"session": 1, "message": 2})
    assert await exported(engine, namespace) == once

    grown = chatgpt(
        node("u2", "a2", "user", "And back?", at=1714570000.0), node("a3", "u2", "assistant", "At nine."), leaf="a3"
    )
    later = await take(engine, namespace, written(tmp_path, "conversations.json", [grown]), "chatgpt")
    assert (later.added, later.known) == ({"message": 2}, {"session": 1, "message": 2})
    ((_, _, messages),) = await dialogue(engine, namespace)
    assert [text for _, text in messages][2:] == ["And back?", "At nine."]


async def test_each_user_has_a_copy_of_their_own_and_it_goes_with_them(
    engine: Engine, namespace: str, tmp_path: Path
) -> None:
    path = written(tmp_path, "conversations.json", [chatgpt()])
    await take(engine, namespace, path, "chatgpt", "mira")
    await take(engine, namespace, path, "chatgpt", "ben")
    await take(engine, namespace, written(tmp_path, "vault/Bees.md", "They sting."), "markdown", "mira")
    assert {owner for owner, _, _ in await dialogue(engine, namespace)} == {"mira", "ben"}
    kinds = [record["kind"] for record in await exported(engine, namespace, "mira")]
    assert kinds == ["session", "message", "message", "resource"]
    await engine.forget.forget(namespace, Target(USER, "mira"))
    assert [owner for owner, _, _ in await dialogue(engine, namespace)] == ["ben"]
    assert not [each for each in await exported(engine, namespace) if each["kind"] == "resource"]


async def test_a_claude_archive_has_conversations_projects_and_memories(
    engine: Engine, namespace: str, tmp_path: Path
) -> None:
    blocks = [{"type": "thinking", "thinking": "hmm"}, {"type": "text", "text": "Smoke them."}, {"type": "tool_use"}]
    pasted = [{"file_name": "hive.txt", "extracted_content": "Hive three is angry."}]
    conversation = claude(
        said("m", "human", "What calms bees?", attachments=pasted, files=[{"file_name": "bee.png"}]),
        said("mm", "assistant", "Nothing.", "m"),
        said("mmm", "assistant", "", "m", content=blocks),
    )
    project = {
        "uuid": "p1",
        "name": "Apiary",
        "description": "",
        "prompt_template": "Answer as a beekeeper.",
        "created_at": "2024-04-01T00:00:00Z",
        "docs": [{"uuid": "d1", "filename": "law.md", "content": "Hives must be registered."}, {"content": " "}],
    }
    memories = [{"conversations_memory": "Mira keeps bees.", "project_memories": {"p1": "Three hives."}}]
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (("conversations", [conversation]), ("projects/p1", project), ("memories", memories)):
            archive.writestr(f"data/{name}.json", json.dumps(content))
        archive.writestr("data/users.json", "[]")
    report = await take(engine, namespace, path, "claude")
    assert (report.added, report.refusals) == ({"session": 1, "message": 2, "resource": 2, "memory": 2}, [])
    assert report.left_out == {
        "messages on a branch that is not the current one": 1,
        "attached files without their text": 1,
        "parts that are not text: thinking": 1,
        "parts that are not text: tool_use": 1,
        "documents of projects without text": 1,
    }
    ((_, title, messages),) = await dialogue(engine, namespace)
    assert (title, messages) == (
        "Bees",
        [("user", "What calms bees?\n\n[hive.txt]\nHive three is angry."), ("assistant", "Smoke them.")],
    )
    texts = {each["title"]: each["content"] for each in await exported(engine, namespace) if each["kind"] == "resource"}
    assert texts == {
        "Apiary": "Apiary\n\nAnswer as a beekeeper.",
        "law.md": "law.md\n\nHives must be registered.",
    }
    kept = (await engine.memories.newest(namespace, MemoryScope("mira"), chosen=Chosen(key="claude memory"))).memories
    assert [memory.text for memory in kept] == ["Mira keeps bees."]
    again = await take(engine, namespace, path, "claude")
    assert (again.added.total(), again.known.total()) == (0, report.added.total())


async def test_transcripts_of_claude_code_become_sessions_without_tools_and_sub_agents(
    engine: Engine, namespace: str, tmp_path: Path
) -> None:
    common: dict[str, Any] = {"sessionId": "s1", "cwd": "/home/mira/ferry", "timestamp": "2026-01-20T11:57:17.716Z"}
    answer = [{"type": "text", "text": "I look."}, {"type": "tool_use", "name": "Bash", "input": {}}]
    result = [{"type": "tool_result", "content": "a.py"}]
    lines: list[dict[str, Any]] = [
        {"type": "summary", "summary": "Ferry timetable", "leafUuid": "x"},
        {"type": "user", "uuid": "1", "message": {"role": "user", "content": "Fix the timetable"}} | common,
        {"type": "assistant", "uuid": "2", "message": {"model": "claude", "content": answer}} | common,
        {"type": "user", "uuid": "3", "message": {"role": "user", "content": result}} | common,
        {"type": "user", "uuid": "4", "isSidechain": True, "message": {"content": "Warmup"}} | common,
        {"type": "file-history-snapshot", "messageId": "1"},
    ]
    text = "\n".join(map(json.dumps, lines))
    written(tmp_path, "projects/-home-mira-ferry/s1.jsonl", text + '\n{"type": "user", "uuid"\n')
    # A session that was resumed begins with copies.
    resumed = [line | {"sessionId": "s2"} for line in lines[1:3]] + [lines[1] | {"uuid": "9", "sessionId": "s2"}]
    written(tmp_path, "projects/-home-mira-ferry/s2.jsonl", "\n".join(map(json.dumps, resumed)))
    report = await take(engine, namespace, tmp_path / "projects", "claude-code")
    assert (report.added, report.known) == ({"session": 2, "message": 3}, {"message": 2})
    assert report.left_out == {
        "parts that are not text: tool_use": 2,
        "parts that are not text: tool_result": 1,
        "messages of sub-agents": 1,
        "lines that are no messages: file-history-snapshot": 1,
    }
    ((place, reason),) = [(refusal.place, refusal.reason) for refusal in report.refusals]
    assert place == "-home-mira-ferry/s1.jsonl, line 7"
    assert "not JSON" in reason
    sessions = {each[1]: each[2] for each in await dialogue(engine, namespace)}
    assert sessions["Ferry timetable"] == [("user", "Fix the timetable"), ("assistant", "I look.")]
    record = next(each for each in await exported(engine, namespace) if each["title"] == "Ferry timetable")
    assert record["metadata"] == {"source": "claude-code", "session_id": "s1", "cwd": "/home/mira/ferry"}


async def test_notes_become_documents_and_their_links_a_graph(engine: Engine, namespace: str, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    head = "---\ntitle: Mira Okafor\ndate: 2024-05-01\ntags:\n  - person\nnested:\n  a: b\n---\n"
    written(
        vault,
        "people/Mira.md",
        f"{head}Works at [[harbour lab|the lab]], see [tides](../Tides.md#high) and [[Nobody]]. #bee/keeper\n\n"
        "```\n[[Tides]] #code\n```\n",
    )
    written(vault, "Harbour Lab.md", "# Harbour Lab\n\nA pier. ![[people/Mira]]")
    os.utime(written(vault, "Tides.md", "High at noon."), (1714560000, 1714560000))
    written(vault, ".obsidian/app.md", "hidden")
    written(vault, "photo.png", "png")
    written(vault, "Empty.md", "")
    report = await take(engine, namespace, vault, "markdown", None)
    assert (report.added, report.refusals) == ({"document": 3}, [])
    assert report.left_out == {
        "files that are not Markdown: .png": 1,
        "links to what is not a note of the folder": 1,
        "fields of front matter that are more than a value or a list": 1,
        "empty notes": 1,
    }
    documents = {each["metadata"]["path"]: each for each in await exported(engine, namespace) if "content" in each}
    mira = documents["people/Mira.md"]
    assert mira["content"].startswith("Mira Okafor\n\nWorks at")
    assert mira["metadata"]["tags"] == ["bee/keeper", "person"]
    assert datetime.fromisoformat(mira["created_at"]) == datetime(2024, 5, 1, tzinfo=UTC)
    assert datetime.fromisoformat(documents["Tides.md"]["created_at"]).timestamp() == 1714560000
    around = await engine.graph.neighbors(namespace, "Mira")
    assert {(each.name, each.label, each.relation, each.direction) for each in around.neighbors} == {
        ("Harbour Lab", "note", "links_to", "out"),
        ("Tides", "note", "links_to", "out"),
    }


async def test_a_note_that_was_changed_replaces_what_it_was(engine: Engine, namespace: str, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    note = written(vault, "Tides.md", "High at noon, says the harbour master.")
    written(vault, "Other.md", "Nothing new.")
    await take(engine, namespace, vault, "markdown", None)
    note.write_text("High at dusk, says the harbour master.")
    os.utime(vault / "Other.md", (1714560000, 1714560000))
    with acting("console", "writer", "write"):
        report = await take(engine, namespace, vault, "markdown", None)
    assert (report.added.total(), report.changed, report.known) == (0, {"document": 1}, {"document": 1})
    found = await engine.recall.recall(namespace, "What does the harbour master say?", top_k=5)
    assert [memory.text for memory in found.memories if "High" in memory.text] == [
        "Tides\n\nHigh at dusk, says the harbour master."
    ]


def agent_file(human: str, *messages: dict[str, Any]) -> dict[str, Any]:
    agent = {"messages": list(messages), "name": "harbour", "id": "agent-0", "block_ids": ["block-0"]}
    return {
        "agents": [agent],
        "blocks": [{"id": "block-0", "label": "human", "value": human}],
        "files": [{"id": "file-0", "file_name": "law.md", "content": "Hives must be registered."}],
        "passages": [{"text": "Mira moved to Lagos."}],
        "tools": [{"id": "tool-0"}],
    }


async def test_an_agent_of_letta_brings_its_blocks_messages_and_passages(
    engine: Engine, namespace: str, tmp_path: Path
) -> None:
    def at(second: int) -> dict[str, Any]:
        return {"created_at": f"2025-01-01T00:00:0{second}Z"}

    call = {"function": {"name": "send_message", "arguments": '{"message": "Hello Mira."}'}}
    messages = [
        {"role": "system", "content": [{"type": "text", "text": "You are ..."}]} | at(0),
        {"role": "user", "content": '{"type": "user_message", "message": "Hi, I am Mira."}'} | at(1),
        {"role": "user", "content": '{"type": "heartbeat", "reason": "x"}'} | at(2),
        {"role": "assistant", "content": [{"type": "text", "text": "She is new."}], "tool_calls": [call]} | at(3),
        {"role": "tool", "content": [{"type": "text", "text": "ok"}]} | at(4),
        {"role": "assistant", "content": [{"type": "text", "text": "Welcome."}], "tool_calls": []} | at(5),
    ]
    path = written(tmp_path, "harbour.af", agent_file("Mira keeps bees.", *messages))
    report = await take(engine, namespace, path, "letta")
    assert report.added == {"session": 1, "message": 3, "memory": 1, "resource": 2}
    assert report.left_out == {
        "system messages and events": 2,
        "reasoning of the model": 1,
        "tool calls and their results": 1,
        "setup of the agent: tools": 1,
    }
    ((owner, title, spoken),) = await dialogue(engine, namespace)
    assert (owner, title) == ("mira", "harbour")
    assert spoken == [("user", "Hi, I am Mira."), ("assistant", "Hello Mira."), ("assistant", "Welcome.")]

    scope = MemoryScope("mira", "harbour")
    newer = written(tmp_path, "newer.af", agent_file("Mira sold her bees.", *messages))
    assert (await take(engine, namespace, newer, "letta")).added["memory"] == 1
    # The older file does not bring back what the newer one replaced.
    assert (await take(engine, namespace, path, "letta")).added.total() == 0
    (block,) = (await engine.memories.newest(namespace, scope)).memories
    assert (block.key, block.text) == ("human", "Mira sold her bees.")


async def test_an_older_agent_file_with_a_single_agent_is_read_too(
    engine: Engine, namespace: str, tmp_path: Path
) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "Hi."}], "created_at": "2025-01-01T00:00:00"}
    old = {"core_memory": [{"label": "human", "value": "Mira."}], "messages": [message], "name": "harbour"}
    report = await take(engine, namespace, written(tmp_path, "old.af", old), "letta")
    assert report.added == {"session": 1, "message": 1, "memory": 1}


@pytest.mark.parametrize("origin", MAKERS)
async def test_a_long_export_is_taken_in_batches_and_once(
    engine: Engine, namespace: str, tmp_path: Path, origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_files, "BATCH_ITEMS", 20)
    path = tmp_path / f"export{'.af' if origin == 'letta' else ''}"
    MAKERS[origin](path, 60_000)
    heard: list[int] = []
    counted = await take(engine, namespace, path, origin, dry_run=True)
    assert await exported(engine, namespace) == []
    report = await engine.foreign_files.run(
        namespace, path, origin, "mira", progress=lambda size, _: heard.append(size)
    )
    assert report.added == counted.added
    assert report.refused == counted.refused == 0
    assert sum(heard) == engine.foreign_files.size(path, origin)
    once = await exported(engine, namespace)
    stored = [each for each in once if each["kind"] in report.added]
    assert len(stored) == report.added.total()
    again = await take(engine, namespace, path, origin)
    assert (again.added.total(), again.known.total()) == (0, report.added.total())
    assert await exported(engine, namespace) == once


async def test_of_a_broken_file_what_comes_before_is_taken_and_the_place_is_named(
    engine: Engine, namespace: str, tmp_path: Path
) -> None:
    whole = json.dumps([chatgpt(), chatgpt(own_id="c2")])
    path = written(tmp_path, "conversations.json", whole[: len(whole) // 2 + 50])
    report = await take(engine, namespace, path, "chatgpt")
    assert report.added == {"session": 1, "message": 2}
    (refusal,) = report.refusals
    assert "not JSON at line 1, column" in refusal.reason
    assert "was cut off" in refusal.reason


async def test_what_is_wrong_in_a_record_is_refused_alone(engine: Engine, namespace: str, tmp_path: Path) -> None:
    spoiled = chatgpt(node("u2", "a2", "user", "half \ud83d a pair"), leaf="u2", own_id="c3")
    circle = chatgpt(node("x", "y", "user", "One."), node("y", "x", "assistant", "Two."), leaf="x", own_id="c4")
    path = written(tmp_path, "c.json", [chatgpt(), 5, {"mapping": {}}, {"id": "c2", "mapping": []}, spoiled, circle])
    report = await take(engine, namespace, path, "chatgpt")
    assert [(refusal.place, refusal.reason.split(":")[0]) for refusal in report.refusals] == [
        ("c.json, conversation 2", "the conversation is not a JSON object"),
        ("c.json, conversation 3", "it has no conversation_id"),
        ("c.json, conversation 4", "the mapping of the conversation is not a JSON object"),
        ("c.json, conversation 5", "the message is not valid UTF-8 (it contains half of a surrogate pair)"),
    ]
    assert report.added == {"session": 3, "message": 6}


@pytest.mark.parametrize(
    ("name", "content", "right"),
    [
        ("conversations.json", [chatgpt()], "chatgpt"),
        ("conversations.json", [claude()], "claude"),
        ("projects.json", [{"uuid": "p", "prompt_template": "", "docs": []}], "claude"),
        ("s.jsonl", '{"type": "user", "sessionId": "s"}\n{}', "claude-code"),
        ("Note.md", "# A note", "markdown"),
        ("agent.af", agent_file("x"), "letta"),
        ("mem0.json", {"results": [{"memory": "x"}]}, "mem0"),
        ("memory.json", '{"type": "entity", "name": "x"}\n', "memory-json"),
    ],
)
async def test_another_format_than_was_named_is_refused_with_the_right_one(
    engine: Engine, namespace: str, tmp_path: Path, name: str, content: object, right: str
) -> None:
    path = written(tmp_path, name, content)
    wrong = "letta" if right == "markdown" else "markdown"
    with pytest.raises(Invalid, match=f"--from {right}"):
        await take(engine, namespace, path, wrong)
    foreign_files.refuse_other_format(path, right)


async def test_a_folder_is_what_it_is_said_to_be_whatever_else_it_has(
    engine: Engine, namespace: str, tmp_path: Path
) -> None:
    written(tmp_path, "Note.md", "A note.")
    written(tmp_path, "conversations.json", [claude(said("m", "human", "Hi."))])
    written(tmp_path, "s.jsonl", '{"type": "summary"}')
    assert (await take(engine, namespace, tmp_path, "markdown")).added == {"resource": 1}
    assert (await take(engine, namespace, tmp_path, "claude")).added == {"session": 1, "message": 1}
    with pytest.raises(Invalid, match="--from claude"):
        await take(engine, namespace, tmp_path, "chatgpt")


async def test_a_folder_without_anything_to_import_is_refused(engine: Engine, namespace: str, tmp_path: Path) -> None:
    written(tmp_path, "photo.png", "png")
    with pytest.raises(Invalid, match="nothing to import: expected a ChatGPT data export"):
        await take(engine, namespace, tmp_path, "chatgpt")


def archive(path: Path, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("conversations.json", content)
    return path


async def test_archives_that_are_made_to_harm_are_refused(
    engine: Engine, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "SMALL_BYTES", 1024 * 1024)
    bomb = archive(tmp_path / "bomb.zip", b"[" + b" " * 4_000_000 + b"]")
    with pytest.raises(Invalid, match="as a harmful archive does"):
        await take(engine, namespace, bomb, "chatgpt")
    # What an archive says of its length is not believed beyond it.
    liar = archive(tmp_path / "liar.zip", json.dumps([chatgpt()]).encode())
    content = liar.read_bytes()
    (length,) = struct.unpack_from("<I", content, 22)
    liar.write_bytes(content.replace(struct.pack("<I", length), struct.pack("<I", length // 2)))
    with pytest.raises(Invalid, match="damaged archive"):
        await take(engine, namespace, liar, "chatgpt")


async def test_of_an_archive_that_is_damaged_at_its_end_what_was_read_is_told(
    engine: Engine, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", 100)
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as packed:
        packed.writestr("conversations.json", json.dumps([chatgpt(own_id=f"c{number}") for number in range(30)]))
    content = bytearray(path.read_bytes())
    content[content.rindex(b"Ferries")] ^= 1
    path.write_bytes(content)
    report = await take(engine, namespace, path, "chatgpt")
    assert 20 < report.added["session"] < 30
    (refusal,) = report.refusals
    assert refusal.place == "export.zip"
    assert "Bad CRC-32" in refusal.reason


async def test_files_may_have_names_in_any_encoding(engine: Engine, namespace: str, tmp_path: Path) -> None:
    written(tmp_path, "Note.md", "A note.")
    Path(os.fsdecode(bytes(tmp_path) + b"/\xff.md")).write_text("Another.")
    report = await take(engine, namespace, tmp_path, "markdown")
    assert (report.added, report.refusals) == ({"resource": 2}, [])


async def test_links_in_a_folder_are_not_followed(engine: Engine, namespace: str, tmp_path: Path) -> None:
    secret = written(tmp_path, "secret.md", "The key is under the mat.")
    vault = written(tmp_path, "vault/Note.md", "Nothing here.").parent
    (vault / "link.md").symlink_to(secret)
    (vault / "up").symlink_to(tmp_path)
    report = await take(engine, namespace, vault, "markdown")
    assert report.added == {"resource": 1}


async def test_an_import_takes_up_where_another_was_stopped(
    engine: Engine, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_files, "BATCH_ITEMS", 10)
    path = tmp_path / "conversations.json"
    MAKERS["chatgpt"](path, 60_000)

    def stop(_: int, report: Report) -> None:
        if report.added["message"] > 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await engine.foreign_files.run(namespace, path, "chatgpt", "mira", progress=stop)
    partly = len([each for each in await exported(engine, namespace) if each["kind"] == "message"])
    assert partly > 30
    rest = await take(engine, namespace, path, "chatgpt")
    assert rest.known["message"] == partly
    other = f"{namespace}-other"
    whole = await take(engine, other, path, "chatgpt")
    assert whole.added["message"] == partly + rest.added["message"]
    assert await dialogue(engine, namespace) == await dialogue(engine, other)


async def test_an_import_killed_at_random_points_ends_as_if_it_never_was(
    engine: Engine, namespace: str, tmp_path: Path
) -> None:
    chance, other = random.Random(8), f"{namespace}-whole"
    path = tmp_path / "conversations.json"
    MAKERS["claude"](path, 60_000)
    await take(engine, other, path, "claude")
    child = [*MODULE, "tests.durability.foreign_importer", str(path), "claude", namespace]
    sizes = [0]
    for _ in range(KILLS):
        with subprocess.Popen(child, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(2, 5) + sizes[-1] // 5):
                assert process.stdout.readline() == "batch\n"
            process.kill()
            process.communicate()
        sizes.append(sum(len(messages) for _, _, messages in await dialogue(engine, namespace)))
    assert 0 < sizes[1] < sizes[2]
    done = await in_thread(subprocess.run, child, capture_output=True, text=True, env=os.environ, timeout=60)
    assert done.stdout.endswith("done 0\n"), done.stderr
    assert await dialogue(engine, namespace) == await dialogue(engine, other)
    assert await count_passages(engine, namespace) == await count_passages(engine, other) > 0
