"""Exports of other programs of any size: `python -m tests.foreign_exports FORMAT MEGABYTES PATH`."""

import json
import random
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

_WORDS = """
harbour ferry ticket museum garden recipe garlic noodle sprint deploy index vector query latency budget invoice
physician sleep allergy peanut window flight morning train brother Lagos Portuguese violin rehearsal concert roof
leak plumber insurance bicycle helmet mountain weather forecast umbrella library thesis chapter deadline editor
contract clause tenant deposit kitchen oven sourdough starter market tomato basil rain cellar paint ladder
neighbour dog vaccine passport visa embassy hotel balcony sunset camera lens battery charger keyboard monitor
"""
WORDS = _WORDS.split()
FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)


class Writer:
    """Makes up conversations; the same seed makes the same."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._now = FIRST_DAY

    def text(self, sentences: int) -> str:
        """Some sentences."""
        said = (" ".join(self.random.choices(WORDS, k=self.random.randint(6, 16))) for _ in range(sentences))
        return " ".join(sentence.capitalize() + "." for sentence in said)

    def uuid(self) -> str:
        """An id."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def now(self) -> datetime:
        """A time a little after the last."""
        self._now += timedelta(seconds=self.random.randint(5, 500))
        return self._now

    def iso(self) -> str:
        """The same as text."""
        return self.now().isoformat().replace("+00:00", "Z")


