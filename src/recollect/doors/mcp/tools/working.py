"""A tool that the cognitive-memory contract lacks: archive an item of working memory by hand."""

from typing import Annotated

from pydantic import BaseModel, Field

from recollect.doors.caller import Caller
from recollect.doors.mcp.errors import as_object
from recollect.doors.mcp.schema import WHOLE
from recollect.doors.mcp.tool import ADDS, Tools

TOOLS = Tools(as_object)


class Archived(BaseModel):
    """An item that left working memory, and its id in the archive."""

    id: int
    archived_id: int


@TOOLS.tool("Archive working memory", ADDS)
async def archive_working_memory(
    caller: Caller,
    id: Annotated[int, Field(ge=1, description="Id of a working memory item"), WHOLE],  # noqa: A002
) -> Archived:
    """Move an item that is no longer relevant from working memory to the archive (memory://stale-memory)."""
    return Archived(id=id, archived_id=await caller.engine.cognition.archive(caller.namespace, id))
