"""A child process that imports a foreign file and prints a line for each batch, until it is killed or done."""

import asyncio
import sys
from pathlib import Path

from recollect.engine import Engine
from recollect.flows.transfer.foreign import foreign_files
from recollect.flows.transfer.import_report import Report


async def main(path: Path, origin: str, namespace: str) -> None:
    foreign_files.BATCH_ITEMS = 5
    engine = await Engine.open()

    def told(read: int, _: Report) -> None:
        if read == 0:
            print("batch", flush=True)

    report = await engine.foreign_files.run(namespace, path, origin, "mira", progress=told)
    await engine.close()
    print("done", report.refused, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
