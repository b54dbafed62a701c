"""Contract memory-manager: OpenTelemetry spans, seen by a real exporter in a process of its own."""

import json
import subprocess
import sys
from typing import Any

import pytest

from recollect.settings import Settings

PROGRAM = """
import asyncio, json
from datetime import datetime, timedelta, UTC
from uuid import UUID
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

from sqlalchemy.exc import DatabaseError
from recollect import MemoryManager, Settings

async def main():
    async with MemoryManager() as memory:
        session = await memory.create_session("user-1", {"b": 1, "a": 2})
        await memory.store_message(session, "user", "hello", {"k": "SECRET"})
        await memory.get_conversation_history(session, 5)
        vector = [0.5] * 1536
        await memory.store_document("text", {"source": "x"}, vector)
        await memory.semantic_search(vector, 3, {"source": "x"})
        day = datetime(2026, 1, 1, tzinfo=UTC)
        await memory.temporal_query(day, day + timedelta(days=1))
        await memory.health_check()
        no_server = Settings(database_url="postgresql:///nowhere?host=/nonexistent")
        for bad in (
            MemoryManager(no_server).health_check(),
            memory.store_message(session, "nobody", "hello"),
            memory.get_conversation_history(session, 0),
        ):
            try:
                await bad
            except (ValueError, DatabaseError):
                pass

asyncio.run(main())
print(json.dumps([
    {"name": s.name, "attributes": dict(s.attributes), "status": s.status.status_code.name}
    for s in exporter.get_finished_spans()
]))
"""

STANDARD = {"service.name", "operation.type", "operation.success", "db.system"}


@pytest.fixture
def finished_spans(settings: Settings) -> list[dict[str, Any]]:
    printed = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    spans: list[dict[str, Any]] = json.loads(printed.stdout)
    return spans


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
def test_every_call_makes_one_span_with_the_contracts_attributes(finished_spans: list[dict[str, Any]]) -> None:
    own = {
        "memory.create_session": {"user_id", "metadata_keys"},
        "memory.store_message": {"session_id", "role", "content_length", "metadata_keys", "has_metadata"},
        "memory.get_conversation_history": {"session_id", "limit", "result_count"},
        "memory.store_document": {"content_length", "has_embedding", "metadata_keys"},
        "memory.semantic_search": {"top_k", "filter_count", "result_count", "query_time_ms"},
        "memory.temporal_query": {"start_date", "end_date", "filter_count", "result_count"},
        "memory.health_check": {"status", "postgres_version"},
    }
    good = [s for s in finished_spans if s["attributes"]["operation.success"]]
    assert {s["name"]: set(s["attributes"]) - STANDARD for s in good} == own
    assert len(good) == len(own)
    for span in good:
        assert span["attributes"]["service.name"] == "paias-memory-layer"
        assert span["attributes"]["db.system"] == "postgresql"
        assert span["name"] == "memory." + span["attributes"]["operation.type"]
        assert span["status"] == "UNSET"
    values = {s["name"]: s["attributes"] for s in good}
    assert values["memory.create_session"]["metadata_keys"] == ["a", "b"]
    assert values["memory.store_message"]["content_length"] == 5
    assert values["memory.store_message"]["has_metadata"] is True
    assert values["memory.semantic_search"]["filter_count"] == 1
    assert values["memory.semantic_search"]["result_count"] == 1
    assert values["memory.temporal_query"]["start_date"] == "2026-01-01T00:00:00+00:00"
    assert "SECRET" not in json.dumps(finished_spans)


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
def test_a_failed_call_says_so_in_its_span(finished_spans: list[dict[str, Any]]) -> None:
    failed = [s for s in finished_spans if not s["attributes"]["operation.success"]]
    assert [s["name"] for s in failed] == [
        "memory.health_check",
        "memory.store_message",
        "memory.get_conversation_history",
    ]
    assert failed[0]["attributes"]["status"] == "unhealthy"
    assert failed[0]["attributes"]["postgres_version"] == "unknown"
    assert all(s["status"] == "ERROR" for s in failed)
