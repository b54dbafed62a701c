"""Sessions of the OpenAI Agents SDK in Recollect: `Runner.run(agent, "Hello", session=RecollectSession("chat-7"))`."""

import json
from typing import Any, cast

from agents.items import TResponseInputItem
from agents.memory import SessionABC, SessionSettings
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from recollect.adapters.connection import Connection
from recollect.adapters.session_log import RENDERED_CHARACTERS, Item, SessionLog, shared_connection, text_of_parts
from recollect.settings import Settings

FORMAT = "openai-agents"

# Of messages; whatever else the log holds was said by somebody.
_ROLES = ("user", "assistant", "system", "developer")


class RecollectSession(SessionABC):
    """The items of one session, which come back as they were; what was said in them is found by recall.

    Without a `url`, the embedded engine in this process keeps them. `user_id` is whose session it is, if it is new.
    """

    def __init__(
        self,
        session_id: str,
        *,
        user_id: str | None = None,
        url: str | None = None,
        key: str | None = None,
        namespace: str | None = None,
        settings: Settings | None = None,
        connection: Connection | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or SessionSettings())
        used = connection or shared_connection(url, key, namespace, settings)
        self._open_log: SessionLog | None = SessionLog(used, session_id, user_id, FORMAT)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest items, oldest first; all without a limit here or in the settings, or with a negative one."""
        most = resolve_session_limit(limit, self.session_settings)
        items = await self._log.last(None if most is not None and most < 0 else most)
        return [_restored(item) for item in items]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all or none."""
        await self._log.add([_stored(cast(dict[str, Any], item)) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item for good."""
        item = await self._log.pop()
        return None if item is None else _restored(item)

    async def clear_session(self) -> None:
        """Remove all items for good."""
        await self._log.clear()

    def close(self) -> None:
        """End this object, as the SDK's own do; the connection stays open for other sessions."""
        self._open_log = None

    @property
    def _log(self) -> SessionLog:
        if self._open_log is None:
            raise RuntimeError(f"{type(self).__name__} is closed: make another one for {self.session_id}")
        return self._open_log


def _stored(item: dict[str, Any]) -> Item:
    """An item that is no message is known by its type."""
    role = item.get("role") or item.get("type") or "item"
    return Item(str(role), _rendered(item), json.dumps(item))


def _rendered(item: dict[str, Any]) -> str:
    """What was said, or which tool was called and what it answered; nothing of an item that only models read."""
    if item.get("type") == "function_call":
        return f"{item.get('name')}({item.get('arguments')})"[:RENDERED_CHARACTERS]
    if item.get("type") == "function_call_output":
        return text_of_parts(item.get("output"))[:RENDERED_CHARACTERS]
    return text_of_parts(item.get("content"))


def _restored(item: Item) -> TResponseInputItem:
    if item.payload is not None:
        return cast(TResponseInputItem, json.loads(item.payload))
    role = item.role if item.role in _ROLES else "user"
    return cast(TResponseInputItem, {"role": role, "content": item.text})
