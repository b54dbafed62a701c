"""The JSON-RPC 2.0 envelope of MCP messages, checked first: the SDK's errors are dumps of its models."""

from typing import Any

from recollect.errors import Invalid

# Both come back in answers; those that the protocol knows have some thirty characters.
MAX_METHOD_CHARACTERS = 255
MAX_ID_CHARACTERS = 255


def check(message: Any) -> None:
    """Refuse what is no message, with a sentence that says what one has."""
    if not isinstance(message, dict):
        raise Invalid(
            'The body must be one JSON-RPC message: an object, as in {"jsonrpc": "2.0", "id": 1, "method": ...}'
        )
    if message.get("jsonrpc") != "2.0":
        raise Invalid('The message must have "jsonrpc": "2.0"')
    given, method, params, error = (message.get(name) for name in ("id", "method", "params", "error"))
    if given is not None and (isinstance(given, bool) or not isinstance(given, int | str)):
        raise Invalid('"id" must be a string or a whole number')
    if isinstance(given, str) and len(given) > MAX_ID_CHARACTERS:
        raise Invalid(f'"id" is longer than {MAX_ID_CHARACTERS} characters')
    is_error = isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
    if "method" in message:
        if not isinstance(method, str) or not 0 < len(method) <= MAX_METHOD_CHARACTERS:
            raise Invalid(f'"method" must be a string of 1 to {MAX_METHOD_CHARACTERS} characters, as in "tools/call"')
        if params is not None and not isinstance(params, dict):
            raise Invalid('"params" must be an object or omitted')
    elif not isinstance(message.get("result"), dict) and not is_error:
        raise Invalid('The message must have a "method", or be an answer with a "result" or an "error"')
    elif given is None and "error" not in message:
        raise Invalid('An answer must have the "id" of its request')
