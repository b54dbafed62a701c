"""The lines of a file to import: each is read once, with its own number, whatever stands before it."""

import io

import pytest

from recollect.flows.transfer import import_lines
from recollect.flows.transfer.import_lines import BadLine, Line


@pytest.mark.parametrize("length", [30, 31, 32, 60, 61, 62, 90])
def test_a_line_that_is_too_long_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    monkeypatch.setattr(import_lines, "MAX_LINE_BYTES", 30)
    long, short = b"x" * (length - 1) + b"\n", b'{"kind": "message"}\n'
    first, second = import_lines.read(io.BytesIO(long + short))
    assert isinstance(first, BadLine)
    assert (first.number, first.size) == (1, length)
    assert isinstance(second, Line)
    assert (second.number, second.fields) == (2, {"kind": "message"})
