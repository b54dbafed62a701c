"""Search in past sessions: turns that share words with a question, best first; without the gateway."""

import asyncio
import functools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from recollect.agent.messages import ToolSpec
from recollect.agent.tools import Run, text_argument
from recollect.agent.workspace.marks import normalized
from recollect.agent.workspace.sessions import SessionStore

LIMIT = 5
MAX_LIMIT = 20
SHOWN = 400

# BM25 as everybody has it: how soon a repeated word counts no more, and how much length matters.
_SATURATION, _LENGTH = 1.2, 0.75
_WORD = re.compile(r"\w+")
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_ENDINGS = re.compile(r"(?<=\w{3})(?:ies|es|s|ing|ed|e|y)$")
# More is no word (a key, an encoded file), and would fill the cache.
_LONGEST = 64
_COMMON = frozenset(
    _WORD.findall(
        "a an and are as at be but by can did do does for from had has have he her his how i if in is it its me my of "
        "on or our she so that the their them they this to was we were what when where which who why will with you your"
    )
)


@dataclass(frozen=True, slots=True)
class Turn:
    """What a user said in a session and what was answered."""

    session_id: str
    at_ms: int
    asked: str
    answered: str = ""


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A turn and how well it matches; scores of different questions do not compare."""

    turn: Turn
    score: float


class SessionSearch:
    """Reads every session file; what is small enough to be on one disk is quick enough to be read."""

    def __init__(self, sessions: SessionStore) -> None:
        self._sessions = sessions

    def find(self, question: str, limit: int = LIMIT, without_run: str | None = None) -> list[FoundTurn]:
        """The turns that match best. The run that asks is left out: its own question would match best of all."""
        wanted = set(terms(question, common=False)) or set(terms(question))
        matches: list[tuple[Turn, Counter[str], int]] = []
        count = length = 0
        for turn in self._turns(without_run):
            said = terms(f"{turn.asked} {turn.answered}")
            count, length = count + 1, length + len(said)
            held = Counter(term for term in said if term in wanted)
            if held:
                matches.append((turn, held, len(said)))
        holding = Counter(term for _, held, _ in matches for term in held)
        rarity = {term: math.log(1 + (count - df + 0.5) / (df + 0.5)) for term, df in holding.items()}
        found = []
        for turn, held, size in matches:
            norm = _SATURATION * (1 - _LENGTH + _LENGTH * size / (length / count))
            score = sum(rarity[term] * tf * (_SATURATION + 1) / (tf + norm) for term, tf in held.items())
            found.append(FoundTurn(turn, score))
        return sorted(found, key=lambda match: (-match.score, -match.turn.at_ms))[:limit]

    def _turns(self, without_run: str | None) -> Iterator[Turn]:
        """Each question with the answer of its own run: runs of one session may overlap."""
        for session_id in self._sessions.ids():
            waiting: dict[str, Turn] = {}
            for event in self._sessions.events(session_id):
                if not event.context_visible or event.run_id == without_run:
                    continue
                if event.role == "user":
                    if event.run_id in waiting:
                        yield waiting[event.run_id]
                    waiting[event.run_id] = Turn(session_id, event.at_ms, event.content)
                elif event.role == "assistant" and (asked := waiting.pop(event.run_id, None)):
                    yield Turn(session_id, asked.at_ms, asked.asked, event.content)
            yield from waiting.values()


def terms(text: str, *, common: bool = True) -> list[str]:
    """The words of a text without their commonest endings; pairs of characters where no spaces are written."""
    found: list[str] = []
    for word in _WORD.findall(normalized("NFKC", text).casefold()):
        if _SPACELESS.search(word):
            found.extend([first + second for first, second in pairwise(word)] or [word])
        elif common or word not in _COMMON:
            found.append(_stem(word))
    return found


@functools.lru_cache(maxsize=1 << 15)
def _stem(word: str) -> str:
    return _ENDINGS.sub("", word[:_LONGEST])


class SessionSearchTool:
    """The search as a tool, there in both modes of memory."""

    spec = ToolSpec(
        name="session_search",
        description=(
            "Search earlier conversations on this machine by keyword. When you quote a result, say that it is from an "
            "earlier conversation."
        ),
        parameters={
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words to look for."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": LIMIT},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    )

    def __init__(self, search: SessionSearch) -> None:
        self._search = search

    async def call(self, arguments: Mapping[str, Any], run: Run) -> str:
        """The best turns, each with its session and day."""
        query = text_argument(arguments, "query")
        limit = arguments.get("limit", LIMIT)
        limit = min(max(limit, 1), MAX_LIMIT) if isinstance(limit, int) else LIMIT
        found = await asyncio.to_thread(self._search.find, query, limit, run.run_id)
        lines = []
        for turn in (match.turn for match in found):
            day = datetime.fromtimestamp(turn.at_ms / 1000, UTC).date()
            lines += [f"{day} session {turn.session_id}", f"  user: {_shortened(turn.asked)}"]
            if turn.answered:
                lines.append(f"  assistant: {_shortened(turn.answered)}")
        return "\n".join(lines) or "No earlier conversation contains these words."


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
