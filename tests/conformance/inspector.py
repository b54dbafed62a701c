"""The official inspector's command line lists every tool of `recollect serve` and calls each of them.

Run it by hand, `python -m tests.conformance.inspector`: CI does not, because npm cannot lock what the inspector needs.
"""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.conformance.__main__ import BIN, INSTALLED, npm, remove, serving

PACKAGE = "@modelcontextprotocol/inspector"
VERSION = "2.12.0"
FOLDER = INSTALLED.with_name("inspector")
PROGRAM = FOLDER / "node_modules" / PACKAGE / "clients" / "launcher" / "build" / "index.js"

# These two need what a fresh memory does not have; they must say so, and not make figures up.
REFUSING = {"store_dual_judge_scores", "get_golden_test_results"}


class Inspector:
    """Runs the inspector against one server, and remembers which tools it called."""

    def __init__(self, command: Sequence[str], url: str) -> None:
        self._command = [*command, "--cli", url]
        self.called: set[str] = set()

    def ask(self, method: str, *options: str) -> Any:
        run = subprocess.run([*self._command, "--method", method, *options], capture_output=True, text=True)
        return json.loads(run.stdout)

    def call(self, tool: str, **arguments: Any) -> Any:
        pairs = [
            f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in arguments.items()
        ]
        result = self.ask("tools/call", "--tool-name", tool, *(["--tool-arg", *pairs] if pairs else []))
        assert bool(result.get("isError")) is (tool in REFUSING), result
        self.called.add(tool)
        return result.get("structuredContent")


def every_tool(command: Sequence[str], url: str) -> int:
    """Call every tool that is listed; returns how many that are."""
    inspector = Inspector(command, url)
    listed = {tool["name"] for tool in inspector.ask("tools/list")["tools"]}
    _call_core(inspector)
    _call_context(inspector)
    _call_cognitive(inspector)
    assert inspector.called == listed, inspector.called ^ listed
    return len(listed)


def _call_core(inspector: Inspector) -> None:
    stored = inspector.call("remember", text="The inspector was here.", metadata={"by": "inspector"})
    found = inspector.call("recall", query="Was the inspector here?", top_k=1)
    assert found["memories"][0]["id"] == stored["id"]
    inspector.call("forget", id=stored["id"])


def _call_context(inspector: Inspector) -> None:
    conversation = inspector.call("create_conversation", user_id="inspector", title="A talk")["id"]
    inspector.call(
        "record_interaction", conversation_id=conversation, user_message="Hello", assistant_response="Good day"
    )
    assert inspector.call("fetch_chat_history", conversation_id=conversation)["message_count"] == 2
    inspector.call("get_conversation", conversation_id=conversation)
    assert inspector.call("list_conversations", user_id="inspector")["result"][0]["id"] == conversation


def _call_cognitive(inspector: Inspector) -> None:
    inspector.call("ping")
    said = inspector.call("store_raw_dialogue", session_id="s", speaker="Ann", content="I keep bees.")
    insight = inspector.call("compress_to_l2_insight", content="Ann keeps bees", source_ids=[said["id"]])
    found = inspector.call("hybrid_search", query_text="bees", weights={"semantic": 0.5, "keyword": 0.5})
    assert found["results"][0]["id"] == insight["id"]
    inspector.call("update_working_memory", content="Bees", importance=0.9)
    inspector.call("store_episode", query="Who keeps bees?", reward=1, reflection="Lesson: ask.")
    inspector.call("store_dual_judge_scores", query_id=1, query="bees", docs=[{"id": 1, "content": "Bees"}])
    inspector.call("get_golden_test_results")
    inspector.call("graph_add_node", label="Person", name="Ann", vector_id=insight["id"])
    inspector.call("graph_add_edge", source_name="Ann", target_name="Bees", relation="KEEPS", weight=0.9)
    inspector.call("graph_query_neighbors", node_name="Ann", depth=2)
    assert inspector.call("graph_find_path", start_node="Bees", end_node="Ann")["path_found"]


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not PROGRAM.exists():
        npm(FOLDER, "install", "--prefix", str(FOLDER), "--no-save", f"{PACKAGE}@{VERSION}")
    home = Path(tempfile.mkdtemp(prefix="recollect-inspector-"))
    with serving([str(BIN / "recollect"), "serve", "--port", "0"], home) as url:
        print(f"The inspector called all {every_tool([str(BIN / 'node'), str(PROGRAM)], url)} tools.")
    remove(home)


if __name__ == "__main__":
    main()
