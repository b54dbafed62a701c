"""The OpenAI SDK: one client a process, made when first needed. Serves every server that speaks the same protocol."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING

from recollect.inference.failures import OPENAI

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from recollect.inference.sdk import Account


class OpenAiApi:
    """The SDK is imported only by those who use it."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._client: AsyncOpenAI | None = None

    async def client(self) -> AsyncOpenAI:
        """Raises Misconfigured without the package or a key. Importing takes a second, and nobody else waits for it."""
        if self._client is None:
            options = self._account.client_options()
            try:
                sdk = await asyncio.to_thread(import_module, "openai")
            except ModuleNotFoundError:
                raise OPENAI.without_package() from None
            if self._client is None:
                self._client = sdk.AsyncOpenAI(**options)
        assert self._client is not None
        return self._client

    def translated(self) -> AbstractContextManager[None]:
        """Raise the SDK's errors as ours."""
        import openai

        return self._account.translated(openai)

    async def close(self) -> None:
        """Let go of connections."""
        if self._client is not None:
            await self._client.close()
