"""A question as a call of the other doors, to paste: a shell command, a program, a message to an MCP server."""

import json
import shlex
from dataclasses import dataclass, fields, replace
from typing import Any

from recollect import origin
from recollect.doors.console.rendering import has_unseen
from recollect.doors.recalls import Asked

# What the MCP tool does not take: it is for programs.
NOT_OVER_MCP = frozenset({"token_budget", "include_pinned", "now", "half_life_days"})
MCP_MAX_TOP_K = 100

# What it takes, but not with every value.
NOT_TAKEN = {
    "min_relevance": "the relevance floor “default” (it takes numbers)",
    "top_k": f"more than {MCP_MAX_TOP_K} results",
}

TIMES = ("since", "until", "as_of", "valid_at", "now")
LIBRARY_NAMES = {"metadata": "metadata_filters"}

PROGRAM = """\
import asyncio
{imports}
from recollect import MemoryManager


async def main() -> None:
    async with MemoryManager(namespace={namespace!r}) as memory:
        found = await memory.recall(
{arguments}        )
        for each in found.memories:
            print(f"{{each.relevance:.2f}}  {{each.text}}")


asyncio.run(main())
"""


@dataclass(frozen=True, slots=True)
class Calls:
    """The same question for each door; `left_out` is what MCP has no argument for."""

    curl: str
    python: str
    mcp: str
    left_out: tuple[str, ...]


def calls(asked: Asked, server: str, namespace: str, needs_key: bool) -> Calls:
    """How to ask the same again. A key is never written out: the shell reads it from a variable."""
    body = given(asked)
    accepted = {name: value for name, value in body.items() if is_for_mcp(name, value)}
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "recall", "arguments": accepted},
    }
    left_out = tuple(NOT_TAKEN.get(name, name) for name in body if name not in accepted)
    # A program that uses the library has no key, so it asks for what the key is limited to.
    user_id, agent_id = origin.narrowed(asked.user_id, asked.agent_id)
    of_library = given(replace(asked, user_id=user_id, agent_id=agent_id))
    return Calls(curl(body, server, needs_key), python(of_library, namespace), _json(call, indent=2), left_out)


def given(asked: Asked) -> dict[str, Any]:
    """The fields that are set, with how each score came about."""
    body = {
        field.name: value
        for field in fields(asked)
        if (value := getattr(asked, field.name)) != field.default and value is not None
    }
    return body | {"explain": True}


def curl(body: dict[str, Any], server: str, needs_key: bool) -> str:
    """For a shell."""
    lines = [f"curl -sS {shlex.quote(server.rstrip('/') + '/recall')}"]
    if needs_key:
        lines.append('-H "Authorization: Bearer $KEY"')
    lines += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(_json(body))}"]
    return " \\\n  ".join(lines)


def python(body: dict[str, Any], namespace: str) -> str:
    """A whole program."""
    lines: list[str] = []
    for name, value in body.items():
        literal = ascii(value) if has_unseen(repr(value)) else repr(value)
        shown = f"datetime.fromisoformat({literal})" if name in TIMES else literal
        lines.append(f"            {LIBRARY_NAMES.get(name, name)}={shown},\n")
    imports = "from datetime import datetime\n" if any(name in TIMES for name in body) else ""
    return PROGRAM.format(imports=imports, namespace=namespace, arguments="".join(lines))


def is_for_mcp(name: str, value: object) -> bool:
    """Whether the tool takes it."""
    if name == "min_relevance":
        return isinstance(value, float)
    return name not in NOT_OVER_MCP and not (name == "top_k" and isinstance(value, int) and value > MCP_MAX_TOP_K)


def _json(document: object, indent: int | None = None) -> str:
    """As it is written, unless the page would not show some of it as it is."""
    readable = json.dumps(document, ensure_ascii=False, indent=indent)
    return json.dumps(document, indent=indent) if has_unseen(readable) else readable
