"""KeyUses: notes when each key was last used, in the background so that no request waits."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

from recollect import tasks
from recollect.errors import RecollectError
from recollect.memory.accounts.access import Credential, Keys
from recollect.storage.database import Database

# How often the last use of a key is noted.
NOTED_SECONDS = 60.0

# Keys waiting to be noted while the database is slow. Beyond that, a key is noted when it is used again.
MAX_WAITING = 1000

_log = logging.getLogger(__name__)


class KeyUses:
    """Notes one key after another."""

    def __init__(self, database: Database, keys: Keys) -> None:
        self._database = database
        self._keys = keys
        self._waiting: dict[tuple[str, str], None] = {}
        self._used = asyncio.Event()
        self._task: tasks.BackgroundTask | None = None

    @property
    def waiting(self) -> int:
        """How many keys wait to be noted."""
        return len(self._waiting)

    def note(self, credential: Credential) -> None:
        """Note that a key was used, unless that was noted a moment ago."""
        noted = credential.last_used_at
        if noted is not None and noted > datetime.now(UTC) - timedelta(seconds=NOTED_SECONDS):
            return
        if len(self._waiting) < MAX_WAITING:
            self._waiting[credential.namespace, credential.key_id] = None
        self._used.set()
        if self._task is None:
            self._task = tasks.BackgroundTask("recollect-key-use")
            self._task.start(self._run())

    async def close(self) -> None:
        """Stop."""
        if self._task is not None:
            await self._task.stop()

    async def _run(self) -> None:
        while True:
            await self._used.wait()
            self._used.clear()
            while self._waiting:
                # Removed only when it is noted, so that a key used in the meantime is not queued twice.
                used = namespace, key_id = next(iter(self._waiting))
                try:
                    async with self._database.transaction(namespace) as tx:
                        await self._keys.note_use(tx, key_id, NOTED_SECONDS)
                except RecollectError as problem:
                    _log.warning("The last use of a key was not noted: %s", problem, extra={"namespace": namespace})
                del self._waiting[used]
