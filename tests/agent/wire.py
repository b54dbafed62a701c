"""A small HTTP server that speaks the wire formats of the providers, from a script."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """What the server does with one request. `whole` is false for a connection that ends within the answer.

    An answer that is held does not end before its event is set.
    """

    body: str
    status: int = 200
    kind: str = "text/event-stream"
    whole: bool = True
    hold: threading.Event | None = None


@dataclass
class Wire:
    """The server's address and what it was asked."""

    address: str
    answers: list[Answer]
    requests: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def serving(*answers: Answer) -> Iterator[Wire]:
    """Answers the requests in order, on a real socket."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            wire.requests.append(
                {
                    "path": self.path,
                    "headers": {name.lower(): value for name, value in self.headers.items()},
                    "body": json.loads(body),
                }
            )
            answer = wire.answers.pop(0)
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in answer.body.splitlines(keepends=True):
                data = line.encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
            if answer.hold:
                answer.hold.wait()
            if answer.whole:
                self.wfile.write(b"0\r\n\r\n")
            else:
                self.close_connection = True

        def log_message(self, *said: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    wire = Wire(f"http://127.0.0.1:{server.server_address[1]}", list(answers))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield wire
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def anthropic_events(*events: dict[str, Any]) -> str:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def anthropic_start() -> dict[str, Any]:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    return {"type": "message_start", "message": message}


def anthropic_text(*pieces: str, index: int = 0) -> list[dict[str, Any]]:
    deltas = [
        {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": piece}}
        for piece in pieces
    ]
    begin = {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
    return [begin, *deltas, {"type": "content_block_stop", "index": index}]


def anthropic_call(index: int, call_id: str, name: str, *pieces: str) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    deltas = [
        {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": piece}}
        for piece in pieces
    ]
    begin = {"type": "content_block_start", "index": index, "content_block": block}
    return [begin, *deltas, {"type": "content_block_stop", "index": index}]


def anthropic_end(reason: str) -> list[dict[str, Any]]:
    delta = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}}
    return [delta | {"usage": {"output_tokens": 5}}, {"type": "message_stop"}]


def openai_chunks(*chunks: dict[str, Any], done: bool = True) -> str:
    frame = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    lines = [f"data: {json.dumps(frame | chunk)}\n\n" for chunk in chunks]
    return "".join([*lines, *(["data: [DONE]\n\n"] if done else [])])


def openai_delta(reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def openai_call(index: int, arguments: str, call_id: str | None = None, name: str | None = None) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    call = {"index": index, "function": function} | ({"id": call_id, "type": "function"} if call_id else {})
    return openai_delta(tool_calls=[call])
