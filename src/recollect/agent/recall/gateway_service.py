"""The second memory: recalls from the gateway before a run and stores in it after one. Best effort, audited."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx

from recollect.agent.config import GatewayConfig, MemoryConfig
from recollect.agent.recall.gateway_client import Category, GatewayClient, GatewayError
from recollect.agent.recall.reference import SYSTEM_RULE, reduced, reference

# The contract's name for the agent's side of a turn.
ASSISTANT = "beaver"
# A caller may stop waiting for the gateway; the outcome of the request is unknown then.
STOPPED: Category = "stopped"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """What happened at the gateway, for the session's hidden events: no credentials, no texts."""

    name: str
    payload: dict[str, Any]


Record = Callable[[AuditEvent], Awaitable[None]]


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
        key = self._config.user_key
        usable = [result for entry in found.results if (result := reduced(entry, key))][: self._config.top_k]
        made = reference(usable, [memory for entry in found.pinned if (memory := reduced(entry, key))])
        payload = {
            "scopes": list(self._config.scope),
            "result_count": made.shown if made else 0,
            "received_count": len(found.results),
            "shortened_count": made.shortened if made else 0,
        }
        if found.pinned:
            payload["pinned_count"] = made.pinned if made else 0
        messages = (ReferenceMessage(made.text),) if made else ()
        return RecallOutcome(messages, AuditEvent("memory_gateway_recall_succeeded", payload))

    def recall_stopped(self) -> AuditEvent:
        """For a run that ends while the gateway is being asked."""
        return AuditEvent("memory_gateway_recall_failed", {"operation": "search", "category": STOPPED})

    async def persist_after_run(
        self,
        session_id: str,
        prompt: str,
        answer: str,
        asked_at_ms: int,
        answered_at_ms: int,
        record: Record | None = None,
    ) -> tuple[AuditEvent, ...]:
        """Give the gateway the prompt and the answer, and nothing else; then wait until they can be recalled.

        `record` gets each event when it happens, also that of a step in which this is cancelled.
        """
        chat = f"chat:{session_id}"
        told: list[AuditEvent] = []

        async def happened(event: AuditEvent) -> None:
            told.append(event)
            if record:
                await record(event)

        # A clock that was set back during the run does not turn their order round.
        asked = max(1, asked_at_ms)
        answered = max(asked + 1, answered_at_ms)
        messages = [
            {"sender_id": self._config.user_id, "role": "user", "timestamp": asked, "content": prompt},
            {"sender_id": ASSISTANT, "role": "assistant", "timestamp": answered, "content": answer},
        ]
        added = AuditEvent("memory_gateway_add_succeeded", {"session_id": chat, "message_count": len(messages)})
        if await self._step("add", self._client.add(chat, messages), {"session_id": chat}, added, happened):
            flushed = AuditEvent("memory_gateway_flush_succeeded", {"session_id": chat})
            known = {"session_id": chat, "add_succeeded": True}
            await self._step("flush", self._client.flush(chat), known, flushed, happened)
        return tuple(told)

    async def _step(
        self,
        operation: str,
        call: Awaitable[None],
        known: dict[str, Any],
        succeeded: AuditEvent,
        happened: Record,
    ) -> bool:
        """One call, and the event that says what became of it."""
        failed = f"memory_gateway_{operation}_failed"
        try:
            await call
        except GatewayError as problem:
            await happened(AuditEvent(failed, known | _failure(problem)))
            return False
        except asyncio.CancelledError:
            await happened(AuditEvent(failed, known | {"operation": operation, "category": STOPPED}))
            raise
        await happened(succeeded)
        return True

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.close()


def open_gateway(
    memory: MemoryConfig, transport: httpx.AsyncBaseTransport | None = None
) -> MemoryGatewayService | None:
    """The service if hybrid memory is configured. An implicit hybrid without credentials is one logged warning."""
    if memory.gateway is not None:
        return MemoryGatewayService(memory.gateway, transport)
    if memory.mode == "hybrid":
        _log.warning(
            "The memory gateway is off, because the configuration does not set %s. Curated memory still works. "
            "Set the missing fields, or set memory.mode to curated.",
            ", ".join(memory.missing),
        )
    return None


def _failure(problem: GatewayError) -> dict[str, Any]:
    """What may be told of a fault."""
    told = {"operation": problem.operation, "category": problem.category}
    return told if problem.status is None else told | {"status": problem.status}
