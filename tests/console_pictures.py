"""`python -m tests.console_pictures FOLDER` tells the demo's story to a new server and pictures every page."""

import asyncio
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from recollect import logs
from recollect.engine import Engine
from recollect.settings import Settings
from tests import browsers, console_pages
from tests.browsers import DESKTOP, PHONE, Browser, Colours
from tests.console_story import Told, tell
from tests.rest_servers import serving
from tests.waiting import wait_until

LOOKS: tuple[tuple[int, Colours], ...] = (DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark")

# Those that docs/console.md and the README show.
DOCS = Path(__file__).parents[1] / "docs"
ON_THE_PAGE = {"recall-2-1280-light.png": "console-recall.png", "graph-2-1280-light.png": "console-graph.png"}


async def draw(folder: Path, home: Path, looks: Sequence[tuple[int, Colours]]) -> None:
    """Every page with its examples, in each of some looks."""
    engine = await Engine.open(Settings(data_dir=home, namespace="mira"))
    async with serving(engine) as http:
        told = await tell(engine, http, hostile=False)
        with browsers.chromium() as address:
            async with browsers.connected(address) as browser:
                for width, colours in looks:
                    await look(browser, str(http.base_url), told, folder, width, colours)


async def look(browser: Browser, server: str, told: Told, folder: Path, width: int, colours: Colours) -> None:
    """Once over every page."""
    seen: Counter[str] = Counter()
    async with browser.visit(server, width=width, colours=colours) as page:
        await console_pages.sign_in(page, told.key)
        for address in console_pages.every(told):
            name = urlsplit(address).path.removeprefix("/console").strip("/").replace("/", "-") or "overview"
            seen[name] += 1
            number = f"-{seen[name]}" if seen[name] > 1 else ""
            await page.goto(address)
            picture = folder / f"{name}{number}-{width}-{colours}.png"
            await page.screenshot(path=picture, full_page=True, animations="disabled")


def main() -> None:
    """Into a folder, which is made if there is none."""
    if browsers.CHROMIUM is None:
        sys.exit(browsers.MISSING)
    logs.configure("WARNING", "text")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in [name for name in os.environ if name.startswith("RECOLLECT_")]:
        del os.environ[name]
    with tempfile.TemporaryDirectory(prefix="recollect-pictures-") as home:
        asyncio.run(draw(folder, Path(home), LOOKS[:1] if "--quick" in sys.argv else LOOKS))
        wait_until(lambda: not (Path(home) / "data" / "postmaster.pid").exists(), "the server stops")
    for picture, name in ON_THE_PAGE.items():
        shutil.copy(folder / picture, DOCS / name)
    print(f"{len(list(folder.glob('*.png')))} pictures are in {folder}, and {len(ON_THE_PAGE)} of them in {DOCS}.")


if __name__ == "__main__":
    main()
