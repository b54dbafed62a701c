"""MCP servers over standard input that are asked nothing, or are stopped in the middle of a write."""

import json
import os
import signal
import subprocess

WRITES = [
    {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": "remember", "arguments": {"text": f"Number {number}. " * 2000}},
    }
    for number in range(1, 4)
]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "a program", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def server() -> "subprocess.Popen[str]":
    # It logs every request to standard error, which is ours too.
    quiet = os.environ | {"RECOLLECT_LOG_LEVEL": "WARNING"}
    return subprocess.Popen(["recollect", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=quiet)


def served() -> "subprocess.Popen[str]":
    """A server that is busy."""
    process = server()
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps(INITIALIZE), file=process.stdin, flush=True)
    assert process.stdout.readline()
    for message in (INITIALIZED, *WRITES):
        print(json.dumps(message), file=process.stdin, flush=True)
    assert process.stdout.readline()
    return process


nothing, busy, stopped, interrupted = server(), served(), served(), served()
stopped.send_signal(signal.SIGTERM)
interrupted.send_signal(signal.SIGINT)
for process, expected in ((nothing, 0), (busy, 0), (stopped, -signal.SIGTERM), (interrupted, -signal.SIGINT)):
    process.communicate(timeout=60)
    assert process.returncode == expected, (process.args, process.returncode, expected)
