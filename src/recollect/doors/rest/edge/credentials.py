"""The key of a request, in one header only. A key sent in another way is rejected, never ignored.

The routes of the Anthropic API also take it where clients of that API send theirs.
"""

import re

from starlette.datastructures import Headers
from starlette.types import Scope

from recollect.doors.rest import anthropic_api
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

ANTHROPIC_HEADER = "x-api-key"

# How a key of ours begins: of a namespace, or of a user of the gateway.
_OURS = ("rk_", "uk_")

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
    if anthropic_api.covers(scope["path"]) and (given := headers.getlist(ANTHROPIC_HEADER)):
        if len(given) > 1 or not given[0].strip():
            raise AccessDenied(_UNUSABLE)
        return given[0].strip()
    for name in OTHER_HEADERS:
        if headers.get(name):
            raise AccessDenied(f"The header {name} {_NOT_READ}")
    if _OUR_KEY.search(scope["query_string"]):
        raise AccessDenied(f"A key in the URL {_NOT_READ}")
    for _, value in scope["headers"]:
        if _OUR_KEY.search(value):
            raise AccessDenied(f"A key in another header {_NOT_READ}")
    return None


def is_foreign(scope: Scope, key: str) -> bool:
    """Whether a key is none of ours, on a route whose clients cannot do without one."""
    return anthropic_api.covers(scope["path"]) and not key.startswith(_OURS)
