"""What screening has found, as REST and the command line show it."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field

from recollect.doors import cursors
from recollect.doors.memories import IF_SET
from recollect.errors import Invalid
from recollect.flows.defence.review import Reviewed, ReviewPage
from recollect.memory.index.held import HeldPlace


class ReviewedItem(BaseModel):
    """A suspicious item."""

    item: str = Field(
        description="Its name, such as `message:ID`", examples=["document:0190c0de-0000-7000-8000-000000000000"]
    )
    state: Literal["held", "warned", "released"] = Field(
        description="`held` items are not recalled, `warned` ones are, `released` ones are again"
    )
    reasons: list[str] = Field(examples=[["it tells the model to ignore its instructions"]])
    trust: str = Field(description="Where the text comes from", examples=["document"])
    text: str | None = Field(description="The beginning of it; null if the item is gone")
    at: datetime
    author: str | None = Field(description="The label of the key that it was stored with")
    door: str = Field(description="The way by which it was stored", examples=["rest"])
    decided_by: Annotated[str | None, IF_SET] = None
    decided_at: Annotated[datetime | None, IF_SET] = None

    @classmethod
    def of(cls, reviewed: Reviewed) -> Self:
        """An item of the list."""
        told = reviewed.item._asdict()
        shown = {name: told[name] for name in cls.model_fields if name in told}
        return cls(**shown, item=reviewed.name, text=reviewed.text)


class ReviewedItems(BaseModel):
    """The newest first; `next` is the cursor of the next page, null behind the last."""

    items: list[ReviewedItem]
    next: str | None

    @classmethod
    def of(cls, page: ReviewPage) -> Self:
        """A page of the list."""
        return cls(items=list(map(ReviewedItem.of, page.items)), next=written(page.next))


def written(place: HeldPlace | None) -> str | None:
    """A place in the list as a cursor."""
    return None if place is None else cursors.write(place.at, f"{place.kind}:{place.item_id}")


def read(cursor: str | None) -> HeldPlace | None:
    """The place again."""
    if not cursor:
        return None
    at, name = cursors.read(cursor, str, "next")
    kind, colon, item_id = name.partition(":")
    if not colon:
        raise Invalid("The cursor is invalid: pass next of the previous page")
    return HeldPlace(at, kind, item_id)
