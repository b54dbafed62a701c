"""Pages of another door behind the same gate: a browser brings a cookie for them, and shows refusals as pages."""

from typing import Protocol

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from recollect.memory.accounts.access import Credential


class Pages(Protocol):
    """What the gate asks of such a door."""

    def covers(self, path: str) -> bool:
        """Whether a path is one of its pages."""

    def is_public(self, path: str) -> bool:
        """Whether a page needs nobody to be known."""

    def looks_up(self, path: str, headers: Headers) -> bool:
        """Whether such a page asks the database for what anybody can make up."""

    def largest_body(self, path: str) -> int | None:
        """How many bytes may be sent to a page that takes more than others; None for others."""

    async def credential(self, headers: Headers) -> Credential | None:
        """The key that the browser signed in with, if it did."""

    def problem(self, scope: Scope, status: int, sentence: str) -> Response:
        """A refusal as a page."""
