"""A user of the gateway over HTTP, as the contract's client would be."""

import json
from dataclasses import dataclass
from typing import Any

import httpx

NOON = 1780000000000
"""The timestamp of a chat's first message."""


@dataclass(frozen=True, slots=True)
class GatewayUser:
    """What a test says as one user, and what it expects of every answer."""

    http: httpx.AsyncClient
    user_id: str
    user_key: str

    async def post(self, path: str, **body: Any) -> httpx.Response:
        # Written here, because httpx refuses to send half of a surrogate pair.
        content = json.dumps({"user_id": self.user_id, "user_key": self.user_key} | body)
        return await self.http.post(path, content=content, headers={"Content-Type": "application/json"})

    async def ok(self, path: str, **body: Any) -> Any:
        answer = await self.post(path, **body)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    async def refused(self, status: int, path: str, **body: Any) -> str:
        """The text of a refusal, which never shows the key or how we are made."""
        answer = await self.post(path, **body)
        assert answer.status_code == status, answer.text
        assert "detail" in answer.json()
        assert self.user_key not in answer.text
        assert "Traceback" not in answer.text
        return answer.text

    async def say(self, conversation_id: str, *texts: str, **where: str) -> Any:
        """Add messages of this user, one second apart, and wait until they are found by meaning."""
        session_id = f"chat:{conversation_id}"
        added = await self.ok("/memories/add", session_id=session_id, messages=said(self.user_id, *texts), **where)
        await self.ok("/memories/flush", session_id=session_id, **where)
        return added

    async def found(self, query: str, *scope: str, **more: Any) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = (
            await self.ok("/memories/search", query=query, scope=list(scope) or ["all_user_memory"], **more)
        )["results"]
        return results

    async def texts(self, query: str, *scope: str, **more: Any) -> list[str]:
        return [result["text"] for result in await self.found(query, *scope, **more)]


async def new_user(http: httpx.AsyncClient, user_id: str) -> GatewayUser:
    answer = await http.post("/users", json={"user_id": user_id})
    assert answer.status_code == 201, answer.text
    return GatewayUser(http, user_id, answer.json()["user_key"])


def said(sender_id: str, *texts: str, role: str = "user", start: int = NOON) -> list[dict[str, Any]]:
    return [
        {"sender_id": sender_id, "role": role, "timestamp": start + 1000 * number, "content": text}
        for number, text in enumerate(texts)
    ]
