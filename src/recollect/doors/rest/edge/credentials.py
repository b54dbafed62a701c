"""The key of a request, in one header only. A key sent in another way is rejected, never ignored."""

import re

from starlette.datastructures import Headers
from starlette.types import Scope

from recollect.errors import AccessDenied

# Where other servers take a key; ours read none of these.
OTHER_HEADERS = (
    "x-api-key",
    "api-key",
    "apikey",
    "x-auth-token",
    "x-access-token",
    "x-authorization",
    "authentication",
    "token",
    "x-token",
    "key",
    "x-key",
    "x-recollect-key",
)

# A key of `recollect keys`, in a header or a query string of any name.
_OUR_KEY = re.compile(rb"(?<![A-Za-z0-9])rk_[0-9a-f]{8}_")

_UNUSABLE = "The header Authorization is invalid: send it once, as Authorization: Bearer KEY"
_NOT_READ = "is not accepted: send the key in the header Authorization: Bearer KEY"


def key_in(scope: Scope, headers: Headers) -> str | None:
    """The key, or None if the request brings nothing that might be meant as one."""
    if given := headers.getlist("authorization"):
        scheme, _, key = given[0].partition(" ")
        if len(given) > 1 or scheme.lower() != "bearer" or not key.strip():
            raise AccessDenied(_UNUSABLE)
        return key.strip()
    for name in OTHER_HEADERS:
        if headers.get(name):
            raise AccessDenied(f"The header {name} {_NOT_READ}")
    if _OUR_KEY.search(scope["query_string"]):
        raise AccessDenied(f"A key in the URL {_NOT_READ}")
    for _, value in scope["headers"]:
        if _OUR_KEY.search(value):
            raise AccessDenied(f"A key in another header {_NOT_READ}")
    return None
