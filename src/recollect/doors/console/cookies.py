"""The cookie of a browser, and the token in forms that proves that a page of ours sent them (against CSRF)."""

import hashlib
import hmac
import secrets
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from recollect.flows.accounts.access import BROWSER_SECONDS

NAME = "recollect_console"
FIELD = "csrf"

# Of the form to sign in. Apart from the other: a link on another site to that form must not sign anybody out.
BEFORE = "recollect_sign_in"

# Of the consent page.
CONSENT = "recollect_consent"

# More than this is none of our cookies.
MAX_CHARACTERS = 200


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


def csrf_of(token: str) -> str:
    """What a form must bring. Other sites can neither read the cookie nor compute this."""
    return hashlib.sha256(f"recollect console form {token}".encode(errors="replace")).hexdigest()


def is_ours(request: Request, given: str, name: str = NAME) -> bool:
    """Whether a form comes from a page that this browser was given."""
    token = token_in(request.headers, name)
    return token is not None and hmac.compare_digest(csrf_of(token).encode(), given.encode(errors="replace"))


def keep(response: Response, request: Request, token: str, name: str = NAME, path: str = "/console") -> None:
    """Give the browser a token, out of reach of scripts and of other sites."""
    response.set_cookie(
        name,
        token,
        max_age=BROWSER_SECONDS,
        path=path,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def drop(response: Response, request: Request) -> None:
    """Let the browser forget its token."""
    response.delete_cookie(
        NAME, path="/console", secure=request.url.scheme == "https", httponly=True, samesite="strict"
    )
