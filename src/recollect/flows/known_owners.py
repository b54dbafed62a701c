"""Who owns recent sessions, so that a write need not ask before it writes."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from recollect.memory.sessions import SessionOwner

# A few megabytes.
_KNOWN_SESSIONS = 10_000


class KnownOwners:
    """Owners of recent sessions, cached. Every write verifies them: a stale entry costs one retry."""

    def __init__(self) -> None:
        self._owners: OrderedDict[tuple[str, str], SessionOwner] = OrderedDict()

    def find(self, namespace: str, session_ids: Iterable[str]) -> dict[str, SessionOwner]:
        """Those that are cached."""
        found = ((session_id, self._owners.get((namespace, session_id))) for session_id in session_ids)
        return {session_id: owner for session_id, owner in found if owner is not None}

    def learn(self, namespace: str, owners: Mapping[str, SessionOwner]) -> None:
        """Cache them, in place of those that were not used for longest."""
        for session_id, owner in owners.items():
            self._owners[namespace, session_id] = owner
            self._owners.move_to_end((namespace, session_id))
        while len(self._owners) > _KNOWN_SESSIONS:
            self._owners.popitem(last=False)

    def unlearn(self, namespace: str, session_ids: Iterable[str]) -> None:
        """They may have changed."""
        for session_id in session_ids:
            self._owners.pop((namespace, session_id), None)
