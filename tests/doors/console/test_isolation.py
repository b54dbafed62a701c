"""Two keys of two namespaces: nothing of one is in any page of the other, and a reader's forms are refused."""

from dataclasses import replace
from typing import Literal

import pytest

from recollect.doors.console import cookies
from recollect.doors.console.site import ROUTES
from recollect.engine import Engine
from recollect.origin import Limits, Role
from tests import console_pages
from tests.console_crawl import LEFT_OUT, Crawl, Form, Seen
from tests.console_story import Told, tell
from tests.console_visits import Browser, another_browser, token_of
from tests.rest_servers import serving
from tests.stored_rows import stored_rows

# Words that only the story has.
WORDS = ("peanut", "Mira", "Bergen", "Nora", "Harbour Choir", "the lease", "monday")

# Of a form that is not for a key with limits, or names nothing that it sees.
REFUSED = (403, 404, 409, 422)

# What somebody types into the fields that a form shows empty, so that nothing but the missing role refuses it.
TYPED = {
    "baseline": "",
    "category": "fact",
    "format": "markdown",
    "label": "Person",
    "max_messages": "5",
    "metadata": "{}",
    "model": "recollect",
    "more": "insight:1",
    "name": "Anna",
    "query": "Where does Anna live?",
    "relation": "KNOWS",
    "role": "read",
    "source": "Anna",
    "strategy": "sliding_window",
    "target": "Ben",
    "text": "Anna lives in Rome.",
    "title": "Another title",
    "user_id": "new-user",
}
PER_FORM = {
    "/console/jobs/prune": {"really": "yes"},  # else it only counts
    "/console/memory/expiry": {"days": "5"},
    "/console/quality/expect": {"more": "3"},
    "/console/quality/add": {"expect": ""},
}


@pytest.fixture
def pooling() -> Literal["session"]:
    """Pages do not depend on it."""
    return "session"


async def leaks(browser: Browser, told: Told) -> list[str]:
    """Addresses that show somebody what is not for them."""
    found: list[str] = []
    for address in console_pages.everything(told):
        answer = await browser.open(address)
        assert answer.status_code < 500, address
        # What the address itself says may be repeated.
        said = answer.text if answer.status_code == 200 else ""
        found += [f"{word} in {address}" for word in WORDS if word in said and word not in address]
    return found


async def test_nothing_of_one_namespace_is_in_a_page_of_another(engine: Engine, namespace: str) -> None:
    async with serving(engine) as http:
        told = await tell(engine, http, hostile=False)
        assert console_pages.addresses(told).keys() == console_pages.routes()
        assert console_pages.loaded(told).keys() == console_pages.LOADED - console_pages.UNASKED
        key = await engine.access.create_key(f"{namespace}-other", "stranger")
        # A grant opens what is asked of a namespace by its name, and nothing else.
        await engine.grants.grant(namespace, f"{namespace}-other", key.id)
        async with another_browser(str(http.base_url)) as stranger:
            await stranger.sign_in(key.secret)
            assert not await leaks(stranger, told)
            crawl = Crawl(stranger.http)
            await crawl.walk(console_pages.every(told))
            await change_everything(told, crawl)
        async with another_browser(str(http.base_url)) as owner:
            await owner.sign_in(told.key)
            assert await leaks(owner, told)
            assert "Mira lives in Bergen." in await owner.text(f"/console/memory?id={told.memory}")
            assert "stranger" not in await owner.text("/console/watch")


async def change_everything(told: Told, crawl: Crawl) -> None:
    """Every form that the stranger sees, with the ids of the other's items in its fields."""
    ids = ("memory", "session", "message", "superseded")
    for form in [each for each in crawl.forms.values() if each.method == "POST"]:
        for name in form.fields:
            if name != cookies.FIELD:
                for each in ids:
                    await crawl.send(form, {**form.fields, name: getattr(told, each)})
    assert not crawl.faults, "\n".join(crawl.faults[:5])


def filled(form: Form) -> Form:
    """A form with something in each field that it shows empty."""
    path = form.name[1]
    fields = {name: value or TYPED.get(name, "") for name, value in form.fields.items()}
    return replace(form, fields=fields | PER_FORM.get(path, {}))


async def sent(browser: Browser, form: Form, token: str) -> int:
    """The status with which a form of this browser is answered."""
    fields = form.fields | {cookies.FIELD: token}
    files = {"file": ("notes.md", b"# Notes")} if form.is_upload else None
    return (await browser.http.post(form.name[1], data=fields, files=files)).status_code


