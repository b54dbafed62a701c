"""Export: everything that a namespace or a user has, as lines of JSON that are the same for the same state."""

import json
from collections.abc import AsyncIterator

from recollect.flows.forgetting.forget import Forget
from recollect.flows.kinds import registry
from recollect.flows.kinds.target import USER, Target
from recollect.language import controls
from recollect.memory.records import Records
from recollect.storage.database import Database

FORMAT = "recollect-export"
VERSION = 1

# The last line: a file without it was cut off.
END = "end"


class Exporting:
    """Writes out one moment of a namespace, while others go on writing."""

    def __init__(self, database: Database, records: Records, forget: Forget) -> None:
        self._database = database
        self._records = records
        self._forget = forget

    async def lines(self, namespace: str, user_id: str | None = None) -> AsyncIterator[str]:
        """A header, one line for each record, and a last line that counts them; few are in memory at a time.

        Of a user: sessions with their messages and summaries, memories with their history, resources, memory stores,
        and the insights that come from the user's messages alone. Nothing else belongs to anybody. NotFound if the user
        has nothing.
        """
        if user_id is not None:
            # A misspelt name would look like a user who has nothing.
            await self._forget.count(namespace, Target(USER, user_id))
        yield _line({"kind": FORMAT, "version": VERSION, "namespace": namespace, "user": user_id})
        count = 0
        async with self._database.snapshot(namespace) as db:
            for kind in registry.KINDS:
                # As the database wrote it: to read and write it here could change its numbers.
                begin = _line({"kind": kind.name})[:-1]
                async for record in self._records.all(db, kind.record, user_id):
                    count += 1
                    yield controls.escaped_json(f"{begin}, {record[1:]}")
        yield _line({"kind": END, "records": count})


def _line(fields: dict[str, object]) -> str:
    return controls.escaped_json(json.dumps(fields, ensure_ascii=False))
