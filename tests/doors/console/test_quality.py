"""Golden queries, their runs and the judges, as pages."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from recollect.engine import Engine
from recollect.flows.cognitive.golden_test import Entry, GoldenTest, utc_today
from recollect.flows.cognitive.judge import Document
from recollect.settings import Settings
from tests.console_visits import Browser, browsing, token_of
from tests.flows.test_golden_test import SHORT, forget_all
from tests.flows.test_hybrid_search import fill
from tests.flows.test_judge import Provider, court, scoring
from tests.llm_servers import Reply, provider_server

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

PAGE = "/console/quality"


@pytest.fixture
async def browser(engine: Engine) -> AsyncIterator[Browser]:
    async with browsing(engine) as browser:
        yield browser


@pytest.fixture
async def stored(engine: Engine, namespace: str) -> list[int]:
    return await fill(engine, namespace)


def yesterdays(engine: Engine) -> GoldenTest:
    known = engine.capabilities
    parts = (known.golden, known.insights, known.changes, engine.cognition)
    return GoldenTest(engine.database, *parts, today=lambda: utc_today() - timedelta(days=1))


async def test_an_empty_golden_set_says_what_to_do(browser: Browser) -> None:
    page = await browser.text(PAGE)
    assert "Nothing can be measured yet" in page
    assert "Run the test now" not in page
    assert "RECOLLECT_OPENAI_API_KEY and RECOLLECT_ANTHROPIC_API_KEY" in page


async def test_a_query_is_added_and_given_what_search_finds(
    browser: Browser, engine: Engine, namespace: str, stored: list[int]
) -> None:
    answer = await browser.send(PAGE, f"{PAGE}/add", query=SHORT, expect="")
    (added,) = await engine.golden_test.queries(namespace)
    assert answer.headers["location"] == f"{PAGE}/query?id={added.id}&done=added"
    address = f"{PAGE}/query?id={added.id}"
    page = await browser.text(address)
    assert "expects nothing yet" in page
    recall = re.search(r'href="(/console/recall[^"]+)"', page)
    assert recall is not None
    assert f">{SHORT}</textarea>" in await browser.text(recall[1])
    assert f'aria-label="Expect insight {stored[3]}"' in page
    await browser.send(address, f"{PAGE}/expect", id=str(added.id), more=f"insight:{stored[3]}, {stored[0]}")
    await browser.send(address, f"{PAGE}/expect", id=str(added.id), less=str(stored[0]))
    assert (await engine.golden_test.queries(namespace))[0].expected_ids == [stored[3]]
    assert await browser.text(address)
    wrong = await browser.send(address, f"{PAGE}/expect", id=str(added.id), more="999999")
    assert (wrong.status_code, "unknown insight ids: 999999" in wrong.text) == (404, True)
    await browser.send(address, f"{PAGE}/remove", id=str(added.id))
    assert await engine.golden_test.queries(namespace) == []
    assert (await browser.open(address)).status_code == 404


async def test_a_run_that_fell_is_charted_and_names_what_was_missed(
    browser: Browser, engine: Engine, namespace: str, stored: list[int]
) -> None:
    await engine.golden_test.add(namespace, [Entry(SHORT, stored[:2]), Entry("coffee and sleep", stored[2:])])
    await yesterdays(engine).run(namespace)
    await forget_all(engine, namespace, stored[:1])
    answer = await browser.send(PAGE, f"{PAGE}/run")
    assert answer.headers["location"] == f"{PAGE}?done=ran"
    page = await browser.text(f"{PAGE}?done=ran")
    assert "Drift: the last run is more than 5 % below the baseline" in page
    assert '0.300 <span class="quiet">of at most 0.400</span>' in page
    assert f"{utc_today()}: 0.3, below the threshold" in page
    assert page.index(SHORT) < page.index("coffee and sleep")
    assert f'{stored[0]} <span class="badge bad">deleted</span>' in page
    await browser.send(PAGE, f"{PAGE}/run", baseline="new")
    assert "Drift:" not in await browser.text(PAGE)


async def test_the_judges_are_shown_where_they_disagree_and_can_be_accepted(
    browser: Browser, engine: Engine, namespace: str, stored: list[int]
) -> None:
    (added,) = await engine.golden_test.add(namespace, [Entry(SHORT)])
    judges = court(engine, Provider("one", scoring(0.9, 0.9, 0.1)), Provider("two", scoring(0.8, 0.2, 0.1)))
    documents = [Document(each, f"Text {number} about trains") for number, each in enumerate(stored[:3], 1)]
    await judges.evaluate(namespace, added.id, SHORT, documents)
    page = await browser.text(PAGE)
    assert "<dt>Documents both scored</dt><dd>3</dd>" in page
    assert "<dt>Relevant to one judge only</dt><dd>1</dd>" in page
    assert "Reason 2." in page
    assert "Reason 1." not in page
    address = f"{PAGE}/query?id={added.id}"
    assert "Reason 1." in await browser.text(address)
    answer = await browser.send(address, f"{PAGE}/accept", id=str(added.id))
    assert answer.headers["location"].endswith("done=accepted")
    assert (await engine.golden_test.queries(namespace))[0].expected_ids == stored[:1]
    refused = await browser.send(address, f"{PAGE}/judge", id=str(added.id), document=str(stored[0]))
    assert (refused.status_code, "API key is configured" in refused.text) == (500, True)


async def test_both_judges_are_asked_about_what_is_shown(settings: Settings, namespace: str) -> None:
    with provider_server() as provider:
        provider.answer = lambda asked: Reply('{"reason": "As it says.", "score": 0.9}')
        engine = await Engine.open(provider.configure(settings))
        async with browsing(engine) as browser:
            stored = await fill(engine, namespace)
            (added,) = await engine.golden_test.add(namespace, [Entry(SHORT, stored[:1])])
            address = f"{PAGE}/query?id={added.id}"
            documents = set(re.findall(r'name="document" value="(\d+)"', await browser.text(address)))
            assert documents == set(map(str, stored))
            fields = {"id": str(added.id), "document": sorted(documents), "csrf": token_of(await browser.text(address))}
            answer = await browser.http.post(f"{PAGE}/judge", data=fields)
            assert answer.headers["location"].endswith("done=judged")
            page = await browser.text(address)
    assert page.count("As it says.") == 2 * len(stored)


async def test_no_change_is_made_without_the_token_of_the_page(browser: Browser) -> None:
    token_of(await browser.text(PAGE))
    for change in ("add", "expect", "remove", "run", "judge", "accept"):
        assert (await browser.send(PAGE, f"{PAGE}/{change}", "0" * 64, id="1")).status_code == 403
