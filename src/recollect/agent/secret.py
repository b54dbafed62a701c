"""A credential that can be passed around but is never shown."""

import hmac
from typing import Any, NoReturn, final

MASK = "***"


@final
class Secret:
    """Wraps a credential from the moment it is read. Whatever shows it shows the mask."""

    __slots__ = ("_value",)
    # A hash could be compared with those of guesses; and nothing needs a set of credentials.
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The credential itself: for the body or header of the request that needs it, and for nothing else."""
        return self._value

    def removed_from(self, text: str) -> str:
        """A text of someone else, without the credential should it hold it."""
        return text.replace(self._value, MASK) if self._value else text

    def __bool__(self) -> bool:
        return bool(self._value.strip())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(_bytes(self), _bytes(other))

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, format_spec: str) -> str:
        return MASK

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Secret":
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")


def _bytes(secret: Secret) -> bytes:
    return secret.reveal().encode("utf-8", "surrogatepass")
