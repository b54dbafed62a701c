"""Whatever stands in a field of a foreign file, its reader tells of it; it never fails."""

import copy
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.flows.transfer.foreign.formats import FORMATS
from recollect.flows.transfer.foreign.pieces import Piece, Refused
from recollect.flows.transfer.foreign.sources import Member, Source, opened
from tests.flows.test_foreign_files import agent_file, chatgpt, claude, node, said

ODD: list[Any] = [None, True, -1e300, "", "odd\x00", [], ["odd"], [[5]], [{}], {}, {"odd": {}}]

PROJECT = {"uuid": "p", "name": "P", "prompt_template": "x", "created_at": "2024", "docs": [{"content": "y"}]}
MEMORIES = {"conversations_memory": "x", "project_memories": {"p": "y"}}
LINE = {
    "type": "assistant",
    "uuid": "1",
    "sessionId": "s",
    "timestamp": "2026-01-20T11:57:17.716Z",
    "cwd": "/home",
    "message": {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "Hi."}]},
}
CALL = {"function": {"name": "send_message", "arguments": '{"message": "Hello."}'}}
BLOCKS = [{"type": "text", "text": "Hi."}]
WHOLE: dict[str, list[Any]] = {
    "chatgpt": [[chatgpt(node("u2", "a2", "user", "And back?", {"content_type": "audio", "text": "x"}), leaf="u2")]],
    "claude": [
        [claude(said("m", "human", "Hi.", content=BLOCKS, attachments=[{"extracted_content": "x"}], files=[{}]))],
        [PROJECT],
        [MEMORIES],
    ],
    "claude-code": [LINE],
    "letta": [
        agent_file("x", {"role": "assistant", "content": BLOCKS, "tool_calls": [CALL], "created_at": "2025-01-01"}),
        {"core_memory": [{"label": "human", "value": "x"}], "messages": [{"role": "user", "content": "x"}]},
    ],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def with_odd(whole: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    changed = copy.deepcopy(whole)
    holder = changed
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = odd
    return changed


def pieces(origin: str, document: Any) -> list[Piece]:
    content = json.dumps(document).encode()
    source = Source(Path("x"), (Member("x.jsonl", len(content), None, lambda: io.BytesIO(content)),), is_folder=False)
    return list(FORMATS[origin].read(source, "u", lambda _: None, None))


@pytest.mark.parametrize(("origin", "whole"), [(origin, whole) for origin, wholes in WHOLE.items() for whole in wholes])
def test_an_odd_value_is_told_of_or_passed_over(origin: str, whole: Any) -> None:
    assert not [piece for piece in pieces(origin, whole) if isinstance(piece, Refused)]
    for place in places(whole):
        for odd in ODD:
            for piece in pieces(origin, with_odd(whole, place, odd)):
                assert piece.place.startswith("x.jsonl"), (place, odd)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "---\n",
        "---\n---",
        "---\na\n---\nx",
        "---\n- a\n---\nx",
        "---\ntags: 5\ndate: 99\n---\nx",
        "[[]]",
        "[[a",
        "# ",
    ],
)
def test_odd_notes_are_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "note.md").write_text(text)
    with opened(tmp_path) as source:
        for piece in FORMATS["markdown"].read(source, "u", lambda _: None, None):
            assert not isinstance(piece, Refused)
