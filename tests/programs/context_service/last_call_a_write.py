"""The synchronous calls, a write last, and nobody closes."""

from recollect import ContextService

conversation = ContextService.create_conversation("ann")["id"]
ContextService.record_interaction(conversation, "When does the ferry leave?", "At nine.")
