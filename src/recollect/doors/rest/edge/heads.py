"""Heads of requests: how long one may be, and none that two readers could read in two ways.

The parser below bounds only a head of which something is still missing: one that arrives whole could have any length.
"""

import re
from http import HTTPStatus
from typing import Any

import h11

# Method, path and headers together.
MAX_HEAD_BYTES = 32 * 1024

# What stands around the parts of the first line, and of each header.
_LINE_BYTES = len(b"  HTTP/1.1\r\n")
_HEADER_BYTES = len(b": \r\n")

_TOO_LONG = f"The path and headers together are larger than {MAX_HEAD_BYTES // 1024} kB: send less"
_ADDRESS_TOO_LONG = (
    f"The address and what your browser sends with it are larger than {MAX_HEAD_BYTES // 1024} kB, so the question was "
    "not asked: go back and shorten it, or set fewer filters"
)
_TWO_LENGTHS = "Content-Length and Transfer-Encoding contradict each other: send one of them"
_OLD_CHUNKS = "Transfer-Encoding needs HTTP/1.1"


# A browser asks for a page of the console: the first line of such a request.
_OF_CONSOLE = re.compile(rb"[A-Z]+ /console[/? ]")


class Refused(Exception):
    """A head that is not read on, with the status and the sentence of the answer, which a browser gets as a page."""

    def __init__(self, status: HTTPStatus, sentence: str, *, is_page: bool = False) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.is_page = is_page


def _too_long(first_line: bytes) -> Refused:
    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    if _OF_CONSOLE.match(first_line):
        return Refused(status, _ADDRESS_TOO_LONG, is_page=True)
    return Refused(status, _TOO_LONG)


class StrictConnection(h11.Connection):
    """A parser that raises Refused for a head that is too long, or of which proxies may think otherwise."""

    def next_event(self) -> Any:
        """The next part of a request."""
        begins = self.their_state is h11.IDLE
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as problem:
            if begins and problem.error_status_hint == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
                raise _too_long(self.trailing_data[0][:MAX_HEAD_BYTES]) from problem
            raise
        if isinstance(event, h11.Request):
            header_bytes = sum(len(name) + len(value) + _HEADER_BYTES for name, value in event.headers)
            if len(event.method) + len(event.target) + _LINE_BYTES + header_bytes > MAX_HEAD_BYTES:
                raise _too_long(event.method + b" " + event.target + b" ")
            names = {name for name, _ in event.headers}
            if b"transfer-encoding" in names and b"content-length" in names:
                raise Refused(HTTPStatus.BAD_REQUEST, _TWO_LENGTHS)
            if b"transfer-encoding" in names and event.http_version < b"1.1":
                raise Refused(HTTPStatus.BAD_REQUEST, _OLD_CHUNKS)
        return event
