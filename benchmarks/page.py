"""The page of all figures: one table, each row with the day of its measuring, and the machine that they are of."""

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import Report

HEAD = """# Benchmarks

Written by `make bench`. Ratios are to a yardstick that ran in the same minutes on the same machine, in turns with ours;
they are the figures to compare between machines. Every part has a database of its own. `make bench` measures all parts,
`.venv/bin/python -m benchmarks NAME` one; rows of the others stay, as long as the machine is the same.

"""
COLUMNS = "| part | what | measured | to reach | day |\n|---|---|---|---|---|\n"


class Row(NamedTuple):
    """One figure."""

    part: str
    what: str
    figure: str
    bar: str
    day: str


def machine(postgres: str, pgvector: str) -> str:
    """What the figures depend on, as a list; nothing that names this very machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"- {_processor()}, {os.cpu_count()} cores, {memory:.0f} GB of memory\n"
        f"- {platform.system()} {platform.release()} {platform.machine()}, Python {platform.python_version()}\n"
        f"- PostgreSQL {postgres}, pgvector {pgvector}\n"
    )


def update(path: Path, of: str, part: str, report: Report, order: Sequence[str]) -> None:
    """Put the figures of a part, measured today on this machine, in place of its old ones: all of them, or nothing."""
    today = datetime.now(UTC).date().isoformat()
    rows = [row for row in kept(path, of) if row.part != part and row.part in order]
    rows += [Row(part, what.strip(), figure, bar, today) for what, figure, bar in report.rows]
    rows.sort(key=lambda row: order.index(row.part))
    _replace(path, f"{HEAD}{of}\n{COLUMNS}" + "".join(map(_line, rows)))


def kept(path: Path, of: str) -> list[Row]:
    """The rows of the page, if they are of this machine; figures of two machines in one table would mislead."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if f"\n{of}\n{COLUMNS}" not in text:
        return []
    return [_row(line) for line in text.partition(COLUMNS)[2].splitlines()]


def _line(row: Row) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n"


def _row(line: str) -> Row:
    cells = re.split(r"(?<!\\)\|", line)[1:-1]
    return Row(*(cell.strip().replace("\\|", "|") for cell in cells))


def _processor() -> str:
    """Linux and macOS say it in different places."""
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.M) if cpuinfo.exists() else None
    if found:
        return found[1]
    if platform.system() == "Darwin":
        return subprocess.check_output(["sysctl", "-n", "machdep.cpu.brand_string"], text=True).strip()
    return platform.processor() or platform.machine()


def _replace(path: Path, text: str) -> None:
    new = path.with_name(f".{path.name}-{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
