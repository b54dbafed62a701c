"""`GET /metrics`: the metrics of this process for Prometheus, behind the same gate as every route."""

from fastapi import HTTPException, Request, Response

from recollect.doors import telemetry_export
from recollect.doors.rest.caller import calling
from recollect.doors.rest.routing import Router

router = Router()


@router.get("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """Durations and counts over all namespaces, without their names."""
    caller = calling(request)
    reason = telemetry_export.missing()
    if reason is not None:
        raise HTTPException(501, reason)
    text, kind = await telemetry_export.scrape(caller.engine)
    return Response(text, media_type=kind)
