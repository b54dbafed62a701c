"""`DELETE /users/{user_id}`: everything of one user, forgotten for good."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.flows.forget import USER, Target

router = APIRouter(tags=["users"])


class ForgottenUser(BaseModel):
    """The receipt: how many rows of each kind went."""

    user_id: str = Field(examples=["anna"])
    forgotten: bool = Field(description="False if this was a dry run")
    rows: dict[str, int] = Field(examples=[{"messages": 120, "passages": 131, "sessions": 4}])
    insights_left: list[int] = Field(
        description="Insights that were made from what this user said and from what others said: they stay"
    )


# A user's id may have a slash in it.
@router.delete("/users/{user_id:path}", responses=responses(404, 409))
async def forget_user(
    request: Request,
    user_id: Annotated[str, Path(description="Whose sessions, memories, resources and keys are to go")],
    dry_run: Annotated[bool, Query(description="Only count what would go")] = False,
) -> ForgottenUser:
    """Forget a user: whatever is known to be of this user goes for good, with all by which it could be found.

    A large memory takes a while. If the answer does not arrive, ask again: the rest goes then.
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