async def test_a_reader_can_change_nothing(engine: Engine, namespace: str) -> None:
    async with serving(engine) as http:
        told = await tell(engine, http, hostile=False)
        reader = await engine.access.create_key(namespace, "auditor", role="read")
        async with (
            another_browser(str(http.base_url)) as editor,
            another_browser(str(http.base_url)) as browser,
        ):
            await editor.sign_in(told.key)
            crawl = Crawl(editor.http)
            await crawl.walk(console_pages.every(told))
            await browser.sign_in(reader.secret)
            before = await engine.feed.last(namespace)
            token = token_of(await browser.text("/console"))
            changes = [form for form in crawl.forms.values() if form.method == "POST"]
            assert {("POST", form.name[1]) for form in changes} <= {("POST", route.path) for route in ROUTES}
            assert len(changes) > 10
            for form in changes:
                status = await sent(browser, filled(form), token)
                assert status == 403, f"{form.name}: {status}"
            assert await engine.feed.last(namespace) == before
            for address in console_pages.every(told):
                forms = Seen((await browser.open(address)).text).forms
                kept = {form.name[1] for form in forms if form.method == "POST"} - LEFT_OUT
                assert not kept, f"{address} shows a reader forms that are refused: {kept}"


# Where each form leads, and who may send it.
FORMS: dict[str, Role] = {
    "/console/access/keys": "admin",
    "/console/access/rotate": "admin",
    "/console/access/users": "admin",
    "/console/access/revoke": "admin",
    "/console/access/disconnect": "admin",
    "/console/access/quota": "admin",
    "/console/access/ungrant": "admin",
    "/console/forget": "admin",
    "/console/graph/add-node": "write",
    "/console/graph/add-relation": "write",
    "/console/graph/delete-relation": "admin",
    "/console/jobs/embed": "write",
    "/console/jobs/import": "write",
    "/console/jobs/prune": "admin",
    "/console/jobs/stop": "write",
    "/console/jobs/switch": "admin",
    "/console/memories": "write",
    "/console/memory/delete": "admin",
    "/console/memory/edit": "write",
    "/console/memory/expiry": "write",
    "/console/memory/pin": "write",
    "/console/memory/undo": "write",
    "/console/quality/accept": "write",
    "/console/quality/add": "write",
    "/console/quality/expect": "write",
    "/console/quality/judge": "write",
    "/console/quality/remove": "admin",
    "/console/quality/run": "write",
    "/console/review/release": "admin",
    "/console/session/rename": "write",
    "/console/session/window": "write",
}


async def test_no_key_sees_or_changes_more_than_it_may(engine: Engine, namespace: str) -> None:
    async with serving(engine) as http:
        told = await tell(engine, http, hostile=False)
        keys = {
            "of another user": await engine.access.create_key(namespace, "anna", limits=Limits("anna")),
            "of another agent": await engine.access.create_key(namespace, "anna", limits=Limits(None, "anna")),
            "to write": await engine.access.create_key(namespace, "anna", "write"),
        }
        async with another_browser(str(http.base_url)) as editor:
            await editor.sign_in(told.key)
            crawl = Crawl(editor.http)
            await crawl.walk(console_pages.every(told))
        forms = [form for form in crawl.forms.values() if form.method == "POST"]
        # Those that the story has no use for.
        forms += [
            Form("POST", "/console/jobs/embed"),
            Form("POST", "/console/jobs/stop", {"id": told.jobs[0]}),
            Form(
                "POST", "/console/access/ungrant", {"key_namespace": f"{namespace}-other", "id": "1", "really": "yes"}
            ),
            Form("POST", "/console/quality/judge", {"id": str(told.query)}),
            Form("POST", "/console/review/release", {"item": f"memory:{told.memory}"}),
        ]
        posts = {route.path for route in ROUTES if "POST" in (route.methods or ())} - LEFT_OUT
        assert FORMS.keys() == posts == {form.name[1] for form in forms}
        before = await stored_rows(engine, namespace, "anna")
        for whose, key in keys.items():
            async with another_browser(str(http.base_url)) as browser:
                await browser.sign_in(key.secret)
                token = token_of((await browser.open("/console")).text)
                if whose != "to write":
                    assert not await leaks(browser, told), whose
                for form in map(filled, forms):
                    path = form.name[1]
                    if whose == "to write" and FORMS[path] != "admin":
                        continue
                    status = await sent(browser, form, token)
                    usual = (403,) if whose == "to write" else REFUSED if FORMS[path] == "admin" else (303, *REFUSED)
                    assert status in usual, f"{whose} {path}: {status}"
                assert await stored_rows(engine, namespace, "anna") == before, whose
