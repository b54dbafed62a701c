"""The MCP tool `forget`: one memory, or all of a session or a user, with a receipt."""

from pathlib import Path
from uuid import uuid4

from recollect.storage import embedded
from tests.mcp_servers import over_stdio


def test_forget_gives_a_receipt(server: embedded.Lease, tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log, over_stdio(f"test-{uuid4()}", log) as client:
        document = client.ok("remember", text="Owls hoot.")["id"]
        conversation = client.ok("create_conversation", user_id="ann")["id"]
        client.ok("record_interaction", conversation_id=conversation, user_message="Owls?", assistant_response="Hoot.")
        client.ok("store_raw_dialogue", session_id="talk", speaker="bob", content="Cats purr.")
        assert client.ok("forget", id=document) == {
            "id": document,
            "rows": {"documents": 1, "passages": 1},
            "insights_left": [],
            "twins_left": [],
        }
        assert client.ok("forget", id="user:ann")["rows"] == {"messages": 2, "passages": 2, "sessions": 1}
        assert "No data for user ann" in client.refused("forget", id="user:ann")
        assert [memory["text"] for memory in client.ok("recall", query="owls or cats")["memories"]] == ["Cats purr."]
        assert client.ok("forget", id="session:talk")["id"] == "session:talk"
        assert "one of message" in client.refused("forget", id="namespace:default")


def test_a_text_is_remembered_once_and_its_twins_are_shown_and_forgotten(
    server: embedded.Lease, tmp_path: Path
) -> None:
    with (tmp_path / "log").open("w") as log, over_stdio(f"test-{uuid4()}", log) as client:
        first = client.ok("remember", text="Owls hoot.")
        assert not first["existing"]
        assert client.ok("remember", text="Owls hoot.") == {"id": first["id"], "existing": True}
        second = client.ok("remember", text="owls hoot!")
        assert not second["existing"]
        (recalled,) = client.ok("recall", query="owls")["memories"]
        assert {recalled["id"], *recalled["repeats"]} == {first["id"], second["id"]}
        assert client.ok("forget", id=recalled["id"])["twins_left"] == recalled["repeats"]
        (left,) = client.ok("recall", query="owls")["memories"]
        assert ([left["id"]], left["repeats"]) == (recalled["repeats"], [])
        client.ok("remember", text="OWLS hoot.")
        gone = client.ok("forget", id=left["id"], twins=True)
        assert (gone["rows"], gone["twins_left"]) == ({"documents": 2, "passages": 2}, [])
        assert client.ok("recall", query="owls")["memories"] == []
        assert "twins applies only to a single item" in client.refused("forget", id="session:talk", twins=True)
