"""The measures of the tree stay where they are: long functions and large packages do not creep in."""

from pathlib import Path

import recollect
from tests.architecture.measures import measure


def test_the_tree_is_as_clear_as_it_was() -> None:
    found = measure(Path(recollect.__file__).parent)
    assert found.function_lines_median <= 6
    # One story in one function costs a few lines: with every helper that is called once it would be 20.
    assert found.function_lines_p95 <= 24
    assert found.private_functions_used_once_percent <= 12
    assert found.files_over_500_lines == 0
    assert found.broad_excepts_per_thousand_lines <= 0.6
    assert found.import_cycles == 0
    assert found.biggest_flat_package <= 16
