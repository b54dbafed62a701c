"""Chats of LlamaIndex with our stores and memory block: the next chat recalls, and every other door finds it."""

import asyncio
import os
from uuid import uuid4

from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus
from mcp import Client

from recollect.adapters.connection import Connection
from recollect.adapters.llama_index import RecollectChatStore, RecollectMemoryBlock, RecollectMemoryStore

SERVER = os.environ["MEMORY_SERVER"]
ANNA, BORIS = f"anna {uuid4()}", f"boris {uuid4()}"
TOLD = "Our boat lies in the harbour of Trieste."
ASKED = "Where is our boat?"


def chat(user: str, session: str, **options: int) -> Memory:
    """As a program has it: the history is stored, so the block need not store it again."""
    block = RecollectMemoryBlock(SERVER, user_id=user, accept_short_term_memory=False)
    store = RecollectMemoryStore(SERVER, user_id=user)
    return Memory.from_defaults(session_id=session, memory_blocks=[block], chat_store=store, **options)


async def recall_in_the_next_chat() -> None:
    first = chat(ANNA, f"first of {ANNA}")
    await first.aput_messages([ChatMessage(role="user", content=TOLD), ChatMessage(role="assistant", content="Noted.")])
    second = chat(ANNA, f"second of {ANNA}")
    await second.aput(ChatMessage(role="user", content=ASKED))
    system, question = await second.aget()
    assert TOLD in system.content
    assert system.content.count(ASKED) == 0
    assert question.content == ASKED
    stranger = chat(BORIS, f"first of {BORIS}")
    assert TOLD not in str(await stranger.aget(ASKED))
    assert await stranger.aget("?!") == []


async def keep_a_long_chat() -> None:
    key = f"long, of {ANNA}"
    long = chat(ANNA, key, token_limit=60, token_flush_size=10)
    for number in range(8):
        await long.aput(ChatMessage(role="user", content=f"Line {number} of the logbook, written at sea."))
        await long.aput(ChatMessage(role="assistant", content=f"Answer {number}."))
    active = await long.aget_all(status=MessageStatus.ACTIVE)
    archived = await long.aget_all(status=MessageStatus.ARCHIVED)
    assert archived
    assert active
    assert archived + active == await long.aget_all()
    assert len(archived + active) == 16
    store = RecollectMemoryStore(SERVER, user_id=ANNA)
    assert (await store.delete_oldest_messages(key, 1)) == active[:1]
    await store.delete_messages(key, MessageStatus.ARCHIVED)
    assert await store.get_messages(key) == await store.get_messages(key, status=None) == active[1:]
    await store.add_message(key, archived[0], MessageStatus.ARCHIVED)
    assert await store.get_messages(key, MessageStatus.ARCHIVED) == archived[:1]
    assert await store.count_messages(key) == len(active) - 1
    assert await store.delete_message(key, 0) == active[1]
    await store.set_messages(key, [])
    assert await store.get_messages(key, None) == archived[:1]
    assert (await store.get_keys())[-1] == key
    await store.delete_messages(key)
    assert key not in await store.get_keys()


async def keep_what_leaves_another_store() -> None:
    block = RecollectMemoryBlock(SERVER, user_id=ANNA)
    session = f"flushed of {ANNA}"
    await block.aput([ChatMessage(role="user", content="The cat sleeps in the wheelhouse.")], session_id=session)
    assert "wheelhouse" in await block.aget([ChatMessage(role="user", content="Where does the cat sleep?")])
    kept = RecollectChatStore(SERVER).get_messages(session)
    assert kept == [ChatMessage(role="user", content="The cat sleeps in the wheelhouse.")]


def use_a_chat_store() -> None:
    store = RecollectChatStore(SERVER, user_id=ANNA)
    key = f"buffer of {ANNA}"
    buffer = ChatMemoryBuffer.from_defaults(chat_store=store, chat_store_key=key)
    picture = ChatMessage(role="user", blocks=[TextBlock(text="Look: \x00"), ImageBlock(image=b"\x89PNG\xff\x00")])
    buffer.put(picture)
    buffer.put(ChatMessage(role="assistant", content="A gull."))
    assert buffer.get_all() == [picture, ChatMessage(role="assistant", content="A gull.")]
    assert store.get_keys()[-1] == key
    assert store.delete_message(key, 5) is None
    assert store.delete_last_message(key) == ChatMessage(role="assistant", content="A gull.")
    assert store.delete_messages(key) == [picture]
    assert store.delete_messages(key) is None


def read_what_others_said() -> None:
    said = [{"role": "captain", "text": "Cast off!", "payload": {"of": "another framework"}}]
    Connection(SERVER).call("POST", "/sessions/{}/messages", f"aboard with {ANNA}", json={"messages": said})
    assert RecollectChatStore(SERVER).get_messages(f"aboard with {ANNA}") == [ChatMessage("Cast off!")]


async def find_by_other_doors() -> None:
    asked = {"query": ASKED, "user_id": ANNA}
    found = Connection(SERVER).call("POST", "/recall", json=asked)["memories"]
    assert (TOLD, f"first of {ANNA}") in [(memory["text"], memory["session_id"]) for memory in found]
    async with Client(f"{SERVER}/mcp") as mcp:
        assert TOLD in str((await mcp.call_tool("recall", asked)).structured_content)


asyncio.run(recall_in_the_next_chat())
asyncio.run(keep_a_long_chat())
asyncio.run(keep_what_leaves_another_store())
use_a_chat_store()
read_what_others_said()
asyncio.run(find_by_other_doors())
