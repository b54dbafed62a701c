"""Lets the tests talk to a real server: the ids that they made up are exchanged for those of what is there."""

import os
import sys
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

# The package `tests` is the SDK's here.
sys.path.append(str(Path(__file__).parents[1]))
from user_programs import serving

STORES = "/v1/memory_stores"
# Of the content that a memory must have for an update, in the tests.
MADE_UP_HASH = "210b9798eb53baa4e69d31c1071cf03d212b8ad0ca30cf321e0ea82e120aac26"

_closing = ExitStack()


def real_names(http: httpx.Client) -> dict[str, str]:
    """Something new for each request, because a test may delete it; the names that tests use for it, and its own."""
    store = http.post(STORES, json={"name": "made for a test"}).raise_for_status().json()["id"]
    made = http.post(f"{STORES}/{store}/memories", json={"path": "/made", "content": "for a test"}).raise_for_status()
    memory, old = made.json()["id"], made.json()["memory_version_id"]
    path = f"{STORES}/{store}/memories/{memory}"
    now = http.post(path, json={"content": "for a test, later"}).raise_for_status().json()["content_sha256"]
    return {
        "/memory_store_id": f"/{store}",
        "/memory_id": f"/{memory}",
        "/memory_version_id": f"/{old}",
        "=expected_content_sha256": f"={now}",
        MADE_UP_HASH: now,
    }


class Exchange(BaseHTTPRequestHandler):
    """Passes every request on, with real names in it, and the answer back as it is."""

    protocol_version = "HTTP/1.1"
    http: httpx.Client

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        url = self.path
        for made_up, real in real_names(self.http).items():
            url, body = url.replace(made_up, real), body.replace(made_up, real)
        own = ("host", "content-length", "connection", "accept-encoding")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in own}
        answer = self.http.request(self.command, url, content=body or None, headers=headers)
        self.send_response(answer.status_code)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_POST = do_DELETE = _pass_on  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Nothing: pytest shows what fails."""


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Before the tests are read, which look for their server then."""
    Exchange.http = _closing.enter_context(httpx.Client(base_url=_closing.enter_context(serving()), timeout=60))
    exchange = ThreadingHTTPServer(("127.0.0.1", 0), Exchange)
    _closing.callback(exchange.shutdown)
    Thread(target=exchange.serve_forever, daemon=True).start()
    os.environ["TEST_API_BASE_URL"] = f"http://127.0.0.1:{exchange.server_port}"


def pytest_unconfigure() -> None:
    _closing.close()
