"""The page of a question: its form, its answer and why, comparisons, and calls to paste."""

import asyncio
import html
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from mcp import Client
from playwright.async_api import Route

from recollect.doors.console.recalls import answer
from recollect.doors.mcp.server import RecollectServer
from recollect.engine import Engine
from recollect.flows.long_term.memory_requests import Change, Options
from recollect.flows.search.recollection import BEYOND
from recollect.memory.memories import MemoryScope
from recollect.origin import Limits
from recollect.settings import Settings
from recollect.storage.sql import Query
from tests import browsers
from tests.console_visits import Browser, browsing
from tests.flows.talk import say_all
from tests.rest_servers import listening

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

QUESTION = "Where is the spare key?"
SAID = (
    "The spare key is under the blue flowerpot.",
    "We painted the fence green.",
    "My neighbour keeps a key for us.",
    "I had soup for lunch.",
    "<script>alert('key')</script> \u202eyek",
    "The train leaves at nine.",
)
# Everything that a shell, a program or JSON could stumble over.
AWKWARD = 'Ann\'s "key" $(reboot) `x` \\ \u202e\u034f é 钥匙\nunder {pot}?'

YESTERDAY = Query.named(
    "test.console.yesterday", "update changes set at = at - interval '1 day' where namespace = :namespace"
)


@pytest.fixture
async def visitor(engine: Engine, namespace: str) -> AsyncIterator[Browser]:
    await say_all(engine, namespace, "ann", *SAID)
    await engine.indexer.flush(namespace)
    async with browsing(engine) as visitor:
        yield visitor


def page_of(path: str = "/console/recall", **parameters: object) -> str:
    return f"{path}?{urlencode(parameters, doseq=True)}"


def results(page: str) -> list[tuple[int, str]]:
    """The rank of each result and its text, as it is read."""
    found = re.findall(r'<strong class="rank">(\d+)</strong>.*?<p class="text">(.*?)</p>', page, re.S)
    return [(int(rank), html.unescape(re.sub(r"<[^>]+>", "", text))) for rank, text in found]


def pasted(page: str, name: str, number: int = 1) -> str:
    """What the button beside a call copies."""
    found = re.search(rf'<pre id="{name}-{number}" class="text">(.*?)</pre>', page, re.S)
    assert found is not None
    assert "unseen" not in found[1], "what is written out is not what was asked"
    return html.unescape(found[1])


async def arguments_of(command: str) -> list[str]:
    """What a shell makes of a command for curl: options, the address, the body, and the headers."""
    script = f"curl() {{ printf '%s\\0' \"$@\"; }}\n{command}"
    ran = await asyncio.to_thread(subprocess.run, ["sh", "-c", script], capture_output=True, check=True)
    options, url, *others = ran.stdout.decode().split("\0")[:-1]
    given = list(zip(others[::2], others[1::2], strict=True))
    (body,) = [value for name, value in given if name == "-d"]
    return [options, url, body, *(value for name, value in given if name == "-H")]


async def test_an_empty_form_says_what_to_do(engine: Engine) -> None:
    async with browsing(engine) as visitor:
        page = await visitor.text("/console/recall")
    assert "Ask as your agent would" in page
    assert "Nothing has been stored in this namespace yet" in page


