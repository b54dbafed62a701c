"""A child process that moves one namespace to the model named on its command line, and says each step that it takes."""

import asyncio
import sys
from datetime import timedelta

import openai  # takes long, and a test wants to kill what comes after

from recollect.engine import Engine
from recollect.flows.indexing import model_switch as embedding_switch
from recollect.inference import providers
from recollect.inference.requests.limits import Limits


async def main(model: str) -> None:
    assert openai
    embedding_switch.BATCH = embedding_switch.SWEEP_BATCH = 4
    embedding_switch.GRACE = timedelta(0)
    providers.EMBEDDINGS = Limits(1000, 30)
    engine = await Engine.open()
    namespace = engine.settings.namespace
    print("begin", flush=True)
    await engine.embeddings.run(namespace, model, lambda done, total: print(done, total, flush=True))
    print("switched", flush=True)
    await engine.embeddings.sweep(namespace)
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
