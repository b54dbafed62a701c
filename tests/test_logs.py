"""Logs are structured, name the request that they belong to, and hold no secret."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from recollect.logs import BoundRepeats, JsonFormatter, NameRequest, TextFormatter, handling, redact, request_id


def record(message: str, **fields: object) -> logging.LogRecord:
    line = logging.makeLogRecord({"msg": message, "levelname": "INFO", "name": "recollect.test", "created": 0.0})
    vars(line).update(fields)
    return line


def test_a_json_line_has_its_fields() -> None:
    line = json.loads(JsonFormatter().format(record("stored", namespace="n", count=3)))
    assert line == {
        "time": "1970-01-01T00:00:00.000+00:00",
        "level": "info",
        "logger": "recollect.test",
        "message": "stored",
        "namespace": "n",
        "count": "3",
    }


def test_a_text_line_is_one_line_for_a_person() -> None:
    assert TextFormatter().format(record("stored", namespace="n")) == "00:00:00 info stored namespace=n"


def test_secrets_are_taken_out_of_messages_fields_and_tracebacks() -> None:
    url = "postgresql://me:hunter2@db.example/x"
    for text in (url, "password=hunter2", "Authorization: Bearer hunter2", "'api_key': 'hunter2'", "user_key=hunter2"):
        assert "hunter2" not in redact(text)
        for formatter in (JsonFormatter(), TextFormatter()):
            assert "hunter2" not in formatter.format(record(text, detail=text))
            try:
                raise RuntimeError(text)
            except RuntimeError as problem:
                with_traceback = record("failed", exc_info=(type(problem), problem, problem.__traceback__))
            assert "hunter2" not in formatter.format(with_traceback)


def test_ordinary_text_is_left_alone() -> None:
    text = "Stored 3 tokens for user@example.org at http://127.0.0.1:8000/health"
    assert redact(text) == text


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What a logger writes through a handler as `configure` makes it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(NameRequest())
    logger = logging.getLogger("recollect.test")
    logger.addHandler(handler)
    yield stream
    logger.removeHandler(handler)


async def test_every_line_of_a_request_names_it_and_no_other_line_does(written: io.StringIO) -> None:
    log = logging.getLogger("recollect.test")

    async def handle(name: str) -> None:
        with handling(name):
            log.warning("begins")
            await asyncio.gather(asyncio.create_task(inner()), asyncio.to_thread(log.warning, "in a thread"))
            log.warning("names another", extra={"request_id": "other"})

    async def inner() -> None:
        log.warning("in a task")

    await asyncio.gather(handle("one"), handle("two"))
    log.warning("after")
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    named = {(line["message"], line.get("request_id")) for line in lines}
    assert named == {(what, name) for what in ("begins", "in a task", "in a thread") for name in ("one", "two")} | {
        ("names another", "other"),
        ("after", None),
    }
    assert request_id() is None


def test_a_fault_that_repeats_is_written_a_few_times_and_then_counted() -> None:
    bound = BoundRepeats(at_once=3, seconds=10)

    def written(message: str, at: float, level: int = logging.ERROR) -> logging.LogRecord | None:
        line = record(message, created=at, levelno=level)
        return line if bound.filter(line) else None

    assert [written("out of descriptors\nTraceback ...", 0.1 * n) is not None for n in range(6)] == [True] * 3 + [
        False
    ] * 3
    assert written("something else", 1) is not None
    assert all(written("GET /health 200", 1, logging.INFO) for _ in range(20))
    later = written("out of descriptors\nTraceback ...", 20)
    assert later is not None
    assert "left_out=3" in TextFormatter().format(later)
