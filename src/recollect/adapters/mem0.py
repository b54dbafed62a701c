"""mem0's Memory and AsyncMemory over Recollect, so that a program that uses mem0 changes one import."""

import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from recollect import tasks
from recollect.adapters import mem0_requests as requests
from recollect.adapters.connection import Connection
from recollect.adapters.mem0_requests import UNSET, Steps
from recollect.adapters.mem0_shapes import scope_of
from recollect.errors import Invalid, RecollectError
from recollect.settings import Settings

_INSTRUCTIONS = ("custom_instructions", "custom_fact_extraction_prompt")

Result = TypeVar("Result")


class _Configured:
    """What both classes have: the connection, and what is used of a configuration."""

    def __init__(
        self,
        config: Any = None,
        *,
        url: str | None = None,
        key: str | None = None,
        namespace: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        given = _given(config)
        server = given.pop("recollect", {})
        self.config = config
        self.custom_instructions = next((each for each in map(given.get, _INSTRUCTIONS) if each), None)
        _tell_unused(given.keys() - {"version", *_INSTRUCTIONS})
        self._connection = Connection(
            url or server.get("url"),
            key or server.get("key"),
            namespace=namespace or server.get("namespace"),
            settings=settings,
        )

    @classmethod
    def from_config(cls, config_dict: dict[str, Any]) -> Self:
        """From mem0's configuration; `{"recollect": {"url": ..., "key": ...}}` names a server."""
        return cls(config_dict)

    def close(self) -> None:
        """Let go of the server or the database; the next call opens it again."""
        self._connection.close()


class Memory(_Configured):
    """mem0's Memory: in this process, or with `url` (and `key`) on a server."""

    def add(
        self,
        messages: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> dict[str, Any]:
        """Store the facts in what was said, or with `infer=False` each message; `timestamp` is when it was said."""
        scope = scope_of(user_id, agent_id, run_id)
        return self._run(
            requests.add(
                messages,
                scope,
                metadata,
                timestamp,
                expiration_date,
                infer,
                memory_type,
                prompt or self.custom_instructions,
            )
        )

    def search(
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: dict[str, Any] | None = None,
        threshold: float = 0.1,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The memories that answer a question, best first, none with a score below the threshold."""
        top_k = requests.options(kwargs, "search", top_k, rerank=rerank, explain=explain, reference_date=reference_date)
        return self._run(requests.search(query, top_k, filters, threshold, show_expired))

    def get_all(
        self, *, filters: dict[str, Any] | None = None, top_k: int = 20, show_expired: bool = False, **kwargs: Any
    ) -> dict[str, Any]:
        """The memories of a scope, newest first."""
        return self._run(requests.get_all(filters, requests.options(kwargs, "get_all", top_k), show_expired))

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """One memory; None if there is none of that id."""
        return self._run(requests.get(memory_id))

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: dict[str, Any] | None = None,
        expiration_date: Any = UNSET,
        data: str | None = None,
    ) -> dict[str, Any]:
        """Give a memory another text, more metadata, or another last day."""
        return self._run(requests.update(memory_id, data if text is None else text, metadata, expiration_date))

    def delete(self, memory_id: str) -> dict[str, Any]:
        """Delete one memory."""
        return self._run(requests.delete(memory_id))

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Delete the memories that have all of these ids."""
        return self._run(requests.delete_all(scope_of(user_id, agent_id, run_id)))

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """What happened to a memory; after it is deleted, without its texts."""
        return self._run(requests.history(memory_id))

    def reset(self) -> None:
        """Delete all long-term memories of the namespace, also those that others stored."""
        self._run(requests.reset())

    def chat(self, query: str) -> None:
        """Not a part of mem0 either."""
        raise NotImplementedError("Chat function not implemented yet.")

    def _run(self, steps: Steps[Result]) -> Result:
        try:
            request = next(steps)
            while True:
                try:
                    answer = self._connection.call(request.method, request.path, *request.ids, **request.options())
                except RecollectError as problem:
                    request = steps.throw(problem)
                else:
                    request = steps.send(answer)
        except StopIteration as end:
            result: Result = end.value
            return result

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncMemory(_Configured):
    """mem0's AsyncMemory: the same methods, to be awaited."""

    async def add(
        self,
        messages: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
        llm: Any = None,
    ) -> dict[str, Any]:
        """Store the facts in what was said, or with `infer=False` each message; `timestamp` is when it was said."""
        if llm is not None:
            warnings.warn("Recollect does not use `llm`, but the model that RECOLLECT_LLM names", stacklevel=2)
        scope = scope_of(user_id, agent_id, run_id)
        return await self._run(
            requests.add(
                messages,
                scope,
                metadata,
                timestamp,
                expiration_date,
                infer,
                memory_type,
                prompt or self.custom_instructions,
            )
        )

    async def search(
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: dict[str, Any] | None = None,
        threshold: float = 0.1,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The memories that answer a question, best first, none with a score below the threshold."""
        top_k = requests.options(kwargs, "search", top_k, rerank=rerank, explain=explain, reference_date=reference_date)
        return await self._run(requests.search(query, top_k, filters, threshold, show_expired))

    async def get_all(
        self, *, filters: dict[str, Any] | None = None, top_k: int = 20, show_expired: bool = False, **kwargs: Any
    ) -> dict[str, Any]:
        """The memories of a scope, newest first."""
        return await self._run(requests.get_all(filters, requests.options(kwargs, "get_all", top_k), show_expired))

    async def get(self, memory_id: str) -> dict[str, Any] | None:
        """One memory; None if there is none of that id."""
        return await self._run(requests.get(memory_id))

    async def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: dict[str, Any] | None = None,
        expiration_date: Any = UNSET,
        data: str | None = None,
    ) -> dict[str, Any]:
        """Give a memory another text, more metadata, or another last day."""
        return await self._run(requests.update(memory_id, data if text is None else text, metadata, expiration_date))

    async def delete(self, memory_id: str) -> dict[str, Any]:
        """Delete one memory."""
        return await self._run(requests.delete(memory_id))

    async def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Delete the memories that have all of these ids."""
        return await self._run(requests.delete_all(scope_of(user_id, agent_id, run_id)))

    async def history(self, memory_id: str) -> list[dict[str, Any]]:
        """What happened to a memory; after it is deleted, without its texts."""
        return await self._run(requests.history(memory_id))

    async def reset(self) -> None:
        """Delete all long-term memories of the namespace, also those that others stored."""
        await self._run(requests.reset())

    async def chat(self, query: str) -> None:
        """Not a part of mem0 either."""
        raise NotImplementedError("Chat function not implemented yet.")

    async def _run(self, steps: Steps[Result]) -> Result:
        try:
            request = next(steps)
            while True:
                try:
                    answer = await self._connection.call_async(
                        request.method, request.path, *request.ids, **request.options()
                    )
                except RecollectError as problem:
                    request = steps.throw(problem)
                else:
                    request = steps.send(answer)
        except StopIteration as end:
            result: Result = end.value
            return result

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await tasks.in_thread(self.close)


def _tell_unused(names: set[str]) -> None:
    if names:
        warnings.warn(
            f"Recollect does not use these settings of mem0: {', '.join(sorted(names))}. It has a store and an "
            "embedding model of its own, and the language model that RECOLLECT_LLM names.",
            stacklevel=3,
        )


def _given(config: Any) -> dict[str, Any]:
    """What a configuration sets: a dict, or an object of mem0's own class."""
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return dict(config)
    named = getattr(config, "model_fields_set", None)
    if named is None:
        raise Invalid(f"config must be a dict or a MemoryConfig of mem0, not {type(config).__name__}")
    return {name: getattr(config, name) for name in named}
