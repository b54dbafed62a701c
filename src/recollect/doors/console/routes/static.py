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
    kept = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers=kept)


ROUTES = [Route("/console/static/{name}", file, methods=["GET"])]
