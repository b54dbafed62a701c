"""A visit to a page: who asks, what for, and how it is answered. Every page is `async def page(visit) -> Response`."""

import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from urllib.parse import urlencode

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from recollect import checks, origin
from recollect.doors.console import cookies, problems, rendering, uploads
from recollect.doors.console.rendering import shortened
from recollect.engine import Engine
from recollect.errors import Conflict, Invalid, RecollectError
from recollect.origin import Role

Page = Callable[["Visit"], Awaitable[Response]]

# Forms have a few short fields; only an import brings a file.
MAX_FIELDS = 200
MAX_FIELD_BYTES = 1024 * 1024

_TOO_LONG = "What you typed in one field is larger than 1 MB: go back and shorten it, or split it into several memories"

# Of fields for numbers whose names nobody sees.
LABELS = {
    "top_k": "“At most” (top_k)",
    "token_budget": "“Token budget”",
    "max_messages": "“Messages of a sliding window”",
    "max_tokens": "“Tokens above which the oldest are summarised”",
    "hours": "“Hours that the old key still works”",
    "requests_per_minute": "“Requests per minute”",
    "rows_per_day": "“Items stored per day”",
    "bytes_per_day": "“Bytes stored per day”",
}
YES, NO = ("yes", "on", "true", "1"), ("", "no", "off", "false", "0")

# What scripts add to each address.
OF_NAMESPACE = "of_namespace"


class Visit:
    """One request to the console."""

    def __init__(self, request: Request, form: FormData | None = None) -> None:
        self.request = request
        self.engine: Engine = request.app.state.engine
        self.namespace: str = request.state.namespace
        self._form = form or FormData()

    def asked(self, name: str) -> str:
        """A value of the address as it is, since an id may begin with a space; empty if it is not there or blank."""
        value = self.request.query_params.get(name, "")
        return value if value.strip() else ""

    def all_asked(self, name: str) -> list[str]:
        """The values of a parameter that may stand several times."""
        return [value for each in self.request.query_params.getlist(name) if (value := each.strip())]

    def number_asked(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number of the address."""
        return _number(self.asked(name).strip(), name, default, least, most)

    def moment_asked(self, name: str) -> datetime | None:
        """A time of the address, in UTC unless it says otherwise; None if it is not there."""
        text = self.asked(name).strip()
        try:
            return checks.utc(checks.moment(text), name) if text else None
        except ValueError as problem:
            raise Invalid(f"{name} is not a time: {problem}") from None

    def given(self, name: str) -> str:
        """A field of the form, as it was typed; empty if it is not there."""
        value = self._form.get(name, "")
        return value.replace("\r\n", "\n") if isinstance(value, str) else ""

    def number_given(self, name: str, least: int, most: int) -> int:
        """A whole number of the form, which must be there."""
        number = self.optional_number_given(name, least, most)
        if number is None:
            raise Invalid(f"{name} is missing")
        return number

    def optional_number_given(self, name: str, least: int, most: int) -> int | None:
        """A whole number of the form; None if the field is left empty."""
        text = self.given(name).strip()
        return _number(text, name, least, least, most) if text else None

    def all_given(self, name: str) -> list[str]:
        """The values of a field that may stand several times."""
        return [value for value in self._form.getlist(name) if isinstance(value, str)]

    def ticked(self, name: str) -> bool:
        """Whether a box of the form is ticked."""
        value = self.given(name).strip().lower()
        if value not in YES + NO:
            raise Invalid(f"{name} must be yes or no")
        return value in YES

    def require_known(self, *names: str) -> None:
        """Refuse an address with other parameters than these: a filter that is ignored would show more than wanted."""
        for name in self.request.query_params:
            if name not in names and name != OF_NAMESPACE:
                raise Invalid(f"This page has no parameter {shortened(name)}. {checks.nearest(name, names)}")

    def require_sure(self) -> None:
        """Refuse a form whose box that confirms it is not ticked."""
        if self.given("really") != "yes":
            raise Invalid("Nothing was changed: go back and tick the box beside the button, which confirms it")

    def file(self, name: str) -> UploadFile:
        """A file that the form brings."""
        value = self._form.get(name)
        if not isinstance(value, UploadFile) or not value.filename:
            raise Invalid("Choose a file first")
        return value

    def require_same_namespace(self) -> None:
        """Refuse the script of a page of another namespace: since it was opened, somebody signed in or out."""
        shown = self.request.query_params.get(OF_NAMESPACE)
        if shown not in (None, self.namespace):
            raise Conflict(
                f"This page shows the namespace {shown}, but this browser now opens {self.namespace}, because somebody "
                "signed in or out: reload the page"
            )

    async def is_still_admitted(self) -> bool:
        """Whether who came in may still be here: nobody signed out, no key was revoked or made meanwhile."""
        token = cookies.token_in(self.request.headers)
        key = None if token is None else await self.engine.access.browser(token)
        if key is not None:
            return key.namespace == self.namespace
        return self.request.state.author is None and await self.engine.access.is_open(self.namespace)

    def page(self, template: str, status: int = 200, **values: object) -> Response:
        """A page; in an open namespace the browser is given a token for the forms on it."""
        known = cookies.token_in(self.request.headers)
        token = known or cookies.new_token()
        response = rendering.page(self.request, template, status, csrf=cookies.csrf_of(token), **values)
        if known is None:
            cookies.keep(response, self.request, token)
        return response

    def go(self, path: str, **parameters: str) -> Response:
        """To another page, after a change."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        return RedirectResponse(f"{path}{query}", status_code=303)


def _number(text: str, name: str, default: int, least: int, most: int) -> int:
    if not text:
        return default
    name = LABELS.get(name, name)
    if not re.fullmatch("-?[0-9]{1,19}", text):
        raise Invalid(f"{name} must be a whole number")
    checks.between(int(text), least, most, name)
    return int(text)


def get(path: str, page: Page) -> Route:
    """A page to read."""

    async def answer(request: Request) -> Response:
        request.scope["route"] = route  # for the log
        try:
            visit = Visit(request)
            visit.require_same_namespace()
            return await page(visit)
        except RecollectError as problem:
            return problems.failed(request, problem)

    route = Route(path, answer, methods=["GET"])
    return route


def post(path: str, change: Page, role: Role = "read") -> Route:
    """A form that changes something. It must come from a page of ours, in this very browser.

    Flows check who may do what; a `role` is for forms that should not even be read from others.
    """

    async def answer(request: Request) -> Response:
        request.scope["route"] = route
        try:
            origin.require(role)
            sent = request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD_BYTES)
            async with uploads.received(sent) as form:
                token = form.get(cookies.FIELD, "")
                if not isinstance(token, str) or not cookies.is_ours(request, token):
                    return problems.refused(request.scope, 403, problems.NOT_OURS)
                return await change(Visit(request, form))
        except HTTPException as problem:  # a form that cannot be read
            if "maximum size" in problem.detail:
                return problems.refused(request.scope, 413, _TOO_LONG)
            return problems.refused(request.scope, problem.status_code, problem.detail)
        except RecollectError as problem:
            return problems.failed(request, problem)

    route = Route(path, answer, methods=["POST"])
    return route
