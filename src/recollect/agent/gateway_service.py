"""The second memory: what the gateway recalls before a run, and what it is given after one. Best effort, audited."""

import logging
from dataclasses import dataclass
from typing import Any

import httpx

from recollect.agent.config import GatewayConfig, MemoryConfig
from recollect.agent.gateway_client import GatewayClient, GatewayError
from recollect.agent.reference import SYSTEM_RULE, message, reduced

# The contract's name for the agent's side of a turn.
ASSISTANT = "beaver"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """What happened at the gateway, for the session's hidden events: no credentials, no texts."""

    name: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReferenceMessage:
    """What was recalled, labelled and fenced as untrusted data, within a budget."""

    text: str


@dataclass(frozen=True, slots=True)
class RecallOutcome:
    """The messages to show the model, if any, and the event to record."""

    messages: tuple[ReferenceMessage, ...]
    event: AuditEvent


class MemoryGatewayService:
    """Asks the gateway before a run and tells it after one. A fault of the gateway is an event, never an exception."""

    system_rule = SYSTEM_RULE

    def __init__(self, config: GatewayConfig, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._config = config
        self._client = GatewayClient(config, transport)

    async def recall_before_run(self, session_id: str, prompt: str) -> RecallOutcome:
        """What the gateway knows about the prompt, as one reference message or none."""
        try:
            found = await self._client.search(session_id, prompt)
        except GatewayError as problem:
            return RecallOutcome((), AuditEvent("memory_gateway_recall_failed", _failure(problem)))
        usable = [result for entry in found if (result := reduced(entry, self._config.user_key))][: self._config.top_k]
        text = message(usable)
        payload = {"scopes": list(self._config.scope), "result_count": len(usable)}
        return RecallOutcome(
            () if text is None else (ReferenceMessage(text),), AuditEvent("memory_gateway_recall_succeeded", payload)
        )

    async def persist_after_run(
        self, session_id: str, prompt: str, answer: str, asked_at_ms: int, answered_at_ms: int
    ) -> tuple[AuditEvent, ...]:
        """Give the gateway the prompt and the answer, and nothing else; then wait until they can be recalled."""
        chat = f"chat:{session_id}"
        asked = max(1, asked_at_ms)
        messages = [
            {"sender_id": self._config.user_id, "role": "user", "timestamp": asked, "content": prompt},
            # A clock that was set back during the run does not turn the order round.
            {
                "sender_id": ASSISTANT,
                "role": "assistant",
                "timestamp": max(asked + 1, answered_at_ms),
                "content": answer,
            },
        ]
        try:
            await self._client.add(chat, messages)
        except GatewayError as problem:
            return (AuditEvent("memory_gateway_add_failed", {"session_id": chat} | _failure(problem)),)
        added = AuditEvent("memory_gateway_add_succeeded", {"session_id": chat, "message_count": len(messages)})
        return added, await self._flush(chat)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.close()

    async def _flush(self, chat: str) -> AuditEvent:
        try:
            await self._client.flush(chat)
        except GatewayError as problem:
            payload = {"session_id": chat, "add_succeeded": True} | _failure(problem)
            return AuditEvent("memory_gateway_flush_failed", payload)
        return AuditEvent("memory_gateway_flush_succeeded", {"session_id": chat})


def open_gateway(
    memory: MemoryConfig, transport: httpx.AsyncBaseTransport | None = None
) -> MemoryGatewayService | None:
    """The service if hybrid memory is configured. An implicit hybrid without credentials is one logged warning."""
    if memory.gateway is not None:
        return MemoryGatewayService(memory.gateway, transport)
    if memory.mode == "hybrid":
        _log.warning(
            "The memory gateway is off, because the configuration lacks %s. Curated memory works as ever. "
            "Set the fields, or set memory.mode to curated.",
            ", ".join(memory.missing),
        )
    return None


def _failure(problem: GatewayError) -> dict[str, Any]:
    """What may be told of a fault."""
    told = {"operation": problem.operation, "category": problem.category}
    return told if problem.status is None else told | {"status": problem.status}
