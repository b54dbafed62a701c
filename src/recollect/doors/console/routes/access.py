"""Who may use the namespace: keys of applications, and users of the gateway; and who did."""

from datetime import UTC, datetime, timedelta
from typing import cast

from starlette.responses import Response

from recollect import checks, origin
from recollect.doors import audits
from recollect.doors.console import cookies
from recollect.doors.console.visit import Visit, get, post
from recollect.flows.accounts.access import NewKey, new_key_id
from recollect.memory.accounts.access import Key
from recollect.memory.accounts.connections import Connection
from recollect.memory.accounts.grants import Grant
from recollect.origin import ROLES, Limits, Role
from recollect.quotas import MAX_QUOTA, UNLIMITED, Quota

PAGE = "/console/access"
ROWS = 50
MAX_SKIPPED = 100_000
MAX_CONNECTIONS = 100
MAX_READERS = 100
MAX_DAYS = 3650

# How long a key that another replaces still works, if nothing else is said.
OVERLAP_HOURS = 24
MAX_OVERLAP_HOURS = 365 * 24


async def access(visit: Visit) -> Response:
    """The keys and the users, without any secret; who manages no keys sees the own one."""
    flow, namespace = visit.engine.access, visit.namespace
    skip = visit.number_asked("skip", 0, 0, MAX_SKIPPED)
    prefix = visit.asked("user")
    users: list[Key] = []
    connections: list[Connection] = []
    readers: list[Grant] = []
    manages = origin.may("admin") and origin.current().limits is None
    if manages:
        keys = await flow.applications(namespace, ROWS + 1, skip)
        users = await flow.users(namespace, ROWS + 1, visit.asked("after"), prefix)
        connections = await visit.engine.connections.of_namespace(namespace, MAX_CONNECTIONS)
        readers = await visit.engine.grants.readers(namespace, MAX_READERS)
    else:
        own = await flow.own(namespace)
        keys = [] if own is None else [own]
    quotas = visit.engine.quotas
    used = await quotas.used(namespace, keys[:ROWS])
    used_by_users = await quotas.used_by_users(namespace, [key.user_id for key in users[:ROWS] if key.user_id])
    return visit.page(
        "access.html",
        done=visit.asked("done"),
        may_erase=manages,
        # Whoever came with a key found the namespace closed.
        is_open=origin.current().key_id is None and await flow.is_open(namespace),
        keys=keys[:ROWS],
        own_id=origin.current().key_id,
        guards=sum(1 for key in keys if key.revoked_at is None) if not skip else None,
        more_keys=skip + ROWS if len(keys) > ROWS else None,
        users=users[:ROWS],
        more_users=users[ROWS - 1].user_id if len(users) > ROWS else None,
        prefix=prefix,
        connections=connections,
        overlap=OVERLAP_HOURS,
        held=await visit.engine.grants.held(namespace, [key.id for key in keys[:ROWS]]),
        readers=readers,
        quotas={key.id: used[key.id].described(quotas.effective(key)) for key in keys if key.id in used},
        user_quotas={user_id: each.described(quotas.quota_of_users) for user_id, each in used_by_users.items()},
        default_quota=quotas.default_of_keys,
        # Chosen when a form is shown, so that a form that is sent twice makes one key.
        new_key_id=new_key_id,
    )


async def audit(visit: Visit) -> Response:
    """Who read and changed what."""
    filters = {name: visit.asked(name).strip() for name in ("by", "action", "outcome", "item")}
    before = visit.number_asked("before", 0, 0, checks.LARGEST_ID) or None
    chosen = audits.audit_filter(filters["by"], None, filters["action"], filters["outcome"], filters["item"])
    page = await visit.engine.audit_trail.page(visit.namespace, chosen, before, ROWS)
    return visit.page(
        "audit.html", lines=page.lines, next=page.before, before=before, filters=filters, is_on=visit.engine.audit.is_on
    )


async def create_key(visit: Visit) -> Response:
    """A new key, whose secret is on this page and nowhere else."""
    days = visit.optional_number_given("days", 1, MAX_DAYS)
    until = None if days is None else datetime.now(UTC) + timedelta(days=days)
    closes = await visit.engine.access.is_open(visit.namespace)
    role = visit.given("role")
    checks.one_of(role, ROLES, "role")
    label = visit.given("label").strip() or None
    limits = Limits(visit.given("only_user").strip() or None, visit.given("only_agent").strip() or None)
    quota = Quota(**_numbers(visit))
    key = await visit.engine.access.create_key(
        visit.namespace, label, cast(Role, role), until, limits, quota, visit.given("new_id") or None
    )
    return _secret(visit, key, closes=closes, label=label)


async def rotate(visit: Visit) -> Response:
    """A key that takes the place of another, which works for a while yet."""
    key_id = visit.given("id")
    hours = visit.number_given("hours", 0, MAX_OVERLAP_HOURS)
    key = await visit.engine.access.rotate(visit.namespace, key_id, hours * 3600.0, visit.given("new_id") or None)
    return _secret(visit, key, replaces=key_id, hours=hours)


async def create_user(visit: Visit) -> Response:
    """A user of the gateway, with a key that is on this page and nowhere else."""
    user_id = visit.given("user_id").strip()
    key = await visit.engine.access.create_user_key(visit.namespace, user_id)
    return _secret(visit, key, user_id=user_id)


async def change_quota(visit: Visit) -> Response:
    """How much a key may ask for and store."""
    await visit.engine.quotas.change(visit.namespace, visit.given("id"), _numbers(visit))
    return visit.go(PAGE, done="quota")


def _numbers(visit: Visit) -> dict[str, int | None]:
    return {name: visit.optional_number_given(name, UNLIMITED, MAX_QUOTA) for name in Quota().numbers()}


async def revoke(visit: Visit) -> Response:
    """End a key of an application or of a user."""
    visit.require_sure()
    await visit.engine.access.revoke(visit.namespace, visit.given("id"))
    return visit.go(PAGE, done="revoked")


async def disconnect(visit: Visit) -> Response:
    """End the connection of an MCP client."""
    visit.require_sure()
    await visit.engine.connections.end(visit.namespace, visit.given("id"))
    return visit.go(PAGE, done="disconnected")


async def ungrant(visit: Visit) -> Response:
    """Close the namespace to a key of another one."""
    visit.require_sure()
    await visit.engine.grants.end(visit.namespace, visit.given("key_namespace"), visit.given("id"))
    return visit.go(PAGE, done="ungranted")


def _secret(
    visit: Visit,
    key: NewKey,
    *,
    closes: bool = False,
    label: str | None = None,
    user_id: str | None = None,
    replaces: str | None = None,
    hours: int = 0,
) -> Response:
    """The page with a secret. If it closed the namespace, this browser can sign in with it at once."""
    token = cookies.token_of_form(visit.request, cookies.BEFORE)
    response = visit.page(
        "access_secret.html",
        key=key,
        closes=closes,
        label=label,
        user_id=user_id,
        replaces=replaces,
        hours=hours,
        sign_in=cookies.csrf_of(token),
    )
    if closes:
        cookies.keep(response, visit.request, token, cookies.BEFORE)
    return response


ROUTES = [
    get(PAGE, access),
    get("/console/audit", audit),
    post("/console/access/keys", create_key),
    post("/console/access/rotate", rotate),
    post("/console/access/users", create_user),
    post("/console/access/quota", change_quota),
    post("/console/access/revoke", revoke),
    post("/console/access/disconnect", disconnect),
    post("/console/access/ungrant", ungrant),
]
