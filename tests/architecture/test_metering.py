"""Whatever stores a text counts it against quotas: read from the `.sql` files and the capabilities that run them."""

import ast
import re
from pathlib import Path

import recollect
from recollect.flows.kinds import registry
from recollect.storage.sql import read_blocks

MEMORY = Path(recollect.__file__).parent / "memory"
TABLES = "|".join(sorted({kind.record.table for kind in registry.KINDS}))
STORES = re.compile(rf"\b(?:insert\s+into|update)\s+(?:{TABLES})\b|\bappend_messages")

NOT_COUNTED = {
    "log.append": "who writes messages counts each for its own caller",
    "log.append_on_worker": "as above",
    "log.set_details": "as above",
    "sessions.open": "it stores no text; the messages that open a session count",
    "sessions.begin": "it imports sessions, whose messages count",
    "sessions.set_last_active": "it stores no text",
    "windows.move": "it stores no text",
    "windows.summarise": "it stands for messages that count",
    "graph.keep_nodes": "what was there before a change counts no more than once",
    "graph.keep_edge": "as above",
    "graph.label_ends": "a label alone",
    "graph.unlink": "it removes",
    "graph.unlink_versions": "it removes",
    "entities.unobserve_versions": "it removes",
    "memories.keep_version": "what was there before a change counts no more than once",
    "memories.record": "as above",
    "memories.expire_versions": "it stores no text",
    "memories.take_slot": "it stores no text",
    "memories.supersede": "it stores no text",
    "memories.blank_history": "it removes",
    "working.refresh": "it stores no text",
    "working.archive": "it moves what counts already",
    "golden.expect": "it stores no text",
    "golden.begin": "the server's own figures",
    "golden.record": "as above",
    "golden.add_results": "as above",
    "judging.add": "as above",
    "judging.add_scores": "as above",
    "keyed_records.refresh": "it stores no text",
    "store_files.add": "the version of it counts",
    "store_files.change": "the version of it counts",
    "store_files.hold_version": "it stores no text",
    "store_files.redact": "it removes",
    "stores.archive": "it stores no text",
}


def test_every_capability_counts_what_it_stores() -> None:
    unexplained, known = [], set()
    for module in sorted(MEMORY.rglob("*.py")):
        if not (sql := module.with_suffix(".sql")).exists():
            continue
        storing = {name for name, text in read_blocks(sql).items() if STORES.search(text)}
        for function in ast.walk(ast.parse(module.read_text())):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            body = ast.unparse(function)
            used = {f"{module.stem}.{name}" for name in re.findall(r"_Sql\.(\w+)", body) if name in storing}
            known |= used
            if ".tally.add(" not in body:
                unexplained += sorted(used - NOT_COUNTED.keys())
    assert unexplained == []
    assert NOT_COUNTED.keys() <= known, "it names statements that store nothing"
