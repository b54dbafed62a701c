"""Every route of the REST door but those of the gateway."""

from typing import Any

import httpx

client = httpx.Client(base_url="http://127.0.0.1:8000", timeout=60)


def ask(method: str, path: str, json: Any = None, **names: str) -> Any:
    answer = client.request(method, path.format(**names), json=json)
    assert answer.is_success, answer.text
    return answer.json() if answer.headers["Content-Type"] == "application/json" else answer.text


SESSION = {"session_id": "a-program"}
ferry = {"role": "user", "content": "The ferry leaves at nine.", "speaker": "Ann", "at": "2025-02-14T12:00:00Z"}
said = {"messages": [ferry], "user_id": "a-program"}
assert ask("GET", "/health")
assert ask("GET", "/ready")
assert ask("POST", "/stm/{session_id}/messages", said, **SESSION)
assert ask("GET", "/stm/{session_id}/messages", **SESSION)
assert ask("PUT", "/stm/{session_id}/config", {"strategy": "sliding_window", "max_messages": 5}, **SESSION)
assert ask("GET", "/stm/{session_id}/context", **SESSION)
assert ask("DELETE", "/stm/{session_id}", **SESSION)
assert ask("POST", "/sessions", {"id": "a-chat", "user_id": "a-program"})
CHAT = {"session_id": "a-chat"}
call = {"role": "tool", "payload": {"name": "book", "seats": 2}}
asked = {"messages": [{"role": "user", "text": "Two tickets, please."}, call]}
added = ask("POST", "/sessions/{session_id}/messages", asked, **CHAT)["messages"]
assert ask("GET", "/messages/{message_id}", message_id=added[0]["id"])["session_id"] == "a-chat"
assert ask("DELETE", "/sessions/{session_id}/messages/{message_id}", **CHAT, message_id=added[0]["id"])
assert ask("POST", "/sessions/{session_id}/messages", asked, **CHAT)
assert ask("GET", "/sessions/{session_id}/messages", **CHAT)["messages"][2]["payload"] == call["payload"]
assert ask("PUT", "/sessions/{session_id}", {"metadata": {"stage": "booking"}}, **CHAT)
assert ask("PATCH", "/sessions/{session_id}", {"title": "Tickets"}, **CHAT)["metadata"] == {"stage": "booking"}
assert ask("GET", "/sessions/{session_id}", **CHAT)["title"] == "Tickets"
assert ask("GET", "/sessions")["sessions"]
assert ask("DELETE", "/sessions/{session_id}/messages/last", **CHAT)["message"]["role"] == "tool"
assert ask("DELETE", "/sessions/{session_id}/messages", **CHAT) == {"removed": 2}
assert ask("DELETE", "/sessions/{session_id}", **CHAT) == {"deleted": True}
told = {"messages": "Prefers dark mode.", "category": "preference", "user_id": "a-program", "at": ferry["at"]}
added = ask("POST", "/ltm/memories", told)
MEMORY = {"memory_id": str(added["id"])}
assert ask("POST", "/ltm/memories/search", {"query": "colours of the screen", "user_id": "a-program"})
assert ask("GET", "/ltm/memories")
assert client.get("/ltm/memories/pinned", params={"user_id": "a-program"}).json()["omitted"] == 0
assert ask("GET", "/ltm/memories/{memory_id}", **MEMORY)
assert ask("PUT", "/ltm/memories/{memory_id}", {"data": "Prefers light mode."}, **MEMORY)
assert ask("PATCH", "/ltm/memories/{memory_id}", {"category": "fact"}, **MEMORY)
assert ask("GET", "/ltm/memories/{memory_id}/history", **MEMORY)
assert ask("GET", "/ltm/memories/{memory_id}/lineage", **MEMORY)["events"]
assert ask("GET", "/lineage/{name}", name=f"memory:{added['id']}")["text"] == "Prefers light mode."
# Nothing superseded it.
assert not client.post("/ltm/memories/{memory_id}/undo".format(**MEMORY)).is_success
assert ask("DELETE", "/ltm/memories/{memory_id}", **MEMORY)
heard = {"messages": [{"role": "user", "content": "Clara lives in Lyon."}], "user_id": "a-program"}
assert ask("POST", "/ltm/memories/facts", heard)["method"] == "verbatim"
assert client.delete("/ltm/memories", params={"user_id": "a-program"}).json() == {"deleted": 1}
assert ask("GET", "/audit") == {"lines": [], "next": None}
assert ask("GET", "/review") == {"items": [], "next": None}
assert client.post("/review/release", json={"item": "insight:12"}).status_code == 404
assert client.post("/review/forget", json={"item": "insight:12"}).status_code == 404
assert ask("POST", "/recall", {"query": "When does the ferry leave?", "min_relevance": "default", "explain": True})
where = {"agent": "an-agent", "session_id": "a-program", "project": "/home/ann/ferry", "user_id": "a-program"}
assert (
    ask("POST", "/coding/turns", {**where, "key": "1", "prompt": ferry["content"], "answer": "Noted."})["messages"] == 2
)
assert ask("POST", "/coding/context", {**where, "session_id": "another"})["context"]
put = {"op": "put", "path": ["users", "anna"], "key": "seat", "value": {"seat": "window"}}
find = {"op": "search", "path": ["users"], "query": "Where does she sit?"}
assert ask("POST", "/records/batch", {"operations": [put]})["answers"][0]["record"]
assert ask("POST", "/records/batch", {"operations": [find]})["answers"][0]["records"][0]["value"] == put["value"]
THREAD = {"thread_id": "a thread"}
packed = {"type": "bytes", "body": "AAEC"}
point = {"checkpoint_id": "1", "checkpoint": packed, "versions": {"messages": "1"}, "values": {"messages": packed}}
write = {"checkpoint_id": "1", "task_id": "t", "writes": [{"idx": 0, "channel": "messages", "value": packed}]}
assert ask("PUT", "/checkpoints/{thread_id}", point, **THREAD)
assert ask("POST", "/checkpoints/{thread_id}/writes", write, **THREAD)
assert ask("POST", "/checkpoints/{thread_id}/copy", {"target_thread_id": "a copy"}, **THREAD) == {"copied": 1}
assert ask("POST", "/checkpoints/prune", {"thread_ids": ["a copy"], "strategy": "delete"}) == {"deleted": 1}
assert ask("POST", "/checkpoints/delete-runs", {"run_ids": ["none"]}) == {"deleted": 0}
[kept] = ask("POST", "/checkpoints/list", {})["checkpoints"]
assert (kept["values"], kept["writes"][0]["value"]) == ({"messages": packed}, packed)
assert ask("DELETE", "/checkpoints/{thread_id}", **THREAD) == {"deleted": 1}
assert ask("GET", "/changes")["changes"]
with client.stream("GET", "/changes", headers={"Accept": "text/event-stream"}) as events:
    assert next(events.iter_lines()).startswith("id: ")
