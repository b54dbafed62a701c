"""Servers that are stopped by Ctrl-C and by SIGTERM while an MCP client listens and passages are being indexed."""

import os
import re
import signal
import subprocess
import threading
from contextlib import suppress

import httpx


def begin(*arguments: str) -> "subprocess.Popen[str]":
    # It logs every request to standard error, which is ours too.
    quiet = os.environ | {"RECOLLECT_LOG_LEVEL": "WARNING"}
    command = ["recollect", "serve", "--port", "0", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quiet)


def address(server: "subprocess.Popen[str]") -> str:
    assert server.stdout is not None
    return next(found[0] for line in server.stdout if (found := re.search(r"http://[\d.]+:\d+", line)))


def listen(url: str) -> None:
    headers = {"Accept": "text/event-stream"}
    with suppress(httpx.HTTPError), httpx.stream("GET", f"{url}/mcp", headers=headers, timeout=60) as stream:
        for _ in stream.iter_lines():
            pass


interrupted, terminated, workers = begin(), begin(), begin("--workers", "2")
urls = [address(server) for server in (interrupted, terminated, workers)]
for url in urls:
    threading.Thread(target=listen, args=(url,), daemon=True).start()
    memory = {"messages": "Words of many kinds. " * 2000, "category": "fact", "user_id": "ann"}
    assert httpx.post(f"{url}/ltm/memories", json=memory, timeout=60).is_success
interrupted.send_signal(signal.SIGINT)
terminated.send_signal(signal.SIGTERM)
workers.send_signal(signal.SIGTERM)
for server, expected in ((interrupted, 130), (terminated, -signal.SIGTERM), (workers, 0)):
    server.communicate(timeout=60)
    assert server.returncode == expected, (server.args, server.returncode, expected)
