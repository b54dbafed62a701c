"""Puts ours in the place of the history in memory that LangChain's own tests build; equal if their messages are."""

from collections.abc import Sequence
from uuid import uuid4

import langchain_core.chat_history
from langchain_core.messages import BaseMessage

from recollect.adapters.connection import Connection
from recollect.adapters.langchain_history import RecollectChatHistory

_connection = Connection()


class InMemoryChatMessageHistory(RecollectChatHistory):
    """Built as theirs is: each is a session of its own, with some messages to begin with."""

    def __init__(self, messages: Sequence[BaseMessage] = ()) -> None:
        super().__init__(str(uuid4()), connection=_connection)
        self.add_messages(messages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InMemoryChatMessageHistory) and self.messages == other.messages

    __hash__ = None  # type: ignore[assignment]


langchain_core.chat_history.InMemoryChatMessageHistory = InMemoryChatMessageHistory  # type: ignore[misc, assignment]
