"""The page at /docs, whose assets come from a wheel, so that it works with no network."""

from importlib.resources import files

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.staticfiles import StaticFiles

from recollect.doors.rest import document

ASSETS = "/docs/assets"


def add_to(app: FastAPI) -> None:
    """Serve the page and what it loads."""
    app.mount(ASSETS, StaticFiles(directory=str(files("fastapi_offline") / "static")), name="assets")

    @app.get("/", include_in_schema=False)
    async def front() -> RedirectResponse:
        return RedirectResponse("/docs")

    @app.get("/docs", include_in_schema=False)
    async def page() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url=document.PATH,
            title=f"{app.title} {app.version}",
            swagger_js_url=f"{ASSETS}/swagger-ui-bundle.js",
            swagger_css_url=f"{ASSETS}/swagger-ui.css",
            swagger_favicon_url=f"{ASSETS}/favicon.png",
        )
