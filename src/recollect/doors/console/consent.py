"""Consent: the page on which a person lets a client use the memory. It is OAuth's authorization endpoint."""

from collections.abc import Mapping
from typing import cast
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from recollect.doors.console import cookies, problems, rendering
from recollect.doors.console.door import AUTHORIZE
from recollect.doors.loopback import is_loopback
from recollect.engine import Engine
from recollect.errors import Forbidden, Invalid, RecollectError
from recollect.flows.accounts.clients import Refusal
from recollect.flows.accounts.connections import SCOPES, AuthorizationRequest
from recollect.memory.accounts.access import Credential
from recollect.memory.accounts.connections import place_of
from recollect.origin import Role

MAX_FIELDS = 50

# What a client sends; the form sends it again.
PARAMETERS = (
    "client_id",
    "redirect_uri",
    "response_type",
    "code_challenge",
    "code_challenge_method",
    "state",
    "scope",
    "resource",
)


async def ask(request: Request) -> Response:
    """Show which client asks for what."""
    given = request.query_params
    has_repeats = any(len(given.getlist(name)) > 1 for name in PARAMETERS)
    return await Consent(request, present(given), has_repeats=has_repeats).answered()


async def decide(request: Request) -> Response:
    """Take the person's decision, and send the browser back to the client."""
    try:
        async with request.form(max_files=0, max_fields=MAX_FIELDS) as form:
            given = {name: value for name, value in form.items() if isinstance(value, str)}
    except HTTPException as problem:  # a form that cannot be read
        return problems.refused(request.scope, problem.status_code, problem.detail)
    if not cookies.is_ours(request, given.get(cookies.FIELD, ""), cookies.CONSENT):
        return problems.refused(request.scope, 403, problems.NOT_OURS)
    return await Consent(request, present(given), given).answered()


def present(given: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a client's request; empty ones count as left out (RFC 6749, section 3.1)."""
    return {name: given[name] for name in PARAMETERS if given.get(name)}


class Consent:
    """One client's request in one browser; `choice` is the submitted form, if there is one yet."""

    def __init__(
        self,
        request: Request,
        given: Mapping[str, str],
        choice: Mapping[str, str] | None = None,
        *,
        has_repeats: bool = False,
    ) -> None:
        self._request = request
        self._engine: Engine = request.app.state.engine
        self._given = given
        self._choice = choice
        self._has_repeats = has_repeats
        self._person: str | None = request.scope.get("state", {}).get("signed_in")

    async def answered(self) -> Response:
        """The page, or a redirect to the client."""
        self._request.scope["route"] = ROUTES[0]  # for the log
        try:
            if self._has_repeats:
                raise Invalid("The program that sent you here repeats a parameter: connect it again")
            asked = await self._engine.connections.checked(self._given)
            if self._choice is None:
                return self.page(asked)
            if self._choice.get("decision") != "allow":
                return RedirectResponse(self._engine.connections.deny(asked), 303)
            return await self.allowed(asked, self._choice)
        except Refusal as refusal:
            told = f"{place_of(refusal.redirect_uri)} sent an invalid request. Tell its developer: {refusal}."
            return problems.refused(self._request.scope, 400, told)
        except Invalid as problem:
            return problems.refused(self._request.scope, 400, str(problem))
        except RecollectError as problem:
            return problems.failed(self._request, problem)

    async def allowed(self, asked: AuthorizationRequest, choice: Mapping[str, str]) -> Response:
        """Redirect with a code, or show the page again if the key cannot be used."""
        if choice.get("person", "") != (self._person or ""):
            return self.page(asked, "You are signed in as somebody else than when this page was shown: decide again.")
        key = await self.key(choice.get("key", "").strip())
        if key is None:
            return self.page(
                asked, "That key is not valid: it is unknown, revoked, expired, or a gateway user's key (uk_...)."
            )
        # For the log and the audit.
        by = {"author": key.label or key.key_id, "key_id": key.key_id}
        self._request.scope["state"].update(namespace=key.namespace, **by)
        try:
            role = cast(Role, choice.get("role", ""))
            address = await self._engine.connections.allow(asked, key, role)
        except Forbidden as refusal:
            return self.page(asked, f"{refusal}.")
        return RedirectResponse(address, 303)

    async def key(self, secret: str) -> Credential | None:
        """The key that the person entered, or has through the proxy's sign-in."""
        if not secret and self._person is not None:
            return await self._engine.connections.key_of_person(self._engine.settings.namespace, self._person)
        return await self._engine.connections.key_of_secret(secret)

    def page(self, asked: AuthorizationRequest, fault: str = "") -> Response:
        """The page. What the client says about itself is shown as text, and as a claim."""
        token = cookies.token_of_form(self._request, cookies.CONSENT)
        back = urlsplit(asked.redirect_uri)
        response = rendering.page(
            self._request,
            "consent.html",
            401 if fault else 200,
            csrf=cookies.csrf_of(token),
            parameters=self._given,
            name=asked.client.name,
            host=back.hostname if back.scheme == "https" else None,
            scheme=back.scheme,
            is_here=back.scheme == "http" and is_loopback(back.hostname or ""),
            asked=asked.role,
            roles=list(SCOPES)[: list(SCOPES).index(asked.role) + 1],
            person=self._person,
            fault=fault,
        )
        # A browser follows the redirect only if the policy of the page with the form allows it, and a client that
        # opened this page in a window must keep its handle on it.
        has_host = back.scheme in ("http", "https") and "[" not in back.netloc
        target = f"{back.scheme}://{back.netloc}" if has_host else f"{back.scheme}:"
        policy = rendering.POLICY.replace("form-action 'self'", f"form-action 'self' {target}")
        response.headers["Content-Security-Policy"] = policy
        response.headers["Cross-Origin-Opener-Policy"] = "unsafe-none"
        cookies.keep(response, self._request, token, cookies.CONSENT, AUTHORIZE)
        return response


ROUTES = [
    Route(AUTHORIZE, ask, methods=["GET"]),
    Route(AUTHORIZE, decide, methods=["POST"]),
]
