"""Every route of the memory gateway."""

import time
from typing import Any

import httpx

client = httpx.Client(base_url="http://127.0.0.1:8000", timeout=60)
ids = {"user_id": f"user-{time.time_ns()}"}


def ask(method: str, path: str, json: Any = None, **names: str) -> Any:
    answer = client.request(method, path.format(**names), json=json)
    assert answer.is_success, answer.text
    return answer.json()


ids["user_key"] = ask("POST", "/users", {"user_id": ids["user_id"]})["user_key"]
said = {"sender_id": "ann", "role": "user", "timestamp": 1780000000000, "content": "I fly in the morning."}
assert ask("POST", "/memories/add", ids | {"session_id": "chat:1", "messages": [said]})
assert ask("POST", "/memories/flush", ids | {"session_id": "chat:1"})
assert ask("POST", "/resources", ids | {"resource_uri": "r:1", "title": "Travel", "text": "Book two weeks ahead."})
search = {"conversation_id": "1", "query": "When does she travel?", "scope": ["current_chat", "resources"], "top_k": 3}
assert ask("POST", "/memories/search", ids | search)
assert ask("DELETE", "/users/{user_id}", user_id=ids["user_id"])
