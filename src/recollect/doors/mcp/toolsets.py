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
"""What a server offers by default."""

GRAPH_REFERENCE = "graph-reference"
"""The tools of another server, for its users: offered only by name, because ours do the same for the graph."""

EVERY = (*ALL, GRAPH_REFERENCE)


def chosen(names: str | None) -> tuple[str, ...]:
    """Toolsets named in one text, separated by commas; those of our own if none is named."""
    if names is None:
        return ALL
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in EVERY:
            raise Invalid(f"Unknown toolset {name!r}: choose from {', '.join(EVERY)}, comma-separated")
    return tuple(name for name in EVERY if name in wanted)


def definitions(names: Sequence[str]) -> list["Definition"]:
    """The tools of some toolsets. Imported here, so that naming toolsets does not load the SDK."""
    from recollect.doors.mcp.tools import cognitive, context, core, golden, graph, memories, reference, working

    toolsets = {
        CORE: core.TOOLS.definitions,
        CONTEXT: context.TOOLS.definitions,
        COGNITIVE: [*cognitive.TOOLS.definitions, *graph.TOOLS.definitions],
        GOLDEN: golden.TOOLS.definitions,
        WORKING: working.TOOLS.definitions,
        MEMORIES: memories.TOOLS.definitions,
        GRAPH_REFERENCE: reference.TOOLS.definitions,
    }
    return [definition for name in names for definition in toolsets[name]]
