"""What docs/operations.md says of errors is what the doors answer."""

import re
from pathlib import Path

from recollect.doors.mcp.errors import refusal
from recollect.doors.rest.problems import answer
from recollect.errors import RecollectError

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
ROW = re.compile(r"^\| `(?P<category>\w+)` \| (?P<status>\d+) \| (?P<error>[\w ]+) \|", re.M)


def test_every_category_has_the_status_and_the_error_of_the_page() -> None:
    told = {row["category"]: (int(row["status"]), row["error"]) for row in ROW.finditer(PAGE.read_text())}
    categories = {
        kind.__name__: kind("sentence")
        for kind in RecollectError.__subclasses__()
        if kind.__module__ == RecollectError.__module__
    }
    ours = {name: failure for name, failure in categories.items() if type(failure).__module__ == "recollect.errors"}
    assert told == {name: (answer(failure).status_code, refusal(failure).error) for name, failure in ours.items()}
