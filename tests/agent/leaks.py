"""Watches every agent test for a credential where none may be: logs, output, warnings, files, results, exceptions."""

import logging
import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click.testing
import pytest

import recollect.agent

# The only credentials that agent tests use. The variable is for the test that proves that the watch sees a leak.
CANARY = os.environ.get("AGENT_TEST_CANARY", "canary-3f9c1d")
USER_KEY = f"uk_{CANARY}"
API_KEY = f"sk_{CANARY}"

# A test's own configuration file holds the key by right.
CONFIGURATION = "config.json"

PACKAGE = str(Path(recollect.agent.__file__).parent)
# What these return may hold the key: it was in the wrong field, or the gateway sent it back.
CARRIERS = ("secret.py", "config_file.py", "gateway_client.py")


class LeakWatch(logging.Handler):
    """Collects the places where the canary was seen."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.leaks: list[str] = []

    def see(self, place: str, *shown: object) -> None:
        """Look for the canary in what someone would be shown."""
        if any(CANARY in (thing if isinstance(thing, str) else repr(thing)) for thing in shown):
            self.leaks.append(place)

    def emit(self, record: logging.LogRecord) -> None:
        self.see(f"log of {record.name}", record.getMessage(), vars(record), logging.Formatter().format(record))

    def see_files(self, folder: Path) -> None:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != CONFIGURATION and CANARY.encode() in path.read_bytes():
                self.leaks.append(f"file {path.name}")

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Exceptions that pass through the agent's code, caught later or not, and what its functions return."""
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_lines = False
        name = frame.f_code.co_qualname
        if event == "exception":
            error = argument[1]
            # The other two are how coroutines and generators return.
            if isinstance(error, BaseException) and not isinstance(error, StopIteration | StopAsyncIteration):
                shown = "".join(traceback.TracebackException.from_exception(error).format_exception_only())
                self.see(f"exception in {name}", shown, error, error.args)
        elif event == "return" and not frame.f_code.co_filename.endswith(CARRIERS):
            self.see(f"result of {name}", argument)
        return self.trace


@contextmanager
def watching(monkeypatch: pytest.MonkeyPatch) -> Iterator[LeakWatch]:
    watch = LeakWatch()
    root = logging.getLogger()
    level, tracer = root.level, sys.gettrace()
    root.addHandler(watch)
    root.setLevel(logging.DEBUG)
    _seen_when_called(monkeypatch, watch, pytest.CaptureFixture, "readouterr")
    _seen_when_called(monkeypatch, watch, subprocess.Popen, "communicate")
    _seen_when_called(monkeypatch, watch, click.testing.CliRunner, "invoke")
    _warnings_are_seen(monkeypatch, watch)
    sys.settrace(watch.trace)
    try:
        yield watch
    finally:
        sys.settrace(tracer)
        root.removeHandler(watch)
        root.setLevel(level)


def _seen_when_called(monkeypatch: pytest.MonkeyPatch, watch: LeakWatch, owner: type, method: str) -> None:
    """Output that a test takes for itself does not reach its report."""
    original = getattr(owner, method)

    def seen(self: Any, *values: Any, **options: Any) -> Any:
        result = original(self, *values, **options)
        watch.see(f"{owner.__name__}.{method}", getattr(result, "output", result))
        return result

    monkeypatch.setattr(owner, method, seen)


def _warnings_are_seen(monkeypatch: pytest.MonkeyPatch, watch: LeakWatch) -> None:
    original = warnings.WarningMessage.__init__

    def seen(self: Any, message: Any, *values: Any, **options: Any) -> None:
        watch.see("warning", str(message))
        original(self, message, *values, **options)

    monkeypatch.setattr(warnings.WarningMessage, "__init__", seen)


@pytest.fixture(autouse=True)
def no_credential_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with watching(monkeypatch) as watch:
        yield
    watch.see_files(tmp_path)
    assert not watch.leaks, f"a credential was shown: {', '.join(dict.fromkeys(watch.leaks))}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """What a test printed is complete only in its report."""
    report: pytest.TestReport = yield
    for title, text in report.sections:
        if CANARY in text and report.outcome != "failed":
            report.outcome = "failed"
            report.longrepr = f"a credential was shown: {title}"
    return report
