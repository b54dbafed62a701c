"""The caller of a REST route, as a parameter that FastAPI fills in."""

from typing import Annotated

from fastapi import Depends, Request

from recollect.doors.caller import Caller, caller_of


async def _calling(request: Request) -> Caller:
    return caller_of(request.app.state.engine, request)


Calling = Annotated[Caller, Depends(_calling)]
