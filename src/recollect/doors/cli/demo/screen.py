"""What `recollect demo` prints: plain lines, as wide as the terminal allows, in colour if it has colours."""

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from io import TextIOWrapper

import click

NARROWEST, WIDEST = 40, 96
INDENT = "  "
COLOURS = ("green", "blue", "magenta", "yellow", "cyan")
# How long a bar is that stands for 1.
CELLS = 28


class Screen:
    """Prints line by line, and knows nothing of memory."""

    def __init__(self) -> None:
        if isinstance(sys.stdout, TextIOWrapper):
            # A terminal that knows fewer characters gets a question mark for the others, not a traceback.
            sys.stdout.reconfigure(errors="replace")
        self._width = min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)
        self._color = False if os.environ.get("NO_COLOR") else None

    def title(self, text: str) -> None:
        """The first line."""
        self._echo(click.style(text, bold=True, fg="cyan"))

    def section(self, text: str, door: str) -> None:
        """The head of a part: what happens, and through which door."""
        gap = self._width - len(text) - len(door) - 1
        self._echo()
        if gap < 1:
            self._echo(click.style(text, bold=True))
            self._echo(click.style(door, dim=True))
        else:
            self._echo(click.style(text, bold=True) + " " * (gap + 1) + click.style(door, dim=True))
        self._echo(click.style("─" * self._width, dim=True))

    def says(self, who: str, text: str, emphasised: bool) -> None:
        """One line of a conversation."""
        head = f"{who:>9}  "
        for place, line in enumerate(self._wrapped(text, len(head))):
            before = click.style(head, dim=True) if place == 0 else " " * len(head)
            self._echo(before + (line if emphasised else click.style(line, dim=True)))

    def asks(self, question: str) -> None:
        """A question."""
        self._echo(f"{INDENT}{click.style('?', fg='yellow', bold=True)} {click.style(question, bold=True)}")

    def mark(self, right: bool, text: str) -> None:
        """A result, and whether it is what it should be."""
        sign = click.style("✓", fg="green", bold=True) if right else click.style("✗", fg="red", bold=True)
        first, *more = self._wrapped(text, len(INDENT) + 2)
        self._echo(f"{INDENT}{sign} {click.style(first, fg='green' if right else 'red')}")
        for line in more:
            self._echo(f"{INDENT}  {click.style(line, fg='green' if right else 'red')}")

    def score(self, total: float, parts: Sequence[tuple[str, float]]) -> None:
        """A number, and what it is made of, as a bar of coloured pieces."""
        # Rounded where each piece ends, so that the pieces add up to the whole.
        values = [value for _, value in parts]
        ends = [round(sum(values[: count + 1]) * CELLS) for count in range(len(values))]
        cells = [end - start for start, end in zip([0, *ends], ends, strict=False)]
        colours = [COLOURS[place % len(COLOURS)] for place in range(len(parts))]
        bar = "".join(click.style("━" * count, fg=colour) for count, colour in zip(cells, colours, strict=True))
        named = [
            click.style(f"{name} {value:.2f}", fg=colour) for (name, value), colour in zip(parts, colours, strict=True)
        ]
        head = f"{INDENT}  {click.style(f'{total:.2f}', bold=True)} {bar}"
        legend = "  ".join(named)
        beside = " " * (CELLS - sum(cells) + 2) + legend
        if len(click.unstyle(head + beside)) <= self._width:
            self._echo(head + beside)
        else:
            self._echo(head)
            self._echo(f"{INDENT}  {legend}")

    def note(self, text: str) -> None:
        """Something beside the point, in small print."""
        for line in self._wrapped(text, len(INDENT) + 2):
            self._echo(click.style(f"{INDENT}  {line}", dim=True))

    def text(self, text: str) -> None:
        """A plain sentence."""
        for line in self._wrapped(text, len(INDENT)):
            self._echo(f"{INDENT}{line}")

    def command(self, text: str) -> None:
        """Something to type; it is not wrapped, so that it can be copied."""
        self._echo(f"{INDENT}{INDENT}{click.style(text, fg='cyan')}")

    def space(self) -> None:
        """An empty line."""
        self._echo()

    def _wrapped(self, text: str, taken: int) -> list[str]:
        return textwrap.wrap(text, self._width - taken, break_on_hyphens=False) or [""]

    def _echo(self, line: str = "") -> None:
        click.echo(line, color=self._color)
