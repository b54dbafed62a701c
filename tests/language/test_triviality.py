"""Prompts that are not worth a search, and those that are."""

import pytest

from recollect.language.prompts.triviality import is_trivial


@pytest.mark.parametrize(
    "prompt",
    [
        "ok",
        "OK!",
        "yes please",
        "Yes, do it.",
        "continue",
        "go ahead",
        "thanks",
        "Thank you very much!",
        "run the tests",
        "Run the unit tests again, please",
        "commit and push",
        "fix it",
        "looks good to me",
        "y",
        "1",
        "👍",
        "...",
        "",
        "/clear",
        "/model opus",
        "!git status",
        "ja, mach weiter",
        "oui, merci",
        "да, продолжай",
        "好的，继续",
        "はい、お願いします",
    ],
)
def test_a_prompt_that_says_nothing_is_trivial(prompt: str) -> None:
    assert is_trivial(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "How do we deploy the shop?",
        "deploy to production",
        "ok, but use tabs as we agreed",
        "Which linter do we use?",
        "run the migration tests on Postgres 15",
        "why?",
        "/usr/lib is missing on the build machine",
        "Wie deployen wir?",
        "ok " * 9,
        "これをデプロイする方法は?",
    ],
)
def test_a_prompt_with_something_to_search_by_is_not(prompt: str) -> None:
    assert not is_trivial(prompt)
