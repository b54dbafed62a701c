"""A child process that indexes one namespace until it is killed or nothing is left."""

import asyncio

from recollect.engine import Engine


async def main() -> None:
    engine = await Engine.open()
    print("ready", flush=True)
    await engine.indexer.flush(engine.settings.namespace)
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main())