assert "recollect" in ask("GET", "/metrics")
STORE = {"memory_store_id": ask("POST", "/v1/memory_stores", {"name": "A program's"})["id"]}
assert ask("GET", "/v1/memory_stores")["data"]
assert ask("GET", "/v1/memory_stores/{memory_store_id}", **STORE)
assert ask("POST", "/v1/memory_stores/{memory_store_id}", {"description": "Notes"}, **STORE)
note = {"path": "/notes/ferry.md", "content": "The ferry leaves at nine."}
file = ask("POST", "/v1/memory_stores/{memory_store_id}/memories", note, **STORE)
FILE = STORE | {"memory_id": file["id"], "memory_version_id": file["memory_version_id"]}
assert ask("GET", "/v1/memory_stores/{memory_store_id}/memories", **STORE)["data"]
assert ask("GET", "/v1/memory_stores/{memory_store_id}/memories/{memory_id}", **FILE)["content"] == note["content"]
assert ask("POST", "/v1/memory_stores/{memory_store_id}/memories/{memory_id}", {"content": "At ten."}, **FILE)
assert ask("GET", "/v1/memory_stores/{memory_store_id}/memory_versions", **STORE)["data"]
assert ask("GET", "/v1/memory_stores/{memory_store_id}/memory_versions/{memory_version_id}", **FILE)["content"]
assert ask("POST", "/v1/memory_stores/{memory_store_id}/memory_versions/{memory_version_id}/redact", **FILE)
assert ask("DELETE", "/v1/memory_stores/{memory_store_id}/memories/{memory_id}", **FILE)
assert ask("POST", "/v1/memory_stores/{memory_store_id}/archive", **STORE)
assert ask("DELETE", "/v1/memory_stores/{memory_store_id}", **STORE)