async def test_an_answer_tells_why(visitor: Browser) -> None:
    page = await visitor.text(page_of(query=QUESTION))
    assert results(page)[0] == (1, SAID[0])
    assert "The <mark>spare</mark> <mark>key</mark> is under the blue flowerpot." in page
    assert re.search(r'aria-label="Score [\d.]+: meaning \+[\d.]+, words \+[\d.]+', page)
    assert re.search(r"/console/session\?id=talk&amp;at=[0-9a-f-]{36}", page)
    assert "by words <b>no. 1</b>" in page
    assert "by meaning <b>no. 1</b>" in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(&#39;<mark>key</mark>&#39;)" in page
    assert "\u202e" not in page


async def test_the_page_shows_the_answer_of_the_api_and_what_it_leaves_out(visitor: Browser) -> None:
    asked: list[dict[str, Any]] = [
        {"top_k": 1},
        {"top_k": 3, "min_relevance": 0.2},
        {"min_relevance": "default", "token_budget": 15},
        {"min_relevance": 1.0},
    ]
    for filters in asked:
        page = await visitor.text(page_of(query=QUESTION, user_id="ann", **filters))
        body = {"query": QUESTION, "user_id": "ann"} | filters
        found = (await visitor.http.post("/recall", json=body)).json()
        shown, _, left_out = page.partition("<h3>Left out</h3>")
        # Invisible characters are written out.
        texts = [memory["text"].replace("\u202e", "U+202E") for memory in found["memories"]]
        assert [text for _, text in results(shown)] == texts, filters
        ranks = sorted(rank for rank, _ in results(page))
        assert ranks == list(range(1, min(filters.get("top_k", 10) + BEYOND, len(SAID)) + 1))
        assert len(results(left_out)) == len(ranks) - len(texts)
        assert ("answers this question" in page) == found["answered"]
    page = await visitor.text(page_of(query=QUESTION, top_k=2, min_relevance=0.99))
    assert (page.count("below the floor"), page.count("beyond the limit of 2")) == (len(SAID), 0)
    page = await visitor.text(page_of(query=QUESTION, top_k=2))
    assert (page.count("below the floor"), page.count("beyond the limit of 2")) == (0, len(SAID) - 2)


async def test_what_is_wrong_stands_beside_the_form_which_stays_filled(visitor: Browser) -> None:
    wrong = {
        "metadata": ("{broken", "metadata must be a JSON object"),
        "as_of": ("2999-01-01T00:00:00", "is in the future"),
        "since": ("<b>soon", "since must be a date and time"),
        "kinds": ("dreams", "kind must be one of"),
        "min_relevance": ("2", "min_relevance must be a number between 0 and 1"),
        "top_k": ("1001", "(top_k) must be"),
        "half_life_days": ("long", "half_life_days must be a number of days"),
        "token_budget": ("0", "“Token budget” must be"),
        "include_pinned": ("1", "user_id, agent_id, or session_id"),
    }
    for name, (value, sentence) in wrong.items():
        answered = await visitor.open(page_of(query=QUESTION, **{name: value}))
        assert (answered.status_code, 'role="alert"' in answered.text) == (422, True), name
        assert sentence in html.unescape(answered.text), name
        assert f">{QUESTION}</textarea>" in answered.text
        assert name in ("kinds", "include_pinned") or f'value="{html.escape(value)}"' in answered.text, name
    assert " checked> document</label>" in (await visitor.text(page_of(query=QUESTION, kinds=["document", "memory"])))


async def test_every_filter_reaches_the_engine(visitor: Browser, engine: Engine, namespace: str) -> None:
    options = Options(pinned=True)
    text = "The spare key of the shed is with Carla."
    await engine.memories.add(
        namespace, text, "fact", MemoryScope("ann", "helper", "s"), metadata={"place": "shed"}, options=options
    )
    everything = {
        "user_id": "ann",
        "agent_id": "helper",
        "session_id": "s",
        "exclude_session": "talk",
        "kinds": "memory",
        "categories": "fact",
        "since": "2020-01-01",
        "until": "2999-01-01",
        "as_of": (datetime.now(UTC) + timedelta(seconds=1)).isoformat(),
        "valid_at": "2025-01-01T00:00",
        "now": "2026-02-14T12:00:00+01:00",
        "metadata": '{"place": "shed"}',
        "half_life_days": "30",
        "include_pinned": "1",
        "token_budget": "500",
    }
    page = await visitor.text(page_of(query=QUESTION, **everything))
    assert [found for _, found in results(page)] == [text]
    assert "Pinned beside the results" in page
    assert page.count("shed is with Carla.") == 2
    assert "(12 set)" in page
    for name, other in {"agent_id": "x", "categories": "preference", "metadata": '{"a": 1}', "roles": "user"}.items():
        assert results(await visitor.text(page_of(query=QUESTION, **everything | {name: other}))) == [], name


async def test_two_questions_or_two_times_stand_beside_each_other(
    visitor: Browser, engine: Engine, namespace: str
) -> None:
    page = await visitor.text(page_of(query="spare key", other_query="neighbour", top_k=2))
    first, second = page.split('id="side-2"')
    assert results(first)[0][1] == SAID[0]
    assert results(second)[0][1] == SAID[2]
    assert "1 higher than there" in second
    assert "1 lower than there" in first
    before = datetime.now(UTC).isoformat()
    await say_all(engine, namespace, "ann", "The spare key hangs in the hall now.")
    page = await visitor.text(page_of(query=QUESTION, as_of=before, compare=1))
    first, second = page.split('id="side-2"')
    assert "hangs in the hall" not in first
    assert re.search(r"only here</span>.*hangs in the hall", re.sub(r"</?mark>", "", second), re.S)
    added = await engine.memories.add(namespace, "The spare key is with Carla.", "fact", MemoryScope("ann"))
    then = added.memory.since.isoformat()
    await engine.memories.update(namespace, str(added.memory.id), Change("The spare key is with Dora."))
    page = await visitor.text(page_of(query=QUESTION, kinds="memory", as_of=then, compare=1))
    assert page.count("same place, says something else there") == 2
    assert "Both sides ask the same" in await visitor.text(page_of(query=QUESTION, compare=1))


async def test_calls_ask_exactly_the_same_at_every_door(visitor: Browser, engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "The key is under the pot of Ann. é 钥匙", session="other")
    await engine.indexer.flush(namespace)
    filters = {
        "query": AWKWARD,
        "user_id": "ann",
        "roles": "user",
        "kinds": "message",
        "since": "2020-01-01T00:00:00",
        "min_relevance": "0.0",
        "top_k": "3",
    }
    page = await visitor.text(page_of(**filters))
    texts = [text.replace("U+202E", "\u202e") for _, text in results(page.partition("Left out")[0])]
    assert len(texts) == 3
    options, url, sent, *headers = await arguments_of(pasted(page, "curl"))
    assert (options, headers, json.loads(sent)["query"]) == ("-sS", ["Content-Type: application/json"], AWKWARD)
    found = (await visitor.http.post(url, content=sent, headers={"Content-Type": "application/json"})).json()
    assert [memory["text"] for memory in found["memories"]] == texts
    program = pasted(page, "python")
    running = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True)
    assert (running.returncode, running.stderr) == (0, "")
    assert [line[6:] for line in running.stdout.splitlines()] == texts
    call = json.loads(pasted(page, "mcp"))
    assert (call["method"], call["params"]["arguments"]["query"]) == ("tools/call", AWKWARD)
    async with Client(RecollectServer(engine)) as mcp:
        result = await mcp.call_tool(call["params"]["name"], call["params"]["arguments"])
        assert result.structured_content is not None
        assert [memory["text"] for memory in result.structured_content["memories"]] == texts


