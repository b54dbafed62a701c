"""The agent runtime in a program of one's own, curated memory alone and with a gateway; the answer is its last word."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import httpx

from recollect.agent.config import load_config
from recollect.agent.loader import EngineLoader

URL = "http://127.0.0.1:8000"
user = httpx.post(f"{URL}/users", json={"user_id": f"user-{time.time_ns()}"}, timeout=60).json()
gateway = {"baseUrl": URL, "userId": user["user_id"], "userKey": user["user_key"]}


async def talk(memory: dict[str, Any]) -> None:
    Path("config.json").write_text(json.dumps({"memory": memory}))
    runtime = EngineLoader(load_config(Path("config.json"))).load()
    first = await runtime.loop.run(None, "remember that the parrot is called Coco")
    answer = await runtime.loop.run(first.session_id, "What is the parrot called?")
    assert "Coco" in answer.answer
    await runtime.close()


asyncio.run(talk({"mode": "curated"}))
asyncio.run(talk({"mode": "hybrid", "gateway": gateway}))
