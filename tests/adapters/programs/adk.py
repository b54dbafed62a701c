"""An agent of ADK with our sessions and memory: what it was told is found in the next session and by every door."""

import asyncio
import os
from collections.abc import AsyncIterator
from uuid import uuid4

from google.adk.agents import LlmAgent
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools import load_memory
from google.genai import types
from mcp import Client

from recollect.adapters.adk import RecollectMemoryService, RecollectSessionService
from recollect.adapters.connection import Connection

SERVER = os.environ["MEMORY_SERVER"]
APP = "garden: 100 %"
ANNA, BORIS = f"anna/{uuid4()}", f"boris:{uuid4()}"
TOLD = "We planted three walnut trees behind the barn."


class Gardener(BaseLlm):
    """Asks its memory once, then repeats what that said."""

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        last = llm_request.contents[-1].parts[0]
        if last.function_response:
            found = last.function_response.response["result"].memories
            part = types.Part(text=found[0].content.parts[0].text if found else "I do not know.")
        elif last.text.endswith("?"):
            part = types.Part.from_function_call(name="load_memory", args={"query": last.text})
        else:
            part = types.Part(text="Noted.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def say(runner: Runner, user: str, session: str, text: str) -> str:
    message = types.Content(role="user", parts=[types.Part(text=text)])
    said = [event async for event in runner.run_async(user_id=user, session_id=session, new_message=message)]
    return str(said[-1].content.parts[0].text)


async def talk(sessions: RecollectSessionService, memory: RecollectMemoryService) -> None:
    agent = LlmAgent(name="gardener", model=Gardener(model="fake"), tools=[load_memory])
    runner = Runner(app_name=APP, agent=agent, session_service=sessions, memory_service=memory)
    first = await sessions.create_session(app_name=APP, user_id=ANNA, session_id="spring")
    assert await say(runner, ANNA, first.id, TOLD) == "Noted."
    told = await sessions.get_session(app_name=APP, user_id=ANNA, session_id=first.id)
    await memory.add_session_to_memory(told)
    await memory.add_session_to_memory(told)
    assert [event.content.parts[0].text for event in told.events] == [TOLD, "Noted."]
    assert len((await sessions.get_session(app_name=APP, user_id=ANNA, session_id=first.id)).events) == 2
    second = await sessions.create_session(app_name=APP, user_id=ANNA)
    assert await say(runner, ANNA, second.id, "Which trees grow behind the barn?") == TOLD
    stranger = await sessions.create_session(app_name=APP, user_id=BORIS)
    assert await say(runner, BORIS, stranger.id, "Which trees grow behind the barn?") == "I do not know."
    others = await memory.search_memory(app_name="another", user_id=ANNA, query="trees behind the barn")
    assert others.memories == []


async def search(memory: RecollectMemoryService, query: str) -> SearchMemoryResponse:
    return await memory.search_memory(app_name=APP, user_id=ANNA, query=query)


async def remember(memory: RecollectMemoryService) -> None:
    content = types.Content(parts=[types.Part(text="Anna is allergic to hazelnuts.")])
    entry = MemoryEntry(content=content, author="doctor", timestamp="2026-02-14T12:00:00+01:00")
    await memory.add_memory(app_name=APP, user_id=ANNA, memories=[entry], custom_metadata={"source": "visit"})
    found = (await search(memory, "hazelnuts")).memories[0]
    assert found.content.parts[0].text == "Anna is allergic to hazelnuts."
    assert (found.author, found.timestamp, found.custom_metadata["source"]) == (
        "doctor",
        "2026-02-14T11:00:00Z",
        "visit",
    )
    event = Event(author="user", content=types.Content(role="user", parts=[types.Part(text="The gate code is 4711.")]))
    for _ in range(2):
        await memory.add_events_to_memory(app_name=APP, user_id=ANNA, events=[event])
    event.content.parts.append(types.Part(text="It was changed."))
    await memory.add_events_to_memory(app_name=APP, user_id=ANNA, events=[event])
    said = (await search(memory, "gate code")).memories
    texts = [memory.content.parts[0].text for memory in said]
    assert [text for text in texts if "gate" in text] == ["The gate code is 4711."] == texts[:1], texts
    for gone in (found.id, said[0].id):
        await memory.delete_memory(app_name=APP, user_id=BORIS, memory_id=gone)
        assert gone in [entry.id for entry in (await search(memory, "hazelnuts, gate code")).memories]
    for gone in (found.id, said[0].id, said[0].id):
        await memory.delete_memory(app_name=APP, user_id=ANNA, memory_id=gone)
    left = {entry.id for entry in (await search(memory, "hazelnuts, gate code")).memories}
    assert not left & {found.id, said[0].id}
    assert (await search(memory, "?!")).memories == []


async def find_by_other_doors() -> None:
    asked = {"query": "trees behind the barn", "user_id": ANNA}
    server = Connection(SERVER)
    found = (await server.call_async("POST", "/recall", json=asked))["memories"]
    place = f"adk:garden%3A 100 %25:{ANNA}:spring"
    assert (TOLD, place) in [(memory["text"], memory["session_id"]) for memory in found]
    async with Client(f"{SERVER}/mcp") as mcp:
        answer = await mcp.call_tool("recall", asked)
        assert TOLD in str(answer.structured_content), answer
    messages = {
        "messages": [{"role": "user", "text": "Two of them died."}, {"role": "tool", "speaker": "Eve", "text": "?"}]
    }
    await server.call_async("POST", "/sessions/{}/messages", place, json=messages)


async def continue_what_rest_began(sessions: RecollectSessionService) -> None:
    place, said = f"adk:rest:{ANNA}:hers", {"messages": [{"role": "user", "text": "Hello."}], "user_id": ANNA}
    await Connection(SERVER).call_async("POST", "/sessions/{}/messages", place, json=said)
    session = await sessions.get_session(app_name="rest", user_id=ANNA, session_id="hers")
    await sessions.append_event(session, Event(author="robot", actions=EventActions(state_delta={"user:greeted": 1})))
    read = await sessions.get_session(app_name="rest", user_id=ANNA, session_id="hers")
    assert ([event.author for event in read.events], read.state) == (["user", "robot"], {"user:greeted": 1})


async def keep_states(sessions: RecollectSessionService) -> None:
    user, app = f"user {uuid4()}", f"app {uuid4()}"
    state = {"own": None, "user:shared": [1.5], "app:all": {"a": None}, "temp:now": 1}
    session = await sessions.create_session(app_name=app, user_id=user, session_id=" padded ", state=state)
    assert (session.id, session.state) == ("padded", {key: state[key] for key in ("own", "user:shared", "app:all")})
    assert await sessions.get_session(app_name=app, user_id=user, session_id="padded") == session
    changed = {"own": 2, "user:shared": None, "app:more": "x", "temp:now": 3}
    event = Event(author="robot", actions=EventActions(state_delta=changed), long_running_tool_ids={"a", "b"})
    await sessions.append_event(session, event)
    assert session.state == {"own": 2, "user:shared": None, "app:all": {"a": None}, "app:more": "x", "temp:now": 3}
    read = await sessions.get_session(app_name=app, user_id=user, session_id="padded")
    assert read.state == {"own": 2, "user:shared": None, "app:all": {"a": None}, "app:more": "x"}
    assert (read.events, read.last_update_time) == ([event], event.timestamp)
    assert "temp:now" not in read.events[0].actions.state_delta
    assert await sessions.get_user_state(app_name=app, user_id=user) == {"shared": None}
    assert await sessions.get_user_state(app_name=app, user_id="nobody") == {}
    later = await sessions.create_session(app_name=app, user_id="other", session_id="padded")
    assert later.state == {"app:all": {"a": None}, "app:more": "x"}
    await sessions.append_event(session, Event(author="robot", timestamp=later.last_update_time + 10))
    for asked, users in ((user, [user]), ("other", ["other"]), (None, ["other", user])):
        listed = (await sessions.list_sessions(app_name=app, user_id=asked)).sessions
        assert [each.user_id for each in listed] == users
        assert all(each.events == [] and each.state["app:more"] == "x" for each in listed)
    await sessions.delete_session(app_name=app, user_id=user, session_id="padded")
    assert await sessions.get_session(app_name=app, user_id=user, session_id="padded") is None
    assert await sessions.get_user_state(app_name=app, user_id=user) == {"shared": None}


async def refuse(sessions: RecollectSessionService) -> None:
    app, user = f"app {uuid4()}", "user"
    session = await sessions.create_session(app_name=app, user_id=user, session_id="s")
    try:
        await sessions.create_session(app_name=app, user_id=user, session_id="s", state={"app:lost": 1})
    except AlreadyExistsError:
        pass
    else:
        raise SystemExit("a session was begun twice")
    copies = [session.model_copy(deep=True) for _ in range(3)]
    events = [Event(author="user", actions=EventActions(state_delta={"by": number})) for number in range(3)]
    answers = await asyncio.gather(*map(sessions.append_event, copies, events), return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["Event"] + 2 * ["StaleSessionError"], answers
    (won,) = [answer for answer in answers if isinstance(answer, Event)]
    read = await sessions.get_session(app_name=app, user_id=user, session_id="s")
    assert (read.events, read.state) == ([won], {"by": events.index(won)})
    # Given again after an answer that got lost; and by an object that was not read from here.
    await sessions.append_event(read, won)
    assert len(read.events) == 1
    by_hand = Session(id="s", app_name=app, user_id=user, events=[won])
    await sessions.append_event(by_hand, Event(author="user", timestamp=won.timestamp + 1))
    for stale in (read, Session(id="s", app_name=app, user_id=user)):
        try:
            await sessions.append_event(stale, Event(author="user"))
        except StaleSessionError:
            continue
        raise SystemExit("an event was added to a session that has changed")
    for unknown in (Session(id="no", app_name=app, user_id=user), session.model_copy(update={"id": "no"})):
        try:
            await sessions.append_event(unknown, Event(author="user"))
        except SessionNotFoundError:
            continue
        raise SystemExit("an event was added to no session")


async def read_parts(sessions: RecollectSessionService) -> None:
    app = f"app {uuid4()}"
    session = await sessions.create_session(app_name=app, user_id="user", session_id="s")
    odd = types.Content(role="user", parts=[types.Part(text="NUL \x00 is no letter."), types.Part(text="")])
    for number in range(1, 6):
        await sessions.append_event(session, Event(author="user", content=odd, timestamp=float(number)))
    await sessions.append_event(session, Event(author="user", partial=True))
    for config, expected in (
        (None, [1, 2, 3, 4, 5]),
        (GetSessionConfig(num_recent_events=0), []),
        (GetSessionConfig(num_recent_events=3), [3, 4, 5]),
        (GetSessionConfig(after_timestamp=4.0), [4, 5]),
        (GetSessionConfig(after_timestamp=50.0), []),
        (GetSessionConfig(after_timestamp=2.0, num_recent_events=3), [3, 4, 5]),
    ):
        read = await sessions.get_session(app_name=app, user_id="user", session_id="s", config=config)
        assert [event.timestamp for event in read.events] == expected
        assert read.last_update_time == 5.0
        assert all(event.content == odd for event in read.events)
    await sessions.append_event(read, Event(author="user"))


async def main() -> None:
    async with RecollectSessionService(SERVER) as sessions, RecollectMemoryService(SERVER) as memory:
        await talk(sessions, memory)
        await find_by_other_doors()
        read = await sessions.get_session(app_name=APP, user_id=ANNA, session_id="spring")
        assert [(event.author, event.content.parts[0].text) for event in read.events[2:]] == [
            ("user", "Two of them died."),
            ("Eve", "?"),
        ]
        await continue_what_rest_began(sessions)
        await remember(memory)
        await keep_states(sessions)
        await refuse(sessions)
        await read_parts(sessions)
        everywhere = RecollectMemoryService(SERVER, all_apps=True)
        assert (await everywhere.search_memory(app_name="another", user_id=ANNA, query="trees")).memories
    async with RecollectSessionService(namespace="embedded") as sessions:
        await keep_states(sessions)


asyncio.run(main())