def chatgpt_conversation(writer: Writer) -> dict[str, Any]:
    """A tree of messages: a hidden system message, turns, now and then an image, a tool, or an answer made anew."""
    began = writer.now().timestamp()
    own_id = writer.uuid()
    root = writer.uuid()
    mapping: dict[str, Any] = {root: {"id": root, "message": None, "parent": None, "children": []}}
    last = root

    def add(role: str, content: dict[str, Any], parent: str, **more: Any) -> str:
        name = writer.uuid()
        message = {
            "id": name,
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": writer.now().timestamp(),
            "update_time": None,
            "content": content,
            "status": "finished_successfully",
            "end_turn": True,
            "weight": 1.0,
            "metadata": {"model_slug": "gpt-4o"} if role == "assistant" else {},
            "recipient": "all",
            "channel": None,
        } | more
        mapping[name] = {"id": name, "message": message, "parent": parent, "children": []}
        mapping[parent]["children"].append(name)
        return name

    hidden = {"is_visually_hidden_from_conversation": True}
    last = add("system", {"content_type": "text", "parts": [""]}, last, metadata=hidden, create_time=None)
    for turn in range(writer.random.randint(2, 20)):
        asked: list[Any] = [writer.text(writer.random.randint(1, 4))]
        if turn % 7 == 3:
            asked.insert(0, {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"})
        last = add("user", {"content_type": "multimodal_text" if len(asked) > 1 else "text", "parts": asked}, last)
        if turn % 9 == 4:
            last = add("assistant", {"content_type": "code", "text": "search('x')"}, last, recipient="python")
            last = add("tool", {"content_type": "execution_output", "text": "found"}, last)
        if turn % 5 == 2:
            add("assistant", {"content_type": "text", "parts": [writer.text(3)]}, last)
        last = add("assistant", {"content_type": "text", "parts": [writer.text(writer.random.randint(3, 12))]}, last)
    return {
        "title": writer.text(1)[:40],
        "create_time": began,
        "update_time": writer.now().timestamp(),
        "mapping": mapping,
        "moderation_results": [],
        "current_node": last,
        "plugin_ids": None,
        "conversation_id": own_id,
        "default_model_slug": "gpt-4o",
        "is_archived": False,
        "id": own_id,
    }


def claude_conversation(writer: Writer) -> dict[str, Any]:
    """Turns in order, now and then with a pasted text, a thought or a tool."""
    own_id, began = writer.uuid(), writer.iso()
    messages: list[dict[str, Any]] = []
    parent = "00000000-0000-4000-8000-000000000000"
    for number in range(2 * writer.random.randint(2, 20)):
        is_user = number % 2 == 0
        text = writer.text(writer.random.randint(1, 3) if is_user else writer.random.randint(3, 10))
        content: list[dict[str, Any]] = [{"type": "text", "text": text, "citations": []}]
        if number % 9 == 5:
            content.insert(0, {"type": "thinking", "thinking": writer.text(2), "summaries": []})
        pasted = [{"file_name": "notes.txt", "file_size": 9, "file_type": "txt", "extracted_content": writer.text(4)}]
        at, message_id = writer.iso(), writer.uuid()
        messages.append(
            {
                "uuid": message_id,
                "text": text,
                "content": content,
                "sender": "human" if is_user else "assistant",
                "created_at": at,
                "updated_at": at,
                "attachments": pasted if number % 12 == 6 else [],
                "files": [{"file_name": "photo.png"}] if number % 16 == 8 else [],
                "parent_message_uuid": parent,
            }
        )
        parent = message_id
    return {
        "uuid": own_id,
        "name": writer.text(1)[:40],
        "summary": "",
        "created_at": began,
        "updated_at": writer.iso(),
        "account": {"uuid": "6f1d2c3b-4a5e-4f60-8a7b-9c0d1e2f3a4b"},
        "chat_messages": messages,
    }


def claude_code_lines(writer: Writer) -> Iterator[dict[str, Any]]:
    """A session: a summary, prompts, answers, tools and their results."""
    session, parent = writer.uuid(), None
    yield {"type": "summary", "summary": writer.text(1)[:50], "leafUuid": writer.uuid()}
    for turn in range(writer.random.randint(4, 60)):
        uuid = writer.uuid()
        common = {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/mira/ferry",
            "sessionId": session,
            "version": "2.1.12",
            "gitBranch": "main",
            "uuid": uuid,
            "timestamp": writer.iso(),
        }
        parent = uuid
        if turn % 4 == 0:
            yield common | {"type": "user", "message": {"role": "user", "content": writer.text(2)}}
        elif turn % 4 == 2:
            result = {"tool_use_id": "toolu_1", "type": "tool_result", "content": writer.text(20)}
            yield common | {"type": "user", "message": {"role": "user", "content": [result]}}
        else:
            blocks: list[dict[str, Any]] = [{"type": "text", "text": writer.text(6)}]
            if turn % 4 == 1:
                blocks.append({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}})
            message = {"model": "claude-sonnet-4-5", "id": "msg_1", "role": "assistant", "content": blocks}
            yield common | {"type": "assistant", "message": message}


def array_file(path: Path, size: int, made: Callable[[Writer], dict[str, Any]], seed: int = 1) -> None:
    """A JSON array of at least so many bytes."""
    writer = Writer(seed)
    with path.open("w") as file:
        file.write("[")
        written = 0
        while written < size:
            record = json.dumps(made(writer))
            written += file.write(record if written == 0 else "," + record)
        file.write("]")


def claude_code_folder(path: Path, size: int, seed: int = 1) -> None:
    """Transcripts of at least so many bytes together, in folders by project."""
    writer, written = Writer(seed), 0
    while written < size:
        folder = path / f"-home-mira-{writer.random.choice(WORDS)}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(line) + "\n" for line in claude_code_lines(writer))
        written += (folder / f"{writer.uuid()}.jsonl").write_text(lines)


def markdown_folder(path: Path, size: int, seed: int = 1) -> None:
    """Notes of at least so many bytes together, which link to each other and have tags."""
    writer, written, names = Writer(seed), 0, ["Start"]
    (path / ".obsidian").mkdir(parents=True)
    (path / ".obsidian" / "app.json").write_text("{}")
    (path / "picture.png").write_bytes(b"png")
    while written < size:
        name = f"{writer.random.choice(WORDS).capitalize()} {len(names)}"
        folder = path / writer.random.choice(WORDS[:9])
        folder.mkdir(exist_ok=True)
        links = " ".join(f"[[{other}]]" for other in writer.random.choices(names, k=3))
        head = f"---\ndate: {writer.now().date()}\ntags: [ferry, {writer.random.choice(WORDS)}]\n---\n"
        note = f"{head}# {name}\n\n{writer.text(30)}\n\nSee {links} and #idea.\n"
        written += (folder / f"{name}.md").write_text(note)
        names.append(name)


def letta_file(path: Path, size: int, seed: int = 1) -> None:
    """An agent with two memory blocks and messages of at least so many bytes."""
    writer, written = Writer(seed), 0
    messages: list[dict[str, Any]] = []
    while written < size:
        said = {"type": "text", "text": writer.text(5)}
        message = {
            "id": f"message-{len(messages)}",
            "role": ("user", "assistant", "tool")[len(messages) % 3],
            "content": [said],
            "model": "openai/gpt-4o-mini",
            "tool_calls": [],
            "created_at": writer.iso(),
        }
        messages.append(message)
        written += len(json.dumps(message))
    blocks = [
        {"id": "block-0", "label": "human", "value": "Mira keeps bees.", "limit": 5000},
        {"id": "block-1", "label": "persona", "value": "I am a careful assistant.", "limit": 5000},
    ]
    agent = {"name": "harbour", "block_ids": ["block-0", "block-1"], "id": "agent-0", "messages": messages}
    document = {"agents": [agent], "groups": [], "blocks": blocks, "files": [], "sources": [], "tools": [{"id": "t"}]}
    path.write_text(json.dumps(document))


MAKERS: dict[str, Callable[[Path, int], None]] = {
    "chatgpt": lambda path, size: array_file(path, size, chatgpt_conversation),
    "claude": lambda path, size: array_file(path, size, claude_conversation),
    "claude-code": claude_code_folder,
    "markdown": markdown_folder,
    "letta": letta_file,
}

if __name__ == "__main__":
    MAKERS[sys.argv[1]](Path(sys.argv[3]), int(float(sys.argv[2]) * 2**20))
