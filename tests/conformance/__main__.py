"""`make conformance`: run the official MCP conformance suite, for each revision of the specification that we speak.

The whole suite runs against our server with the suite's fixtures added (server.py); the scenarios that need no fixture
run once more against `recollect serve` itself, where they see our own tools and resources, and so do those for
authorization servers (authorization.py).
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import wait_until

HERE = Path(__file__).parent
INSTALLED = HERE.parents[1] / ".tools" / "conformance"
SUITE = INSTALLED / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
BIN = Path(sys.executable).parent

# What each revision asks of any server, whatever its tools.
OF_ANY_SERVER = {
    "2026-07-28": (
        "tools-list",
        "resources-list",
        "prompts-list",
        "sep-2164-resource-not-found",
        "caching",
        "http-header-validation",
        "input-required-result-unsupported-methods",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
    ),
    "2025-11-25": (
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    ),
}


def install() -> None:
    """The suite as package-lock.json pins it, again only when that file changes."""
    INSTALLED.mkdir(parents=True, exist_ok=True)
    lock = INSTALLED / "package-lock.json"
    if SUITE.exists() and lock.read_bytes() == (HERE / lock.name).read_bytes():
        return
    for name in ("package.json", lock.name):
        shutil.copy(HERE / name, INSTALLED)
    npm(INSTALLED, "ci")


def npm(folder: Path, *arguments: str) -> None:
    """The npm of the wheel, with the node beside it."""
    command = [str(BIN / "npm"), *arguments, "--no-audit", "--no-fund", "--loglevel=error"]
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(command, cwd=folder, check=True, env=os.environ | {"PATH": path})


def log_of(home: Path) -> Path:
    """Beside the database's home, which must hold nothing else."""
    return home.with_suffix(".log")


@contextmanager
def serving(command: Sequence[str], home: Path, **settings: str) -> Iterator[str]:
    """The address of an MCP server, which it prints when it is ready."""
    environment = os.environ | {"RECOLLECT_DATA_DIR": str(home)} | settings
    with (
        log_of(home).open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as server,
    ):
        assert server.stdout is not None
        try:
            addresses = (found[0] for line in server.stdout if (found := re.search(r"http://\S+/mcp", line)))
            address = next(addresses, None)
            assert address, log_of(home).read_text()
            yield address
        finally:
            server.send_signal(signal.SIGINT)


def passes(url: str, revision: str, *selection: str) -> bool:
    """Run scenarios and print how many checks each passed; if one fails, print every check."""
    command = [str(BIN / "node"), str(SUITE), "server", "--url", url, "--spec-version", revision, *selection]
    run = subprocess.run(command, capture_output=True, text=True)
    output = plain(run.stdout + run.stderr)
    print(output if run.returncode else summary(output), flush=True)
    return run.returncode == 0


def plain(output: str) -> str:
    """Without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", output)


def summary(output: str) -> str:
    _, _, summary = output.partition("=== SUMMARY ===")
    return summary.strip() or next(line for line in output.splitlines() if line.startswith("Passed"))


def conforms(revision: str, home: Path) -> bool:
    print(f"\n== {revision}, the whole suite, with its fixtures ==", flush=True)
    with serving([sys.executable, "-m", "tests.conformance.server", revision], home) as url:
        whole = passes(url, revision, "--suite", "all")
    print(f"\n== {revision}, `recollect serve` with our own tools and resources ==", flush=True)
    with serving([str(BIN / "recollect"), "serve", "--port", "0"], home) as url:
        verdicts = []
        for scenario in OF_ANY_SERVER[revision]:
            print(f"{scenario}: ", end="", flush=True)
            verdicts.append(passes(url, revision, "--scenario", scenario))
    return whole and all(verdicts)


def remove(home: Path) -> None:
    wait_until(lambda: not (home / "data" / "postmaster.pid").exists(), "the database stops")
    shutil.rmtree(home)
    log_of(home).unlink()


def main() -> int:
    from tests.conformance.authorization import authorizes

    install()
    home = Path(tempfile.mkdtemp(prefix="recollect-conformance-"))
    verdicts = {revision: conforms(revision, home) for revision in OF_ANY_SERVER}
    verdicts["authorization"] = authorizes(home)
    if all(verdicts.values()):
        remove(home)
    else:
        print(f"The last server's log is {log_of(home)}")
    for what, verdict in verdicts.items():
        print(f"{what}: {'conforms' if verdict else 'DOES NOT CONFORM'}")
    return 0 if all(verdicts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
