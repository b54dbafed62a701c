"""`python -m tests.demo_picture` plays `recollect demo` in a terminal of its own and draws it: docs/demo.svg."""

import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from tests.waiting import wait_until

RECOLLECT = Path(sys.executable).with_name("recollect")
PICTURE = Path(__file__).parents[1] / "docs" / "demo.svg"

COLUMNS = 92
CELL_WIDTH, LINE_HEIGHT, FONT_SIZE, MARGIN = 8.4, 19, 14, 22

BACKGROUND, FOREGROUND = "#16181d", "#d7dae0"
COLOURS = {
    31: "#ef6b73",
    32: "#8fd18a",
    33: "#e6c384",
    34: "#7aa2f7",
    35: "#c792ea",
    36: "#6fcfd6",
}
CONTROL = re.compile(r"\x1b\[([0-9;]*)m")


@dataclass(frozen=True, slots=True)
class Style:
    """How some characters look."""

    colour: int | None = None
    bold: bool = False
    dim: bool = False

    def after(self, codes: str) -> "Style":
        """The style from an escape sequence on."""
        style = self
        for code in (int(part or 0) for part in codes.split(";")):
            if code == 0:
                style = Style()
            elif code in (1, 2):
                style = replace(style, **{"bold" if code == 1 else "dim": True})
            else:
                style = replace(style, colour=code)
        return style

    def attributes(self) -> str:
        """The same in SVG."""
        colour = FOREGROUND if self.colour is None else COLOURS[self.colour]
        return f'fill="{colour}"' + ' font-weight="700"' * self.bold + ' opacity="0.6"' * self.dim


def played() -> str:
    """What the demo writes to a terminal, its escape sequences included."""
    with tempfile.TemporaryDirectory(prefix="recollect-picture-") as home:
        settings = {"RECOLLECT_DATA_DIR": home, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
        ours, theirs = pty.openpty()
        command = [str(RECOLLECT), "demo"]
        with subprocess.Popen(command, stdout=theirs, stdin=theirs, env=environment | settings) as process:
            os.close(theirs)
            text = b"".join(_written(ours)).decode()
        os.close(ours)
        wait_until(lambda: not (Path(home) / "data" / "postmaster.pid").exists(), "the server stops")
        if process.returncode:
            sys.exit(f"recollect demo failed:\n{text}")
        return text.replace("\r\n", "\n")


def _written(terminal: int) -> Iterator[bytes]:
    """All that is written to a terminal; on Linux its end is an error."""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            return
        if not part:
            return
        yield part


def runs(line: str) -> Iterator[tuple[int, str, Style]]:
    """The pieces of a line that look alike, each with its column."""
    column, style = 0, Style()
    for number, piece in enumerate(CONTROL.split(line)):
        if number % 2:
            style = style.after(piece)
            continue
        if piece.strip():
            yield column, piece, style
        column += len(piece)


def drawn(text: str) -> str:
    """A picture of a terminal with this text."""
    lines = ["\x1b[2m$\x1b[0m recollect demo", "", *text.rstrip("\n").split("\n")]
    width, height = COLUMNS * CELL_WIDTH + 2 * MARGIN, len(lines) * LINE_HEIGHT + 2 * MARGIN
    pieces = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
        f'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="{FONT_SIZE}">',
        "<title>recollect demo</title>",
        f'<rect width="100%" height="100%" rx="10" fill="{BACKGROUND}"/>',
    ]
    for row, line in enumerate(lines):
        y = MARGIN + row * LINE_HEIGHT + FONT_SIZE
        for column, piece, style in runs(line):
            # Fonts differ in width: the picture says how wide each piece is, so that columns stay columns.
            x, length = MARGIN + column * CELL_WIDTH, len(piece) * CELL_WIDTH
            pieces.append(
                f'<text x="{x:.1f}" y="{y}" textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs" '
                f'xml:space="preserve" {style.attributes()}>{escape(piece, quote=False)}</text>'
            )
    return "\n".join([*pieces, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(drawn(played()))
    print(f"{PICTURE} is drawn anew.")
