"""Lengths of time as one types them, such as 90d."""

import re
from collections.abc import Mapping

from recollect.errors import Invalid

# No letter for minutes: m could as well be months, and more would be deleted than was meant.
UNITS: Mapping[str, int] = {"h": 3600, "d": 86_400, "w": 7 * 86_400}


def seconds(text: str, name: str, units: Mapping[str, int] = UNITS) -> float:
    """How many seconds a number with a unit is; the unit that is empty stands for none."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-z]?)", text.strip().lower(), re.ASCII)
    if found is None or found[2] not in units:
        plain = "a number of seconds, or " if "" in units else ""
        raise Invalid(f"{name} must be {plain}a number of hours, days or weeks such as 12h, 90d or 2w, not {text!r}")
    return float(found[1]) * units[found[2]]
