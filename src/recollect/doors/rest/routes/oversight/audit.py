"""`GET /audit`: who read and changed what, for a key of role admin."""

from typing import Annotated, Literal

from fastapi import Query, Request

from recollect.checks import LARGEST_ID
from recollect.doors import audits
from recollect.doors.audits import AuditPage
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routing import Route, Router
from recollect.flows.accounts import audit_trail

router = Router(tags=["audit"], route_class=Route)


@router.get("/audit", responses=responses())
async def list_audit_lines(
    request: Request,
    before: Annotated[int | None, Query(ge=1, le=LARGEST_ID, description="`next` of the previous page")] = None,
    limit: Annotated[int, Query(ge=1, le=audit_trail.MAX_LIMIT)] = audit_trail.DEFAULT_LIMIT,
    by: Annotated[str | None, Query(description="The id or label of a key, or a gateway user")] = None,
    door: Annotated[
        str | None, Query(description="rest, gateway, mcp, console, cli or library", examples=["mcp"])
    ] = None,
    action: Annotated[str | None, Query(examples=["POST /recall"])] = None,
    outcome: Annotated[Literal["done", "refused", "failed"] | None, Query()] = None,
    item: Annotated[str | None, Query(description="A kind of items, or one item: `memory:ID`")] = None,
) -> AuditPage:
    """Lines of the audit log (RECOLLECT_AUDIT), the newest first.

    A page searches a limited number of lines, so with a filter it may be empty even though older lines match. Continue
    until `next` is null.
    """
    caller = calling(request)
    filters = audits.audit_filter(by, door, action, outcome, item)
    page = await caller.engine.audit_trail.page(caller.namespace, filters, before, limit)
    return AuditPage.of(page, caller.namespace)
