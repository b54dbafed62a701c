"""`/users`: keys for gateway users, and permanent deletion of a user's data."""

from datetime import datetime
from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import BaseModel, Field

from recollect.checks import MAX_IDENTIFIER_CHARACTERS
from recollect.doors.rest.bodies import Body
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routing import Route, Router
from recollect.flows.kinds.target import USER, Target

router = Router(route_class=Route)


class NewUser(Body):
    """A user who gets a key."""

    user_id: Annotated[
        str,
        Field(
            min_length=1, max_length=MAX_IDENTIFIER_CHARACTERS, description="An id of your choice", examples=["anna"]
        ),
    ]


class UserKey(BaseModel):
    """A user's credential. The key is not shown again."""

    user_id: str = Field(examples=["anna"])
    user_key: str = Field(description="Key of the user: send it with every request, and keep it secret")
    created_at: datetime


class ForgottenUser(BaseModel):
    """The receipt: how many rows of each kind were deleted."""

    user_id: str = Field(examples=["anna"])
    forgotten: bool = Field(description="False if this was a dry run")
    rows: dict[str, int] = Field(examples=[{"messages": 120, "passages": 131, "sessions": 4}])
    insights_left: list[int] = Field(description="Insights kept because they are also based on other users' messages")


@router.post("/users", status_code=201, tags=["gateway"], responses=responses(409))
async def create_user(request: Request, body: NewUser) -> UserKey:
    """Create a key for a gateway user. It is shown only once, and a user has at most one."""
    caller = calling(request)
    key = await caller.engine.access.create_user_key(caller.namespace, body.user_id)
    return UserKey(user_id=body.user_id, user_key=key.secret, created_at=key.created_at)


# A user's id may have a slash in it.
@router.delete("/users/{user_id:path}", tags=["users"], responses=responses(404, 409))
async def forget_user(
    request: Request,
    user_id: Annotated[str, Path(description="User whose sessions, memories, resources and keys are deleted")],
    dry_run: Annotated[bool, Query(description="Only count what would be deleted")] = False,
) -> ForgottenUser:
    """Permanently delete everything that belongs to a user, including its search index.

    A large memory takes a while. If the request times out, send it again to delete the rest.
    """
    caller = calling(request)
    flow, target = caller.engine.forget, Target(USER, user_id)
    receipt = await (flow.count if dry_run else flow.forget)(caller.namespace, target)
    return ForgottenUser(
        user_id=user_id,
        forgotten=not dry_run,
        rows=receipt.rows,
        insights_left=list(receipt.insights_left),
    )
