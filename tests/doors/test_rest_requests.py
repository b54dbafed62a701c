"""What a request may look like: no unknown field, numbers that are numbers, ids with a slash, JSON."""

import json
from collections.abc import AsyncIterator
from typing import Any, Literal

import httpx
import pytest

from recollect.engine import Engine
from tests.rest_servers import serving

MEMORY = {"messages": "Tea is hot.", "category": "fact", "user_id": "u"}
SEARCH = {"query": "tea", "user_id": "u"}
SAID = {"role": "user", "content": "Hello"}
USER = {"user_id": "anna", "user_key": "uk_x"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


@pytest.fixture
async def http(engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(engine) as client:
        yield client


async def refused(http: httpx.AsyncClient, method: str, path: str, **request: Any) -> str:
    answer = await http.request(method, path, **request)
    assert answer.status_code == 422, (path, answer.status_code, answer.text)
    detail = answer.json()["detail"]
    return detail if isinstance(detail, str) else str(detail[0]["msg"])


UNKNOWN: list[tuple[str, str, dict[str, Any], str]] = [
    ("POST", "/ltm/memories", MEMORY | {"user": "u"}, "Unknown field 'user'. Did you mean user_id?"),
    ("POST", "/ltm/memories/search", SEARCH | {"category": "fact"}, "Did you mean categories?"),
    ("POST", "/ltm/memories/search", SEARCH | {"top_k": 5}, "Known: user_id, agent_id, session_id, query,"),
    ("PUT", "/ltm/memories/x", {"data": "Tea.", "text": "Tea."}, "Unknown field 'text'"),
    ("POST", "/stm/s/messages", {"messages": [SAID], "userid": "u"}, "Unknown field 'userid'. Did you mean user_id?"),
    ("POST", "/stm/s/messages", {"messages": [SAID | {"user_id": "u"}]}, "Unknown field 'user_id'"),
    ("POST", "/stm/s/messages", {"messages": [SAID | {"metdata": {}}]}, "Did you mean metadata?"),
    ("POST", "/sessions/s/messages", {"messages": [SAID]}, "Did you mean text?"),
    ("PUT", "/stm/s/config", {"strategie": "sliding_window"}, "Did you mean strategy?"),
    ("POST", "/users", {"user_id": "anna", "\ud800" + "n" * 1000: 1}, "Unknown field '?nnn"),
    ("POST", "/memories/search", USER | {"query": "x", "scope": ["resources"], "topk": 1}, "Did you mean top_k?"),
    ("POST", "/memories/flush", USER | {"session_id": "chat:1", "wait": True}, "Unknown field 'wait'"),
    ("POST", "/resources", USER | {"resource_uri": "a:b", "text": "x", "titel": "y"}, "Did you mean title?"),
]


async def test_an_unknown_field_is_refused_with_the_nearest_known_name(http: httpx.AsyncClient) -> None:
    for method, path, body, sentence in UNKNOWN:
        # Written here, because httpx refuses to send half of a surrogate pair.
        said = await refused(http, method, path, content=json.dumps(body), headers=JSON)
        assert sentence in said
        assert len(said) < 400


async def test_an_unknown_query_parameter_is_refused_on_every_route_of_memory(http: httpx.AsyncClient) -> None:
    assert "Did you mean user_id?" in await refused(http, "GET", "/ltm/memories?userid=u")
    assert "Did you mean limit?" in await refused(http, "GET", "/stm/s/messages?limits=5")
    assert "Did you mean dry_run?" in await refused(http, "DELETE", "/users/anna?dryrun=true")
    assert "None are known." in await refused(http, "DELETE", "/stm/s?force=true")
    assert (await http.get("/health?now")).status_code == 200


async def test_a_query_parameter_stands_once_but_for_lists(http: httpx.AsyncClient) -> None:
    assert "limit is given more than once" in await refused(http, "GET", "/stm/s/messages?limit=1&limit=2")
    assert "user_id is given more than once" in await refused(http, "GET", "/ltm/memories?user_id=a&user_id=a")
    assert "dry_run is given more than once" in await refused(http, "DELETE", "/users/a?dry_run=true&dry_run=false")
    assert (await http.get("/ltm/memories?categories=fact&categories=preference")).status_code == 200


async def test_a_list_of_no_messages_adds_none_and_begins_no_session(http: httpx.AsyncClient) -> None:
    answer = (await http.post("/stm/none/messages", json={"messages": []})).raise_for_status()
    assert answer.json() == {"session_id": "none", "added": 0, "messages": []}
    assert (await http.delete("/stm/none")).json()["deleted"] is False


async def test_true_is_no_number_and_neither_is_a_text(http: httpx.AsyncClient) -> None:
    for wrong in (True, "5", 1.5):
        for name in ("max_messages", "max_tokens"):
            assert "integer" in await refused(http, "PUT", "/stm/s/config", json={name: wrong})
        assert "integer" in await refused(http, "POST", "/ltm/memories/search", json=SEARCH | {"limit": wrong})
        search = USER | {"query": "x", "scope": ["resources"], "top_k": wrong}
        assert "integer" in await refused(http, "POST", "/memories/search", json=search)


async def test_a_list_of_no_categories_is_refused(http: httpx.AsyncClient) -> None:
    assert "at least 1 item" in await refused(http, "POST", "/ltm/memories/search", json=SEARCH | {"categories": []})


UNREADABLE: list[tuple[bytes, dict[str, str], str]] = [
    (b"", JSON, "The body is empty: send a JSON object"),
    (b"{}", {}, "send it with the header Content-Type: application/json"),
    (b"{}", {"Content-Type": "application/x-www-form-urlencoded"}, "Content-Type: application/json"),
    (b'{"messages": "\xff"}', JSON, "The body is not UTF-8 from byte 14 on"),
    (b'{"a" 1}', JSON, "The body is not JSON: Expecting ':' delimiter: line 1 column 6"),
    (b"[" * 50_000, JSON, "nested too deeply"),
    (b"9" * 5000, JSON, "The body is not JSON: a number has more than 4,300 digits: write it as a string"),
]


async def test_a_body_that_cannot_be_read_is_refused_with_what_to_do(http: httpx.AsyncClient) -> None:
    for content, headers, sentence in UNREADABLE:
        for method, path in (("POST", "/ltm/memories"), ("PUT", "/stm/s/config"), ("POST", "/memories/add")):
            assert sentence in await refused(http, method, path, content=content, headers=headers)


async def test_a_refusal_names_the_message_that_it_is_about(http: httpx.AsyncClient) -> None:
    blank = await refused(http, "POST", "/stm/s/messages", json={"messages": [SAID, SAID | {"content": " "}]})
    assert blank.startswith("messages[1].content is empty")
    nul = SAID | {"metadata": {"a": "\x00"}}
    assert "messages[1].metadata" in await refused(http, "POST", "/stm/s/messages", json={"messages": [SAID, nul]})


async def test_a_message_without_a_role_is_refused_in_a_sentence(http: httpx.AsyncClient) -> None:
    for path, body in (("/stm/s/messages", {}), ("/ltm/memories", MEMORY)):
        for nobody in ({"content": "Hi"}, {"role": None, "content": "Hi"}):
            answer = await http.post(path, json=body | {"messages": [SAID, nobody]})
            (fault,) = answer.json()["detail"]
            assert "A message needs a role" in fault["msg"]
            assert 1 in fault["loc"]


CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "I like tea."}, {"type": "image_url", "image_url": {}}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}], "refusal": None},
    {"role": "assistant", "tool_calls": [{"id": "2"}]},
    {"role": "assistant", "content": ""},
    {"role": "assistant", "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]},
]


