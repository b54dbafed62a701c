"""Loaded by schemathesis: requests to the gateway come from a user it knows, or all would end at the door."""

import os
from typing import Any

import schemathesis

from tests.fuzz import KEY, USER


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    if isinstance(body, dict) and _plausible(body.get("user_id")) and _plausible(body.get("user_key")):
        return body | {"user_id": os.environ[USER], "user_key": os.environ[KEY]}
    return body


def _plausible(value: object) -> bool:
    """A credential that was made invalid on purpose must stay so."""
    return isinstance(value, str) and 0 < len(value) <= 255
