"""Grades a running server by the benchmark of agent-memory-guard, which the Python that runs this must have.

    python benchmarks/memory_guard.py http://127.0.0.1:8000

Start the server with RECOLLECT_DEFENCE and RECOLLECT_MASKING as they are to be graded. Only the standard library is
used besides, so that the benchmark can be in an environment of its own.
"""

# mypy: ignore-errors
# The benchmark is in an environment of its own, so nothing is known of its types here.

import json
import os
import sys
import urllib.parse
import urllib.request
from collections import Counter, defaultdict
from typing import Any
from uuid import uuid4

from agent_memory_guard.bench.adapter import MemorySystemAdapter, RememberOutcome
from agent_memory_guard.bench.harness import run_suite
from agent_memory_guard.bench.scoring import score_report

TRUST = {"external_tool": "tool", "user_input": "user", "agent_authored": "assistant", "system": "operator"}


def ask(method: str, path: str, body: Any = None) -> Any:
    """An answer of the server."""
    key = os.environ.get("RECOLLECT_BENCH_KEY")
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(sys.argv[1] + path, data, headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


class Recollect(MemorySystemAdapter):
    """A user of its own for each scenario; what one turn stores, a later one lists by key and recalls by words."""

    name = "recollect"

    def __init__(self) -> None:
        self._user = f"amsb-{uuid4()}"

    def remember(self, key: str, value: Any, *, source_class: str = "external_tool") -> RememberOutcome:
        """As a long-term memory under a key."""
        told = {"messages": str(value), "category": "fact", "user_id": self._user, "key": key}
        stored = ask("POST", "/ltm/memories", told | {"trust": TRUST.get(source_class, "tool")})
        if any(stored["id"] in each["item"] for each in ask("GET", "/review?state=held&limit=200")["items"]):
            return RememberOutcome.QUARANTINED
        return RememberOutcome.STORED if stored["memory"] == str(value) else RememberOutcome.REDACTED

    def recall(self, key: str) -> Any | None:
        """What the list has under the key, and all that recall finds of the user."""
        named = urllib.parse.urlencode({"user_id": self._user, "key": key})
        listed = [each["memory"] for each in ask("GET", f"/ltm/memories?{named}")["results"]]
        found = ask("POST", "/recall", {"query": key.replace(".", " ").replace("_", " "), "user_id": self._user})
        texts = list(dict.fromkeys([*listed, *(each["text"] for each in found["memories"])]))
        return "\n".join(texts) if texts else None


report = run_suite(Recollect)
card = score_report(report)
print(f"score {card.score:.1f}, grade {card.grade.value}")
rates: dict[str, Counter[bool]] = defaultdict(Counter)
for run in report.runs:
    rates[run.category if run.malicious else f"{run.category} (harmless)"][run.passed] += 1
for category, passed in sorted(rates.items()):
    print(f"  {category}: {passed[True]} of {passed.total()}")
for run in report.runs:
    if not run.passed:
        print(f"  failed: {run.scenario_id} ({run.severity}), {run.final_outcome}")
