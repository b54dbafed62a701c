"""What the registry is told of bookmarks."""

from datetime import datetime

from recollect import checks
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.kinds.kind import NUMBERS, Ids, Item, Kind, Owned, SessionOwners, as_json
from recollect.flows.kinds.rules import Fields
from recollect.memory.index.passages import Source, analyse
from recollect.storage.database import Statements, Transaction
from tests.flows.toy_kind.bookmarks import RECORD, Bookmarks

BOOKMARKS = Bookmarks()


def bookmark_source(fields: Fields, _: SessionOwners) -> Source:
    return Source(
        "bookmark",
        str(fields["id"]),
        analyse(fields["reason"]),
        datetime.fromisoformat(fields["created_at"]),
        owner=fields["user_id"],
        metadata=as_json({"address": fields["address"]}),
    )


async def remove_bookmarks(_memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> None:
    tally.add("bookmarks", await BOOKMARKS.remove(tx, ids))


async def count_bookmarks(_memory: Capabilities, _db: Statements, ids: Ids, tally: Tally) -> None:
    tally.add("bookmarks", len(ids))


BOOKMARK = Kind(
    RECORD,
    {"user_id": checks.identifier, "address": checks.text, "reason": checks.text},
    item=Item(
        "bookmark",
        NUMBERS,
        remove_bookmarks,
        bookmark_source,
        Owned(lambda _memory, db, **page: BOOKMARKS.of_user(db, **page), count_bookmarks),
    ),
)
