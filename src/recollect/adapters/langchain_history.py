"""Chat histories of LangChain in Recollect: `RunnableWithMessageHistory(chain, RecollectChatHistory)`."""

import json
from collections.abc import Sequence

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    message_to_dict,
    messages_from_dict,
)

from recollect.adapters.connection import Connection
from recollect.adapters.session_log import RENDERED_CHARACTERS, Item, SessionLog, shared_connection
from recollect.settings import Settings

FORMAT = "langchain"

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "HumanMessageChunk": "user"}
_CLASSES: dict[str, type[BaseMessage]] = {"user": HumanMessage, "assistant": AIMessage, "system": SystemMessage}


class RecollectChatHistory(BaseChatMessageHistory):
    """The messages of one session, which come back as they were; what was said in them is found by recall.

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
    ) -> None:
        used = connection or shared_connection(url, key, namespace, settings)
        self._log = SessionLog(used, session_id, user_id, FORMAT)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """All messages, oldest first, read anew each time."""
        return list(map(_restored, self._log.all_now()))

    async def aget_messages(self) -> list[BaseMessage]:
        """The same without blocking the event loop."""
        return list(map(_restored, await self._log.last(None)))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages, all or none."""
        self._log.add_now(map(_stored, messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """The same without blocking the event loop."""
        await self._log.add(map(_stored, messages))

    def clear(self) -> None:
        """Remove all messages for good."""
        self._log.clear_now()

    async def aclear(self) -> None:
        """The same without blocking the event loop."""
        await self._log.clear()


def _stored(message: BaseMessage) -> Item:
    role = message.role if isinstance(message, ChatMessage) else _ROLES.get(message.type, message.type)
    return Item(role, _rendered(message), json.dumps(message_to_dict(message)))


def _rendered(message: BaseMessage) -> str:
    """What was said, and which tools were called; of a tool's answer the beginning."""
    text = str(message.text)
    if isinstance(message, AIMessage):
        calls = (f"{call['name']}({json.dumps(call['args'])})"[:RENDERED_CHARACTERS] for call in message.tool_calls)
        return "\n".join(filter(None, (text, *calls)))
    return text[:RENDERED_CHARACTERS] if message.type in ("tool", "function") else text


def _restored(item: Item) -> BaseMessage:
    if item.payload is not None:
        (message,) = messages_from_dict([json.loads(item.payload)])
        return message
    if item.role in _CLASSES:
        return _CLASSES[item.role](content=item.text)
    return ChatMessage(role=item.role, content=item.text)
