"""An agent with the memory as its MCP server over standard input and output: every tool, a write last."""

import asyncio
import os
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client


async def main() -> None:
    # A server logs every request to standard error, which is its client's too.
    quiet = os.environ | {"RECOLLECT_LOG_LEVEL": "WARNING"}
    server = StdioServerParameters(command="recollect", args=["mcp"], env=quiet)
    async with Client(stdio_client(server)) as client:

        async def call(tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(tool, arguments)
            return None if result.is_error else result.structured_content

        assert await call("ping")
        stored = await call("remember", text="The spare key is under the flowerpot.", at="2025-02-14T12:00:00Z")
        assert await call("recall", query="Where is the key?")
        assert await call("forget", id=stored["id"])
        conversation = (await call("create_conversation", user_id="ann"))["id"]
        assert await call("get_conversation", conversation_id=conversation)
        assert await call("list_conversations", user_id="ann")
        assert await call("fetch_chat_history", conversation_id=conversation)
        said = await call("store_raw_dialogue", session_id="s", speaker="user", content="The ferry leaves at nine.")
        assert await call("compress_to_l2_insight", content="The ferry: nine o'clock.", source_ids=[said["id"]])
        assert await call("hybrid_search", query_text="ferry")
        item = await call("update_working_memory", content="The ferry.", importance=0.5)
        assert await call("archive_working_memory", id=item["added_id"])
        assert await call("store_episode", query="When?", reward=0.5, reflection="Look at the timetable.")
        assert await call("graph_add_node", label="Person", name="Ann")
        assert await call("graph_add_edge", source_name="Ann", target_name="Ferry", relation="TAKES")
        assert await call("graph_query_neighbors", node_name="Ann")
        assert await call("graph_find_path", start_node="Ann", end_node="Ferry")
        golden = await call("add_golden_query", query="ferry times")
        assert await call("list_golden_queries")
        # Without keys of providers nobody judges, and nothing is expected: these are refused, and that ends too.
        await call("store_dual_judge_scores", query_id=golden["query_id"], query="ferry", docs=[])
        await call("accept_judgements", query_id=golden["query_id"])
        await call("get_golden_test_results")
        assert await call("remove_golden_query", query_id=golden["query_id"])
        old = await call("add_memory", text="Ann lives in Berlin.", user_id="ann", key="home city")
        new = await call("add_memory", text="Ann lives in Lisbon.", user_id="ann", key="home city")
        assert (await call("get_memory", id=old["id"]))["superseded_by"] == new["id"]
        assert await call("update_memory", id=new["id"], pinned=True)
        assert await call("list_memories", user_id="ann", as_of=new["since"])
        assert (await call("pinned_memories", user_id="ann"))["memories"]
        assert await call("undo_memory", id=old["id"])
        assert await call("memory_history", id=old["id"])
        assert await call("delete_memory", id=old["id"], restore=True)
        assert await client.read_resource("memory://working-memory")
        await call("record_interaction", conversation_id=conversation, user_message="When?", assistant_response="Nine.")


asyncio.run(main())
