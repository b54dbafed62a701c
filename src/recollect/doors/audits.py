"""Lines of the audit log, as REST and the command line show them."""

from datetime import datetime
from typing import Literal, Self

from pydantic import BaseModel, Field

from recollect.flows.accounts.audit_trail import Page
from recollect.memory.accounts.audit import AuditFilter, Line


class TouchedItems(BaseModel):
    """Items of one kind, and what was done to them."""

    event: str = Field(
        description="read, use (a connection), or what was done: add, update, delete, forget, import, change, prune",
        examples=["read"],
    )
    kind: str = Field(examples=["memory"])
    count: int = Field(description="How many", examples=[12])
    ids: list[str] = Field(description="The ids of the first hundred")


class AuditLine(BaseModel):
    """One operation: who did what, when, through which door, and to which items."""

    number: int = Field(description="Its place in the chain, without gaps")
    at: datetime
    key_id: str | None = Field(description="The key that was used", examples=["3f9a1c20"])
    author: str | None = Field(description="The label of the key, or the user of the gateway")
    door: str = Field(description="rest, gateway, mcp, console, cli or library", examples=["rest"])
    action: str = Field(description="The route, tool, command or method", examples=["POST /recall"])
    outcome: Literal["done", "refused", "failed"]
    request_id: str | None = Field(description="The same as in the logs and the header X-Request-ID")
    touched: list[TouchedItems]
    hash: str = Field(description="SHA-256 of the previous hash and this line, in hex")

    @classmethod
    def of(cls, line: Line, namespace: str) -> Self:
        """A line of the log."""
        return cls(**line.fields(namespace), hash=line.hash.hex())


class AuditPage(BaseModel):
    """Lines, the newest first."""

    lines: list[AuditLine]
    next: int | None = Field(description="Pass it as `before` for older lines; null if there are none")

    @classmethod
    def of(cls, page: Page, namespace: str) -> Self:
        """A page of the log."""
        return cls(lines=[AuditLine.of(line, namespace) for line in page.lines], next=page.before)


def audit_filter(
    by: str | None, door: str | None, action: str | None, outcome: str | None, item: str | None
) -> AuditFilter:
    """A filter from a caller's values, where empty means any. An item is a kind, or a kind and an id: `memory:ID`."""
    kind, _, item_id = (item or "").partition(":")
    return AuditFilter(by or None, door or None, action or None, outcome or None, kind or None, item_id or None)
