"""Scripts and styles, kept by browsers until they change."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from recollect.doors.console import rendering

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


async def file(request: Request) -> Response:
    """One file of the package."""
    name = request.path_params["name"]
    content = rendering.static_files().get(name)
    if content is None:
        return Response(status_code=404)
    # While servers are upgraded one by one, a page of the new version asks an old server for a file that this one does
    # not have yet: what it sends instead must not be kept under the new address.
    is_this_version = request.query_params.get("v") == rendering.static_version(name)
    kept = "public, max-age=31536000, immutable" if is_this_version else "no-cache"
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers={"Cache-Control": kept})


ROUTES = [Route("/console/static/{name}", file, methods=["GET"])]
