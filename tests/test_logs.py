"""Logs are structured and hold no secret."""

import json
import logging

from recollect.logs import JsonFormatter, TextFormatter, redact


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
