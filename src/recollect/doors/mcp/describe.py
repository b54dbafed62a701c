"""What a toolset costs an agent that reads the schemas of its tools."""

import json
import math
import re
from collections.abc import Iterable, Sequence

from mcp.types import Tool

from recollect.doors.caller import Caller
from recollect.doors.mcp import toolsets
from recollect.doors.mcp.tool import Definition, bound

_PIECE = re.compile(r"[A-Za-z]+|\d+|[^A-Za-z\d\s]+")
_LETTERS_PER_TOKEN = 8
_CHARACTERS_PER_TOKEN = 4


def description(names: Sequence[str]) -> str:
    """Every tool of some toolsets, and what the schemas of each toolset cost."""
    lines = []
    for name in names:
        tools = listed(toolsets.definitions([name]))
        lines.append(f"{name}: {len(tools)} tools, about {tokens(tools):,} tokens")
        lines += [f"  {tool.name:<24} {(tool.description or '').partition('. ')[0].rstrip('.')}" for tool in tools]
    return "\n".join(lines)


def listed(definitions: Iterable[Definition]) -> list[Tool]:
    """Tools as `tools/list` shows them."""
    return [
        Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=tool.parameters,
            output_schema=tool.output_schema,
            annotations=tool.annotations,
        )
        for tool in bound(definitions, _nobody)
    ]


def _nobody(http_request: object) -> Caller:
    raise AssertionError("a tool that is only described is not called")


def tokens(tools: Iterable[Tool]) -> int:
    """About how many tokens of a language model the tools are: words, long words twice, and runs of punctuation."""
    text = json.dumps([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools])
    pieces = sum(math.ceil(len(piece) / _LETTERS_PER_TOKEN) for piece in _PIECE.findall(text))
    return max(pieces, math.ceil(len(text) / _CHARACTERS_PER_TOKEN))
