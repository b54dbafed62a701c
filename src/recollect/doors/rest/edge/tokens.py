"""Tokens: what the gate asks a door that issues tokens of its own."""

from typing import Protocol

from recollect.memory.accounts.access import Credential


class Tokens(Protocol):
    """A door that issues tokens."""

    def covers(self, path: str) -> bool:
        """Whether a path is an endpoint that needs no key or token."""

    def challenge(self, path: str, *, is_invalid: bool) -> str | None:
        """The `WWW-Authenticate` header for a path; `is_invalid` if the request had a token that is not valid."""

    def refusal(self, path: str, token: str | None) -> str | None:
        """What to say of a token that is missing or not valid; None where tokens play no part."""

    async def credential(self, path: str, token: str) -> Credential | None:
        """The key that a token stands for at this path, if any."""
