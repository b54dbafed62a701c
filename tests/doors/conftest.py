"""A browser for the tests of pages."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests import browsers


@pytest.fixture(scope="session")
def chromium() -> Iterator[str]:
    with browsers.chromium() as address:
        yield address


@pytest.fixture
async def browser(chromium: str) -> AsyncIterator[browsers.Browser]:
    async with browsers.connected(chromium) as browser:
        yield browser
