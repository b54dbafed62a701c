"""Keys and users as pages: secrets are shown once, and rights decide what can be done."""

import re
from collections.abc import AsyncIterator

import pytest

from recollect.doors.console.routes import access
from recollect.engine import Engine
from recollect.origin import Limits
from recollect.quotas import UNLIMITED, Quota
from tests.console_visits import Browser, browsing, words

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

PAGE = "/console/access"
SECRET = re.compile(r'id="secret" class="secret">([^<]+)<')


@pytest.fixture
async def browser(engine: Engine) -> AsyncIterator[Browser]:
    async with browsing(engine) as browser:
        yield browser


@pytest.fixture
async def admin(browser: Browser, engine: Engine, namespace: str) -> Browser:
    await browser.sign_in((await engine.access.create_key(namespace, "<b>boss</b>")).secret)
    return browser


def secret_in(page: str) -> str:
    found = SECRET.search(page)
    assert found is not None, page
    return found[1]


async def test_the_first_key_closes_the_namespace_and_signs_in_at_once(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    assert "The first key closes it" in await browser.text(PAGE)
    answer = await browser.send(PAGE, f"{PAGE}/keys", label="first", role="admin")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    secret = secret_in(answer.text)
    (key,) = await engine.access.keys(namespace)
    assert (key.label, key.role, key.expires_at) == ("first", "admin", None)
    assert (await browser.open(PAGE)).status_code == 303
    token = re.search(r'action="/console/sign-in">\s*<input type="hidden" name="csrf" value="(\w+)"', answer.text)
    assert token is not None
    signed_in = await browser.send(PAGE, "/console/sign-in", token[1], key=secret, next=PAGE)
    assert signed_in.headers["location"] == PAGE
    page = await browser.text(PAGE)
    assert "you are signed in with it" in page
    assert secret.rpartition("_")[2] not in page


async def test_the_first_key_over_http_can_make_others(browser: Browser, engine: Engine, namespace: str) -> None:
    for fields in ({"role": "read"}, {"role": "write"}, {"role": "admin", "only_user": "anna"}):
        answer = await browser.send(PAGE, f"{PAGE}/keys", **fields)
        assert (answer.status_code, "The first key of a namespace must have the role admin" in answer.text) == (
            422,
            True,
        )
    assert await engine.access.is_open(namespace)


async def test_a_form_that_is_sent_twice_makes_one_key(admin: Browser, engine: Engine, namespace: str) -> None:
    chosen = re.findall(r'name="new_id" value="(\w+)"', await admin.text(PAGE))
    assert len(set(chosen)) == len(chosen) == 2, "to replace the one key, and to make another"
    replacing, making = chosen
    (own,) = await engine.access.keys(namespace)
    for path, fields in (
        ("keys", {"role": "read", "new_id": making}),
        ("rotate", {"id": own.id, "hours": "1", "new_id": replacing}),
    ):
        first = await admin.send(PAGE, f"{PAGE}/{path}", **fields)
        assert fields["new_id"] in secret_in(first.text)
        again = await admin.send(PAGE, f"{PAGE}/{path}", **fields)
        assert (again.status_code, "has created key" in again.text) == (409, True)
        assert SECRET.search(again.text) is None
    assert len(await engine.access.keys(namespace)) == 3
    wrong = await admin.send(PAGE, f"{PAGE}/keys", role="read", new_id="<b>")
    assert wrong.status_code == 422


async def test_a_key_has_a_role_and_an_end_and_can_be_replaced_and_revoked(
    admin: Browser, engine: Engine, namespace: str
) -> None:
    made = secret_in((await admin.send(PAGE, f"{PAGE}/keys", label="reader", role="read", days="30")).text)
    credential = await engine.access.credential(made)
    assert credential is not None
    assert credential.role == "read"
    page = await admin.text(PAGE)
    assert "&lt;b&gt;boss&lt;/b&gt;" in page
    answer = await admin.send(PAGE, f"{PAGE}/rotate", id=credential.key_id, hours="0")
    other = await engine.access.credential(secret_in(answer.text))
    assert other is not None
    assert (other.role, other.label) == ("read", "reader")
    assert await engine.access.credential(made) is None
    refused = await admin.send(PAGE, f"{PAGE}/revoke", id=other.key_id)
    assert (refused.status_code, "tick the box" in refused.text) == (422, True)
    await admin.send(PAGE, f"{PAGE}/revoke", id=other.key_id, really="yes")
    states = {key.id: key.revoked_at is not None for key in await engine.access.keys(namespace)}
    assert states[other.key_id]
    wrong = await admin.send(PAGE, f"{PAGE}/keys", label="x", role="emperor")
    assert (wrong.status_code, "read, write, admin" in wrong.text) == (422, True)


async def test_a_key_can_be_limited_to_a_user_and_an_agent(admin: Browser, engine: Engine) -> None:
    fields = {"role": "write", "only_user": "anna", "only_agent": "coder"}
    made = await engine.access.credential(secret_in((await admin.send(PAGE, f"{PAGE}/keys", **fields)).text))
    assert made is not None
    assert made.limits == Limits("anna", "coder")
    page = await admin.text(PAGE)
    assert 'only user <span class="text">anna</span>' in page
    assert 'only agent <span class="text">coder</span>' in page


async def test_grants_are_shown_on_both_sides_and_ended_by_an_admin_of_the_opened_namespace(
    admin: Browser, engine: Engine, namespace: str
) -> None:
    other = f"{namespace}-other"
    theirs = await engine.access.create_key(other, "<i>bot</i>")
    await engine.grants.grant(namespace, other, theirs.id)
    (own,) = await engine.access.keys(namespace)
    await engine.grants.grant(other, namespace, own.id)
    page = words(await admin.text(PAGE))
    assert f"also reads {other}" in page
    assert f"<i>bot</i> of {other} Key {theirs.id}" in page
    answer = await admin.send(PAGE, f"{PAGE}/ungrant", key_namespace=other, id=theirs.id, really="yes")
    page = words(await admin.text(answer.headers["location"]))
    assert "The grant is ended" in page
    assert theirs.id not in page
    assert await engine.grants.readers(namespace, 10) == []
    # The key's own side only shows what it holds: who opened the other namespace ends that.
    fields = {"key_namespace": namespace, "id": own.id, "really": "yes"}
    assert (await admin.send(PAGE, f"{PAGE}/ungrant", **fields)).status_code == 404
    assert len(await engine.grants.readers(other, 10)) == 1


async def test_users_get_a_key_and_are_paged(
    admin: Browser, engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = await admin.send(PAGE, f"{PAGE}/users", user_id="anna")
    assert (await engine.access.user_of("anna", secret_in(answer.text))).user_id == "anna"
    again = await admin.send(PAGE, f"{PAGE}/users", user_id="anna")
    assert (again.status_code, "already has a key" in again.text) == (409, True)
    for user in ("bob", "carla", "anton"):
        await engine.access.create_user_key(namespace, user)
    page = await admin.text(f"{PAGE}?user=an")
    assert ("anna" in page, "anton" in page, "bob" in page) == (True, True, False)
    assert "/console/forget?user=anna" in page
    monkeypatch.setattr(access, "ROWS", 2)
    page = await admin.text(PAGE)
    assert ("anton" in page, "carla" in page, "after=anton" in page) == (True, False, True)
    page = await admin.text(f"{PAGE}?after=anton")
    assert ("anton" in page, "bob" in page, "carla" in page) == (False, True, True)


@pytest.mark.parametrize("role", ["read", "write"])
async def test_a_key_without_the_right_sees_no_forms_and_is_refused(
    browser: Browser, engine: Engine, namespace: str, role: str
) -> None:
    boss = await engine.access.create_key(namespace, "boss")
    await engine.access.create_user_key(namespace, "carla")
    await browser.sign_in((await engine.access.create_key(namespace, "desk", role)).secret)  # type: ignore[arg-type]
    page = await browser.text(PAGE)
    assert "you are signed in with it" in page
    assert [each for each in ("boss", boss.id, "carla") if each in page] == []
    assert "with a key that has the role admin" in page
    assert '<form method="post" action="/console/access' not in page
    forms = {"keys": {"label": "x", "role": "read"}, "users": {"user_id": "x"}, "revoke": {"id": "x", "really": "yes"}}
    for change, fields in forms.items():
        assert (await browser.send(PAGE, f"{PAGE}/{change}", **fields)).status_code == 403, change
    assert (await browser.send(PAGE, "/console/sign-out")).status_code == 303


async def test_no_change_is_made_without_the_token_of_the_page(admin: Browser) -> None:
    for change in ("keys", "rotate", "users", "revoke"):
        assert (await admin.send(PAGE, f"{PAGE}/{change}", "0" * 64, id="1")).status_code == 403


async def test_a_quota_is_shown_with_its_use_and_changed(admin: Browser, engine: Engine, namespace: str) -> None:
    fields = {"label": "app", "role": "write", "rows_per_day": "1000", "bytes_per_day": "0"}
    made = secret_in((await admin.send(PAGE, f"{PAGE}/keys", **fields)).text)
    credential = await engine.access.credential(made)
    assert credential is not None
    assert credential.quota == Quota(rows_per_day=1000, bytes_per_day=UNLIMITED)
    assert "0 of 1,000 rows today" in await admin.text(PAGE)
    answer = await admin.send(PAGE, f"{PAGE}/quota", id=credential.key_id, requests_per_minute="60")
    assert answer.headers["location"] == f"{PAGE}?done=quota"
    page = await admin.text(answer.headers["location"])
    assert "The quota is changed" in page
    assert "0 of 60 requests this minute" in page
    assert "rows today" not in page
