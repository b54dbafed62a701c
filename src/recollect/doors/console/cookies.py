"""The cookie of a browser, and the token in forms that proves that a page of ours sent them (against CSRF)."""

import hashlib
import hmac
import re
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from recollect.flows.accounts.access import BROWSER_SECONDS

SIGNED_OUT = "You are no longer signed in: sign in, then open the page again and repeat"

NAME = "recollect_console"
FIELD = "csrf"

# Of the form to sign in. Apart from the other: a link on another site to that form must not sign anybody out.
BEFORE = "recollect_sign_in"

# Of the consent page.
CONSENT = "recollect_consent"

# More than this is none of our cookies.
MAX_CHARACTERS = 200

# As `new_token` makes them; the token of somebody who signed in has a full stop.
_OURS = re.compile("[A-Za-z0-9_-]{43}")


def token_in(headers: Headers, name: str = NAME) -> str | None:
    """The token that a browser has: of somebody who signed in, or, in an open namespace, any."""
    for header in headers.getlist("cookie"):
        try:
            cookie = SimpleCookie(header).get(name)
        except CookieError:
            continue
        if cookie is not None and 0 < len(cookie.value) <= MAX_CHARACTERS:
            return cookie.value
    return None


def new_token() -> str:
    """For a browser that did not sign in, so that its forms can be told from those of other sites."""
    return secrets.token_urlsafe(32)


def token_of_form(request: Request, name: str) -> str:
    """The token of a form that nobody need be signed in for: the browser's own, or a new one.

    Its own, so that the form works in several tabs. Somebody else may have planted it: it proves nothing but that a
    form is ours, beside `is_same_origin`. Whoever signs in is given another one, made then.
    """
    known = token_in(request.headers, name)
    return known if known is not None and _OURS.fullmatch(known) else new_token()


def csrf_of(token: str) -> str:
    """What a form must bring. Other sites can neither read the cookie nor compute this."""
    return hashlib.sha256(f"recollect console form {token}".encode(errors="replace")).hexdigest()


def is_ours(request: Request, given: str, name: str = NAME) -> bool:
    """Whether a form comes from a page of ours that this browser was given.

    The token alone does not tell: another server on the same host, or on a neighbouring name, can set our cookie.
    """
    token = token_in(request.headers, name)
    if token is None or not is_same_origin(request):
        return False
    return hmac.compare_digest(csrf_of(token).encode(), given.encode(errors="replace"))


def is_same_origin(request: Request) -> bool:
    """Whether a page of this very server sends a form, as the browser tells.

    A client that sends neither header is no browser.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    if origin is None:
        return True
    public = request.app.state.engine.settings.public_url
    return origin == public or origin.partition("://")[2] == request.headers.get("host")


def keep(response: Response, request: Request, token: str, name: str = NAME, path: str = "/console") -> None:
    """Give the browser a token, out of reach of scripts and of other sites."""
    response.set_cookie(
        name,
        token,
        max_age=BROWSER_SECONDS,
        path=path,
        secure=is_behind_tls(request),
        httponly=True,
        samesite="strict",
    )


def address(request: Request) -> str:
    """Where programs reach this server: the public address, or else where the browser did."""
    public: str | None = request.app.state.engine.settings.public_url
    return public or str(request.base_url)


def is_behind_tls(request: Request) -> bool:
    """Whether the browser came over TLS: the proxy says so, or it came to the public address."""
    public = request.app.state.engine.settings.public_url
    if public is not None and public.startswith("https:") and request.headers.get("host") == urlsplit(public).netloc:
        return True
    return request.url.scheme == "https"


def drop(response: Response, request: Request) -> None:
    """Let the browser forget its token."""
    response.delete_cookie(NAME, path="/console", secure=is_behind_tls(request), httponly=True, samesite="strict")
