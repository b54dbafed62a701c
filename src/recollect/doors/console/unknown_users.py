"""A filter by a user of whom nothing is stored: most often the id was typed in other letters."""

from typing import NamedTuple
from urllib.parse import urlencode

from recollect import origin
from recollect.doors.console.visit import Visit
from recollect.memory.memories import MemoryScope
from recollect.memory.sessions import SessionFilter


class UnknownUser(NamedTuple):
    """What was typed; if a user differs from it only by case or spaces around, that one, and the link to ask so."""

    typed: str
    similar: str | None = None
    link: str | None = None


async def unknown_user(visit: Visit, name: str, page: str) -> UnknownUser | None:
    """The user that a parameter of the address names, if there is none; a key with limits is told nothing of others."""
    typed = visit.asked(name)
    if not typed or origin.current().limits is not None or await is_known(visit, typed):
        return None
    bare = typed.strip()
    for similar in dict.fromkeys((bare, bare.lower(), bare.capitalize(), bare.title(), bare.upper())):
        # Some letters become two in capitals, and an id has a largest length.
        if similar != typed and len(similar) <= len(typed) and await is_known(visit, similar):
            asked = visit.request.query_params.multi_items()
            query = urlencode([(key, similar if key == name else value) for key, value in asked])
            return UnknownUser(typed, similar, f"{page}?{query}")
    return UnknownUser(typed)


async def is_known(visit: Visit, user_id: str) -> bool:
    """Whether there is a session of a user, or a memory in force."""
    if await visit.engine.sessions.listed(visit.namespace, SessionFilter(user_id, None, None), 1, None, 1):
        return True
    return bool((await visit.engine.memories.newest(visit.namespace, MemoryScope(user_id), 1)).memories)
