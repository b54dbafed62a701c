"""The `memory` tool: a model adds, replaces and removes entries in `MEMORY.md` and `USER.md`, and nothing else."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from recollect.agent.faults import Refused
from recollect.agent.messages import ToolSpec
from recollect.agent.tools import Run, text_argument
from recollect.agent.workspace.curated import FILES, LIMITS, MemoryService

ACTIONS = ("add", "replace", "remove")


class MemoryTool:
    """Curated memory as a tool. Its writes stay in the two files: the gateway never hears of them."""

    spec = ToolSpec(
        name="memory",
        description=(
            "Store short facts that will matter in later conversations. Use target 'user' for facts about the person, "
            "'memory' for everything else. 'replace' and 'remove' identify an entry by part of its text. Changes "
            "appear in your system prompt from the next run on."
        ),
        parameters={
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": list(ACTIONS)},
                "target": {"type": "string", "enum": list(FILES)},
                "content": {
                    "type": "string",
                    "description": f"The entry to add, or the replacement text. {FILES['memory']} is limited to "
                    f"{LIMITS['memory']:,} characters, {FILES['user']} to {LIMITS['user']:,}.",
                },
                "old_text": {"type": "string", "description": "Text that occurs only in the entry to change."},
            },
            "required": ["action", "target"],
            "additionalProperties": False,
        },
    )

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    async def call(self, arguments: Mapping[str, Any], run: Run) -> str:
        """Do one action; the answer says how full the file is."""
        target = next((known for known in FILES if known == arguments.get("target")), None)
        if target is None:
            raise Refused(f"target must be one of {', '.join(FILES)}")
        match arguments.get("action"):
            case "add":
                act = partial(self._service.add, target, text_argument(arguments, "content"))
            case "replace":
                old_text = text_argument(arguments, "old_text")
                act = partial(self._service.replace, target, old_text, text_argument(arguments, "content"))
            case "remove":
                act = partial(self._service.remove, target, text_argument(arguments, "old_text"))
            case _:
                raise Refused(f"action must be one of {', '.join(ACTIONS)}")
        change = await asyncio.to_thread(act)
        return f"{change.done} It has {change.used:,} of {change.limit:,} characters."