async def test_a_call_goes_to_the_public_address(settings: Settings, namespace: str) -> None:
    engine = await Engine.open(settings.model_copy(update={"public_url": "https://memory.example.org"}))
    try:
        await say_all(engine, namespace, "ann", *SAID)
        key = await engine.access.create_key(namespace)
        async with browsing(engine) as visitor:
            await visitor.sign_in(key.secret)
            page = await visitor.text(page_of(query=QUESTION))
            assert (await arguments_of(pasted(page, "curl")))[1] == "https://memory.example.org/recall"
    finally:
        await engine.close()


async def test_a_key_is_read_from_a_variable_and_what_mcp_lacks_is_told(
    visitor: Browser, engine: Engine, namespace: str
) -> None:
    key = await engine.access.create_key(namespace, "support desk")
    await visitor.sign_in(key.secret)
    page = await visitor.text(page_of(query=QUESTION, min_relevance="default", half_life_days=3, now="2026-01-01"))
    assert '-H "Authorization: Bearer $KEY"' in pasted(page, "curl")
    assert key.secret not in page
    assert "does not take the relevance floor “default” (it takes numbers), now, half_life_days" in page
    async with Client(RecollectServer(engine)) as mcp:
        result = await mcp.call_tool("recall", json.loads(pasted(page, "mcp"))["params"]["arguments"])
    assert not result.is_error


async def test_a_large_answer_is_still_a_small_page(visitor: Browser, engine: Engine, namespace: str) -> None:
    texts = [
        f"{number} spare keys. " + "The spare key is in the café under a flowerpot. " * 19 for number in range(120)
    ]
    await say_all(engine, namespace, "bob", *texts, session="long")
    page = await visitor.open(page_of(query=QUESTION, user_id="bob", top_k=100))
    assert len(page.content) < 150_000
    assert len(results(page.text)) == answer.MOST_SHOWN
    assert f"The first {answer.MOST_SHOWN} are drawn here" in page.text
    both = await visitor.open(page_of(query=QUESTION, user_id="bob", top_k=100, other_query="flowerpot"))
    assert len(both.content) < 150_000


