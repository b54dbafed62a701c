"""The reference pages say what the commands and the settings say; `make reference` writes them anew."""

import pytest

from tests.architecture.reference import DOCS, pages


@pytest.mark.parametrize("name", ["cli.md", "settings.md"])
def test_a_reference_page_is_as_the_code_has_it(name: str) -> None:
    assert (DOCS / name).read_text() == pages()[name], "run `make reference`"
