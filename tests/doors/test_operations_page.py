"""What docs/operations.md says of errors is what the doors answer."""

import re
from pathlib import Path

from recollect import errors
from recollect.doors.mcp.errors import refusal
from recollect.doors.rest.problems import answer
from recollect.errors import RecollectError

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
ROW = re.compile(r"^\| `(?P<category>\w+)` \| (?P<status>\d+) \| (?P<error>[\w ]+) \|", re.M)


def test_every_category_has_the_status_and_the_error_of_the_page() -> None:
    told = {row["category"]: (int(row["status"]), row["error"]) for row in ROW.finditer(PAGE.read_text())}
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, RecollectError)]
    ours = {kind.__name__: kind("sentence") for kind in kinds if kind is not RecollectError}
    assert told == {name: (answer(failure).status_code, refusal(failure).error) for name, failure in ours.items()}
