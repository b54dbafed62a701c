"""A child process that imports a file into a namespace and prints a line for each batch, until it is killed or done."""

import asyncio
import sys
from pathlib import Path

from recollect.engine import Engine
from recollect.flows.transfer import importing


async def main(path: Path, namespace: str) -> None:
    importing.BATCH_RECORDS = 5
    engine = await Engine.open()
    with path.open("rb") as file:
        report = await engine.importing.run(file, namespace, lambda size: print("batch", flush=True))
    await engine.close()
    print("done", report.refused, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
