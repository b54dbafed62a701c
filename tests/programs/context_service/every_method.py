"""Every method of ContextService, close included."""

from recollect import ContextService

service = ContextService()
conversation = service.create_conversation("ann", title="Ferries")["id"]
service.record_interaction(conversation, "When does the ferry leave?", "At nine.", speaker="Ann")
assert len(service.fetch_chat_history(conversation)["messages"]) == 2
assert service.get_conversation(conversation)["id"] == conversation
assert [found["id"] for found in service.list_conversations("ann")] == [conversation]
service.close()
service.close()
assert service.get_conversation(conversation)["id"] == conversation
