"""Ids of the gateway's chats in the log: no other door opens or writes to one, so that nothing mixes.

The first caller to name a session owns it. If a user of the gateway could name any session, what an application later
writes there would be the user's to read. So a chat `chat:7f3a` is stored as `chat:7f3a@` and 16 digits of its owner,
and ids of that form are refused everywhere else. Reading stays open: the application may look at its users' chats.
"""

import re
from hashlib import sha256

from recollect.errors import Invalid

CHAT = "chat:"

_MARK = re.compile(r"@[0-9a-f]{16}\Z")


def mark(user_id: str, realm: str) -> str:
    """What follows the id of a chat in the log. A migration computes the same, so it must not change without one."""
    return "@" + sha256(f"{len(user_id)} {user_id}{realm}".encode()).hexdigest()[:16]


def is_stored_chat(session_id: str) -> bool:
    """Whether a session of this id can only be a chat of the gateway."""
    return session_id.startswith(CHAT) and _MARK.search(session_id) is not None


def refuse_stored_chat(session_id: str) -> None:
    """For every way to write but the gateway's."""
    if is_stored_chat(session_id):
        raise Invalid(f"Session {session_id} is a gateway chat: only its user can add to it, with POST /memories/add")
