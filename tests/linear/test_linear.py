"""Nothing that reads a user's text takes a time that grows faster than the text.

A regular expression holds the interpreter for as long as it runs: one that is quadratic stops the whole server with a
few kilobytes. So every pattern of the tree is found, in the values of its modules and in its source, and is fed with
texts made from the pattern itself: what stands before a repetition, what the repetition takes thousands of times, and
an end on which it fails. The same for every function of `language/` with texts that are all marks, all quotes, all
capitals and so on.

Steps cannot be counted, since `re` does not tell them. Instead the texts are so long that what is linear takes
milliseconds and what is quadratic many seconds, and a process that feeds them is ended by a timer of its own processor
time, which lies far from both and does not depend on what else the machine does.
"""

import ast
import re
import signal
import subprocess
import sys

import pytest

from tests.linear import feed, functions, patterns, phrases, worst


@pytest.mark.parametrize("what", ["patterns", "functions", "orders"])
def test_the_time_of_every_pattern_and_function_grows_with_the_text_alone(what: str) -> None:
    assert culprits(what) == []


def culprits(what: str) -> list[str]:
    found: list[str] = []
    while True:
        run = subprocess.run(
            [sys.executable, "-m", "tests.linear.feed", what, *found[-1:]], capture_output=True, text=True, check=False
        )
        last = run.stdout.splitlines()[-1] if run.stdout else ""
        if last == feed.FINISHED:
            return found
        assert run.returncode == -signal.SIGPROF, run.stderr
        found.append(last)


def test_every_pattern_of_the_tree_is_found() -> None:
    assert patterns.unknown_calls() == []
    assert len(patterns.every_pattern()) > 50


def test_adapters_have_no_patterns_besides_their_connection() -> None:
    adapters = patterns.SOURCE / "adapters"
    for path in set(adapters.rglob("*.py")) - {adapters / "connection.py"}:
        imports = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import))
        assert "re" not in {name.name for node in imports for name in node.names}, path


def test_patterns_that_pydantic_checks_run_on_its_own_linear_engine() -> None:
    for path in patterns.SOURCE.rglob("*.py"):
        names = {node.arg for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.keyword)}
        assert "regex_engine" not in names, path


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(?:[.,]|(?<!\d)[\"'])+$", '.,"'),
        (r"[a-z][a-z0-9+.-]*://", "aaaa"),
        (r"\s*\S+", "    "),
        (r"replace\s+(.+?)\s+with", "replace    "),
        (r"<a>(.*?)</a>", "<a>a<a>a"),
        (r"<\s*/?\s*b", "<     "),
    ],
)
def test_worst_texts_are_made_from_what_a_pattern_repeats(pattern: str, text: str) -> None:
    assert any(text in made for made in worst.texts(re.compile(pattern), 100)), list(
        worst.texts(re.compile(pattern), 20)
    )


def test_phrases_are_the_words_of_the_rules() -> None:
    assert any(text.startswith("copy all to copy all to ") for text in phrases.texts(100))


def test_functions_are_fed_with_texts_of_every_kind() -> None:
    assert {"recollect.language.sameness.gist", "recollect.language.passages.cut"} <= dict(
        functions.every_call()
    ).keys()
