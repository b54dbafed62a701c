"""Structured logs on standard error, with secrets removed."""

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

_CREDENTIALS_IN_URL = re.compile(r"://[^/\s@]*@")
_NAMED_SECRET = re.compile(
    r"(?P<name>(?:password|passwd|api[_-]?key|user[_-]?key|token|secret)[\"']?\s*[=:]\s*|bearer\s+)[\"']?[^\s\"',;}]+",
    re.IGNORECASE,
)
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}

# Of repeated lines that are told apart; kinds are few unless a message is made of what callers say.
MAX_KINDS = 1000

_request_id: ContextVar[str | None] = ContextVar("recollect_request_id", default=None)


@contextmanager
def handling(request_id: str) -> Iterator[None]:
    """Every line that is written while this request is handled, also by tasks that it starts, names it."""
    before = _request_id.set(request_id)
    try:
        yield
    finally:
        _request_id.reset(before)


def request_id() -> str | None:
    """The request that is being handled here."""
    return _request_id.get()


class NameRequest(logging.Filter):
    """Adds the request to a line that does not name one itself."""

    def filter(self, record: logging.LogRecord) -> bool:
        current = _request_id.get()
        if current is not None and not hasattr(record, "request_id"):
            record.request_id = current
        return True


class BoundRepeats(logging.Filter):
    """Lets a few warnings of one kind through in a while, and counts the others: a fault that repeats fills no disk.

    The next line of the kind tells how many were left out.
    """

    def __init__(self, at_once: int = 10, seconds: float = 10.0) -> None:
        super().__init__()
        self._at_once = at_once
        self._seconds = seconds
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        kind = (record.name, str(record.msg).partition("\n")[0][:80])
        began, count = self._seen.get(kind, (record.created, 0))
        if record.created - began >= self._seconds:
            if count > self._at_once:
                record.left_out = count - self._at_once
            began, count = record.created, 0
        if len(self._seen) >= MAX_KINDS:
            self._seen.clear()
        self._seen[kind] = (began, count + 1)
        return count < self._at_once


def redact(text: str) -> str:
    """The text without credentials in URLs and without values that are named as secrets."""
    text = _CREDENTIALS_IN_URL.sub("://***@", text)
    return _NAMED_SECRET.sub(r"\g<name>***", text)


class _Formatter(logging.Formatter):
    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        return {key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS}

    def _text(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + self.formatException(record.exc_info)
        return message


class TextFormatter(_Formatter):
    """One line for a person."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        fields = "".join(f" {key}={value}" for key, value in self._fields(record).items())
        return redact(f"{moment} {record.levelname.lower()} {self._text(record)}{fields}")


class JsonFormatter(_Formatter):
    """One JSON object a line for a machine."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(self._text(record)),
        }
        line |= {key: redact(str(value)) for key, value in self._fields(record).items()}
        return json.dumps(line, ensure_ascii=False)


def configure(level: str, style: Literal["text", "json"]) -> None:
    """Send every log line of this process to standard error. Programs call this; the library never does."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    handler.addFilter(NameRequest())
    handler.addFilter(BoundRepeats())
    logging.basicConfig(level=level, handlers=[handler], force=True)
