"""Programs as users of a framework write them, each run as a process beside a real server, which it must find."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).parent / "programs"
PAGES = Path(__file__).parents[2] / "docs" / "adapters"
PROGRAM_SECONDS = 180


@contextmanager
def serving() -> Iterator[str]:
    """The address of `recollect serve` with a memory of its own."""
    with TemporaryDirectory() as home:
        Path(home).chmod(0o755)
        command = [str(Path(sys.executable).with_name("recollect")), "serve", "--port", "0"]
        env = os.environ | {"RECOLLECT_DATA_DIR": f"{home}/data"}
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                address = next(found for line in server.stdout if (found := re.search(r"http://\S+?:\d+", line)))
                yield address.group()
            finally:
                server.terminate()
                server.stdout.read()


def programs() -> dict[str, str]:
    """The text of every program, and of every page's examples, which are one program from the first to the last."""
    own = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))}
    pages = {f"docs/{path.stem}": path.read_text(encoding="utf-8") for path in sorted(PAGES.glob("*.md"))}
    return own | {
        name: "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)) for name, text in pages.items()
    }


def run(names: list[str]) -> dict[str, subprocess.CompletedProcess[str]]:
    """What each program said; MEMORY_SERVER tells it the server's address, and it ends with 0 if all is well."""
    done = {}
    with serving() as url, TemporaryDirectory() as home:
        Path(home).chmod(0o755)
        for number, name in enumerate(names):
            env = os.environ | {"MEMORY_SERVER": url, "RECOLLECT_DATA_DIR": f"{home}/{number}"}
            done[name] = subprocess.run(
                [sys.executable, "-c", programs()[name]],
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PROGRAM_SECONDS,
                check=False,
            )
    return done