@pytest.mark.unindexed("it counts what waits")
async def test_what_is_not_embedded_yet_is_told(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", *SAID)
    async with browsing(engine) as visitor:
        assert f"{len(SAID)} passages wait to be embedded" in await visitor.text(page_of(query=QUESTION))


async def test_another_namespace_is_not_asked(visitor: Browser, engine: Engine, namespace: str) -> None:
    await say_all(engine, f"{namespace}-other", "eve", "The spare key of others is secret.")
    assert "of others" not in await visitor.text(page_of(query=QUESTION))
    assert "of others" not in await visitor.text(page_of("/console/recall/answer", query=QUESTION))


async def test_with_a_key_of_one_user_everybody_else_is_left_out(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", *SAID)
    await say_all(engine, namespace, "bob", "The spare key of Bob is at work.", session="of bob")
    key = await engine.access.create_key(namespace, limits=Limits(user="bob"))
    async with browsing(engine) as visitor:
        await visitor.sign_in(key.secret)
        page = await visitor.text(page_of(query=QUESTION))
        assert [text for _, text in results(page)] == ["The spare key of Bob is at work."]
        assert "user_id=&#39;bob&#39;" in page.partition('id="python-1"')[2].partition("</pre>")[0]
        assert "to the key that you signed in with" in page
        assert (await visitor.open(page_of(query=QUESTION, user_id="ann"))).status_code == 403
        assert (await visitor.open("/console/watch")).status_code == 403


async def test_the_slider_asks_again_without_reloading(
    engine: Engine, namespace: str, browser: browsers.Browser
) -> None:
    await say_all(engine, namespace, "ann", *SAID)
    async with engine.database.transaction(namespace) as tx:
        await tx.all(YESTERDAY)
    async with listening(engine) as url, browser.visit(url) as page:
        await page.goto(page_of(query=QUESTION))
        await page.evaluate("window.stayed = true")
        first = page.locator(".result").first
        assert await first.locator("mark").count() == 2
        await page.get_by_label("Move through time").focus()
        await page.keyboard.press("Home")
        await page.locator("#answer").get_by_text("No results.").wait_for()
        assert "as_of=" in page.url
        assert await page.get_by_label("As it was at").first.input_value() != ""
        assert "No results" in str(await page.locator("#told").text_content())
        await page.keyboard.press("End")
        await first.wait_for()
        assert "as_of=" not in page.url
        await page.get_by_text("Copy as curl").click()
        await page.get_by_role("button", name="Copy curl").wait_for()
        assert await page.evaluate("window.stayed")
        # Enter asks, as in a chat, and what is not set is not in the address.
        await page.get_by_label("Question", exact=True).fill("fence")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/console/recall?query=fence&top_k=10")


async def test_a_refusal_takes_the_place_of_the_answer_as_a_sentence(
    settings: Settings, namespace: str, browser: browsers.Browser
) -> None:
    engine = await Engine.open(settings.model_copy(update={"rate_limit_per_minute": 1}))
    try:
        await say_all(engine, namespace, "ann", *SAID)
        async with listening(engine) as url, browser.visit(url, complaints=["429"]) as page:
            await page.goto(page_of(query=QUESTION))
            await page.get_by_label("Move through time").focus()
            await page.keyboard.press("Home")
            await page.locator("#answer .fault", has_text="requests per minute are allowed").wait_for()
            assert await page.locator("main, nav, h1, .result").count() == 3, "those of the page itself"
            assert await page.locator("#answer").get_attribute("aria-busy") is None
    finally:
        await engine.close()


async def test_a_question_that_is_given_up_keeps_nobody_waiting(
    engine: Engine, namespace: str, browser: browsers.Browser
) -> None:
    await say_all(engine, namespace, "ann", *SAID)
    async with listening(engine) as url, browser.visit(url) as page:
        await page.goto(page_of(query=QUESTION))
        asked: list[Route] = []
        await page.route("**/recall/answer?*", lambda route: asked.append(route))
        async with page.expect_request("**/recall/answer?*"):
            await page.get_by_label("Move through time").focus()
            await page.keyboard.press("Home")
        await page.locator("#answer[aria-busy]").wait_for()
        await page.get_by_label("Question", exact=True).fill("")
        await page.get_by_label("Move through time").focus()
        await page.keyboard.press("End")
        await page.locator("#answer:not([aria-busy])").wait_for()
        assert await page.locator(".result").count() > 0


async def test_a_key_asks_what_it_may_read_together_and_links_only_to_its_own(
    visitor: Browser, engine: Engine, namespace: str
) -> None:
    team = f"{namespace}-team"
    await say_all(engine, team, "ann", "The spare key of the office is at the desk.")
    key = await engine.access.create_key(namespace, role="read")
    await visitor.sign_in(key.secret)
    assert "searched together" not in await visitor.text(page_of(query=QUESTION))
    await engine.grants.grant(team, namespace, key.id)
    page = await visitor.text(page_of(query=QUESTION, namespaces=[namespace, team]))
    assert f'name="namespaces" value="{team}" checked' in page
    assert f"in {namespace}</span>" in page
    theirs = next(each for each in page.split("<li") if f"in {team}</span>" in each)
    assert "at the desk" in theirs
    assert "<a " not in theirs
    assert f"namespaces=[{namespace!r}, {team!r}]" in html.unescape(page)
    refused = await visitor.open(page_of(query=QUESTION, namespaces=f"{namespace}-else"))
    assert refused.status_code == 403
    assert "is not open to this key" in refused.text


@pytest.mark.parametrize("edge", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59Z"])
async def test_times_at_the_edge_of_the_calendar_are_no_fault(engine: Engine, edge: str) -> None:
    added = await engine.memories.add(engine.settings.namespace, "Anna has a cat.", "fact", MemoryScope(user_id="anna"))
    async with browsing(engine) as browser:
        for page, names in (
            ("/console/recall?query=cat", ("since", "until", "as_of", "valid_at", "now", "other_as_of")),
            ("/console/memories?q=", ("since", "until", "as_of", "valid_at")),
            ("/console/memories?q=cat", ("since", "until", "as_of", "valid_at")),
            (f"/console/memories/{added.memory.id}?x=", ("as_of",)),
            ("/console/sessions?q=", ("as_of",)),
            ("/console/graph?x=", ("as_of",)),
        ):
            for name in names:
                answer = await browser.open(f"{page}&{urlencode({name: edge})}")
                assert answer.status_code in (200, 404, 422), f"{page} {name}: {answer.status_code}"


async def test_a_past_answer_says_what_is_missing_from_it(visitor: Browser) -> None:
    sentence = "deleted, forgotten or has expired since is missing"
    assert sentence in await visitor.text(page_of(query=QUESTION, as_of="2020-01-01"))
    assert sentence not in await visitor.text(page_of(query=QUESTION))


async def test_only_a_floor_that_is_no_number_is_left_out_of_the_mcp_call(visitor: Browser) -> None:
    page = await visitor.text(page_of(query=QUESTION, min_relevance="0.3"))
    assert ("&#34;min_relevance&#34;: 0.3" in page, "The MCP tool does not take" in page) == (True, False)
    page = await visitor.text(page_of(query=QUESTION, min_relevance="default"))
    assert "does not take the relevance floor “default” (it takes numbers)" in page


async def test_a_question_that_no_address_has_room_for_is_not_cut_and_not_sent(
    engine: Engine, namespace: str, browser: browsers.Browser
) -> None:
    async with listening(engine) as url, browser.visit(url) as page:
        await page.goto("/console/recall")
        field = page.get_by_label("Question", exact=True)
        for long in ("word " * 7_200, "Ж" * 4_500):
            await field.fill(long)
            await page.get_by_role("button", name="Ask").click()
            assert "too long for an address" in await field.evaluate("field => field.validationMessage")
            assert await field.input_value() == long
        await field.fill("Where is the key?")
        await page.get_by_role("button", name="Ask").click()
        await page.wait_for_url("**/console/recall?query=*")


async def test_without_a_script_the_server_says_that_a_question_is_too_long(
    engine: Engine, namespace: str, browser: browsers.Browser
) -> None:
    async with listening(engine) as url, browser.visit(url, javascript=False, complaints=["431"]) as page:
        await page.goto("/console/recall")
        await page.get_by_label("Question", exact=True).fill("Ж" * 6_500)
        await page.get_by_role("button", name="Ask").click()
        await page.get_by_text("go back and shorten it").wait_for()
        assert await page.get_by_role("heading", name="Too long").is_visible()


async def test_a_filter_by_another_name_is_refused_and_not_ignored(visitor: Browser) -> None:
    for address in (
        page_of(query=QUESTION, user="zzz"),
        "/console/memories?user_id=zzz",
        "/console/sessions?users=zzz",
    ):
        answer = await visitor.open(address)
        assert (answer.status_code, "This page has no parameter user" in answer.text) == (422, True), address
        assert "Did you mean user" in answer.text
        assert "flowerpot" not in answer.text


async def test_a_number_is_called_as_its_field(visitor: Browser) -> None:
    assert "“At most” (top_k) must be a whole number" in (await visitor.open(page_of(query="key", top_k="x"))).text
