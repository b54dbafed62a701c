"""Whatever is stored, a terminal shows it as text and obeys none of it."""

import ast
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.doors.cli import printing
from recollect.language import controls

COMMANDS = Path(printing.__file__).parent

# printing.py filters; demo_screen.py draws its own story with styles of its own.
PRINTS_ITSELF = {"printing.py", "demo_screen.py"}

HOSTILE = "\x1b]0;title\x07 \x1b[2J \x9b31m \u202egnp.exe \u2066 \x7f \x00 \r over"


def is_obeyed(character: str) -> bool:
    """By the Unicode database, not by our own list: controls and what changes the direction of a text."""
    is_control = unicodedata.category(character) == "Cc" and character not in "\t\n"
    return is_control or unicodedata.bidirectional(character) in {
        "LRE",
        "RLE",
        "PDF",
        "LRO",
        "RLO",
        "LRI",
        "RLI",
        "FSI",
        "PDI",
    }


@given(st.text() | st.text(st.characters(categories=["Cc", "Cf"])))
def test_nothing_that_a_terminal_obeys_is_shown(text: str) -> None:
    assert not any(map(is_obeyed, controls.shown(text)))


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_is_the_same_with_such_characters_escaped(document: object) -> None:
    escaped = controls.escaped_json(json.dumps(document, ensure_ascii=False))
    assert not any(map(is_obeyed, escaped))
    assert json.loads(escaped) == document


def test_a_line_has_the_styles_of_the_command_and_none_of_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    printing.echo(printing.Styled(HOSTILE, bold=True), HOSTILE)
    printing.print_json({"text": HOSTILE})
    shown = capsys.readouterr().out
    assert not any(map(is_obeyed, shown))
    assert r"\x1b]0;title\x07" in shown
    assert r"\u202egnp.exe" in shown


def test_every_command_prints_through_the_filter() -> None:
    for path in COMMANDS.glob("*.py"):
        if path.name in PRINTS_ITSELF:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name not in {"click.echo", "click.secho", "click.style", "print", "sys.stdout.write"}, (
                    f"{path.name}:{node.lineno}"
                )
