"""The console, with hostile strings in every field of every form."""

from recollect.engine import Engine
from tests import console_pages
from tests.console_crawl import Crawl
from tests.console_story import tell
from tests.console_visits import another_browser
from tests.rest_servers import serving


async def fed(engine: Engine, strings_per_field: int | None) -> tuple[Crawl, int]:
    """A walk through all pages before and after, and how many forms were sent; None feeds every field all strings."""
    async with serving(engine) as http:
        told = await tell(engine, http, hostile=True)
        async with another_browser(str(http.base_url)) as browser:
            await browser.sign_in(told.key)
            crawl = Crawl(browser.http)
            await crawl.walk(console_pages.every(told))
            sent = await crawl.feed(strings_per_field)
            await crawl.walk(console_pages.every(told))
    return crawl, sent