async def test_chat_messages_come_as_chat_clients_have_them(http: httpx.AsyncClient) -> None:
    added = (await http.post("/stm/s/messages", json={"messages": CHAT})).json()
    assert [message["content"] for message in added["messages"]] == ["I like tea.", "One.\nTwo."]
    assert added["added"] == 2
    memory = (await http.post("/ltm/memories", json=MEMORY | {"messages": CHAT})).json()
    assert memory["memory"] == "user: I like tea.\nassistant: One.\nTwo."


async def test_content_of_another_form_is_refused_once(http: httpx.AsyncClient) -> None:
    for path, body in (("/stm/s/messages", {}), ("/ltm/memories", MEMORY)):
        for content in (7, {"text": "Hi"}):
            answer = await http.post(path, json=body | {"messages": [SAID | {"content": content}]})
            assert answer.status_code == 422
            assert [fault["msg"] for fault in answer.json()["detail"]] == [
                "content must be a string, a list of parts or null"
            ]
    nothing = await refused(http, "POST", "/stm/s/messages", json={"messages": [SAID | {"content": None}]})
    assert nothing.startswith("messages[0].content is empty")


async def test_an_encoded_slash_belongs_to_the_id_of_a_session_and_a_plain_one_does_not(
    http: httpx.AsyncClient,
) -> None:
    for session_id, path in (
        ("team/7", "team%2F7"),
        ("/", "%2f"),
        ("50%2F", "50%252F"),
        ("x/messages", "x%2Fmessages"),
    ):
        said = {"messages": [{"role": "user", "content": session_id}]}
        assert (await http.post(f"/stm/{path}/messages", json=said)).json()["session_id"] == session_id
        (message,) = (await http.get(f"/stm/{path}/messages")).json()["messages"]
        assert message["content"] == session_id
    assert (await http.post("/stm/team/7/messages", json={"messages": [SAID]})).status_code == 404
    assert (await http.delete("/stm/x/messages")).status_code == 405
    assert (await http.delete("/stm/x%2Fmessages")).json() == {"session_id": "x/messages", "deleted": True}
    assert (await http.get("/ltm/memories/a%2Fb")).json()["detail"] == "Unknown memory a/b"
    assert (await http.delete("/stm/team%2F7/", follow_redirects=True)).json()["session_id"] == "team/7"


async def test_a_path_or_query_that_is_not_utf8_is_refused(http: httpx.AsyncClient) -> None:
    for path in ("/stm/%ff/messages", "/stm/%fe/context", "/ltm/memories?user_id=%ff", "/users/%c3"):
        method = "DELETE" if path.startswith("/users") else "GET"
        assert "is not UTF-8" in await refused(http, method, path)
    assert (await http.get("/stm/%c3%a9/messages")).json()["session_id"] == "é"


async def test_a_load_balancer_may_ask_with_head(http: httpx.AsyncClient) -> None:
    answer = await http.head("/health")
    assert (answer.status_code, answer.content) == (200, b"")
