"""The toolsets: which tools are offered together."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.errors import Invalid

if TYPE_CHECKING:
    from recollect.doors.mcp.tool import Definition

ALL = CORE, CONTEXT, COGNITIVE, GOLDEN, WORKING, MEMORIES = (
    "core",
    "context",
    "cognitive",
    "golden",
    "working",
    "memories",
)


def chosen(names: str | None) -> tuple[str, ...]:
    """Toolsets named in one text, separated by commas; all of them if none is named."""
    if names is None:
        return ALL
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in ALL:
            raise Invalid(f"Unknown toolset {name!r}: choose from {', '.join(ALL)}, comma-separated")
    return tuple(name for name in ALL if name in wanted)


def definitions(names: Sequence[str]) -> list["Definition"]:
    """The tools of some toolsets. Imported here, so that naming toolsets does not load the SDK."""
    from recollect.doors.mcp.tools import cognitive, context, core, golden, graph, memories, working

    toolsets = {
        CORE: core.TOOLS.definitions,
        CONTEXT: context.TOOLS.definitions,
        COGNITIVE: [*cognitive.TOOLS.definitions, *graph.TOOLS.definitions],
        GOLDEN: golden.TOOLS.definitions,
        WORKING: working.TOOLS.definitions,
        MEMORIES: memories.TOOLS.definitions,
    }
    return [definition for name in names for definition in toolsets[name]]
