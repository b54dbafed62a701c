"""LangChain's retriever on Recollect: `pip install 'recollect[langchain]'`."""

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, PrivateAttr, SecretStr

from recollect.adapters.connection import Connection

_ROUTE = ("POST", "/recall")


class RecollectRetriever(BaseRetriever):
    """Recalls from everything that is stored on the server at `url`, or without one in the memory of this machine.

    Each document has in its metadata the id, kind, score, relevance and time of what it is. The same fields, such as
    `k` and `user_id`, can be given to `invoke`, where they hold for that call.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    url: str | None = None
    key: SecretStr | None = None
    connection: Connection | None = Field(default=None, exclude=True)
    k: int = 10
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    exclude_session: str | None = None
    kinds: list[str] | None = None
    filter: dict[str, Any] | None = None
    """What the metadata of an item must contain."""
    min_relevance: float | str | None = None
    half_life_days: float | None = None

    _connection: Connection = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Connect on the first call."""
        super().model_post_init(context)
        key = None if self.key is None else self.key.get_secret_value()
        self._connection = self.connection or Connection(self.url, key)

    def close(self) -> None:
        """Let go of the server or the database; the next call opens it again."""
        self._connection.close()

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **asked: Any
    ) -> list[Document]:
        return _documents(self._connection.call(*_ROUTE, json=self._body(query, asked)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **asked: Any
    ) -> list[Document]:
        return _documents(await self._connection.call_async(*_ROUTE, json=self._body(query, asked)))

    def _body(self, query: str, asked: dict[str, Any]) -> dict[str, Any]:
        names = ("user_id", "agent_id", "session_id", "exclude_session", "kinds", "min_relevance", "half_life_days")
        own = {name: getattr(self, name) for name in (*names, "k", "filter")} | asked
        named = {"query": query, "top_k": own.pop("k"), "metadata": own.pop("filter"), **own}
        return {name: value for name, value in named.items() if value is not None}


def _documents(answer: dict[str, Any]) -> list[Document]:
    return [
        Document(
            page_content=memory["text"],
            id=memory["id"],
            metadata={name: value for name, value in memory.items() if name not in _ELSEWHERE and value is not None},
        )
        for memory in answer["memories"]
    ]


_ELSEWHERE = ("text", "explanation")
