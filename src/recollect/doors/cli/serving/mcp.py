"""`recollect mcp`: the memory as an MCP server over standard input and output, for desktop clients."""

import signal

from recollect import logs, origin
from recollect import settings as environment
from recollect.doors import telemetry_export
from recollect.doors.cli.one_command import command
from recollect.doors.cli.printing import echo
from recollect.doors.mcp import describe as descriptions
from recollect.doors.mcp import toolsets
from recollect.doors.mcp.route import quiet_sdk
from recollect.doors.mcp.server import RecollectServer
from recollect.engine import Engine


def describe(names: str | None) -> None:
    """Print the tools and what their schemas cost."""
    echo(descriptions.description(toolsets.chosen(names)))


@command
async def run(names: str | None) -> None:
    """Serve until the client closes its end. Standard output is the protocol's alone; logs go to standard error."""
    chosen = toolsets.chosen(names)
    settings = environment.load()
    logs.configure(settings.log_level, settings.log_format)
    quiet_sdk(settings.log_level)
    telemetry_export.check()
    # Python's own handler would wait for the next line of input. Nothing is lost: a write is answered after its commit.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    engine = await Engine.open(settings, will_search=True)
    try:
        async with telemetry_export.exporting(engine, scraped=False):
            with origin.acting("mcp"):
                await RecollectServer(engine, chosen).run_stdio_async()
    finally:
        await engine.close()
