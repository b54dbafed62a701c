"""What the agent runtime adds to a run: everything but the model and the gateway, in a session of 200 turns."""

import secrets
from collections.abc import AsyncGenerator
from pathlib import Path

from benchmarks.report import Report, percentiles
from benchmarks.sizes import sized
from recollect.agent.config import AgentConfig, MemoryConfig
from recollect.agent.loader import EngineLoader
from recollect.agent.messages import Event, Finished, Message, TextDelta, ToolSpec
from recollect.agent.workspace.session_search import SessionSearch

TURNS = 200
RUNS = sized(200, 10)
SESSION = "bench"
ANSWER = "It is on Friday, at nine, in the large room on the second floor. " * 8


class InstantProvider:
    """Answers at once, so that what is left is the runtime."""

    model = "instant"

    async def stream(self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]) -> AsyncGenerator[Event, None]:
        yield TextDelta(ANSWER)
        yield Finished("stop")

    async def close(self) -> None:
        """Nothing is open."""


async def run(report: Report, home: Path) -> None:
    print("agent")
    (home / "MEMORY.md").write_text("".join(f"- fact {number}: {secrets.token_hex(40)}\n" for number in range(40)))
    (home / "USER.md").write_text("".join(f"- trait {number}: {secrets.token_hex(40)}\n" for number in range(20)))
    runtime = EngineLoader(AgentConfig(MemoryConfig("curated"), workspace=home), provider=InstantProvider()).load()

    async def ask() -> None:
        await runtime.loop.run(SESSION, "When is the meeting with the people from the second floor?")

    for _ in range(TURNS):
        await ask()
    p50, p95 = await percentiles(ask, RUNS)
    report.add(
        f"a run without model and gateway, {TURNS} turns of history", f"p50 {p50:.2f} ms, p95 {p95:.2f} ms", "< 5 ms"
    )
    search = SessionSearch(runtime.sessions)

    async def find() -> None:
        search.find("people on the second floor")

    p50, p95 = await percentiles(find, 20)
    report.add(f"session_search over {TURNS + RUNS} turns", f"p50 {p50:.1f} ms, p95 {p95:.1f} ms")
    await runtime.close()
