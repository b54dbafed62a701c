"""The messages of one run, in the contract's order: system, skills, gateway reference, history, the prompt."""

import re
from collections.abc import Sequence

from recollect.agent.messages import Message
from recollect.agent.workspace.curated import FILES, MemorySnapshot
from recollect.agent.workspace.sessions import SessionEvent
from recollect.agent.workspace.skills import Skill

MAX_HISTORY_MESSAGES = 40
# About 8,000 tokens, of which one message takes a quarter at most.
MAX_HISTORY_CHARACTERS = 32_000
MAX_MESSAGE_CHARACTERS = 8_000
CUT = "\n[... message truncated]"

INTRODUCTION = (
    "You are a helpful assistant with a memory. The curated_memory blocks contain what you have chosen to remember. "
    "The tool `memory` changes them; changes are visible from the next run on. The tool `session_search` finds what "
    "was said in earlier conversations. Save what will matter later without being asked; never save secrets."
)

ACTIVE = "This skill is active for the prompt below."

# What could close the block that a text stands in, or open another: files are edited by hand, and may come from others.
_FENCES = re.compile(r"<(?=\s?/?\s?(?:curated[_-]?memory|skill)\b)", re.I)


class ContextBuilder:
    """Builds what the model sees. Recalled text never enters the system prompt; only the rule about it does."""

    def build_messages(
        self,
        snapshot: MemorySnapshot,
        prompt: str,
        *,
        skills: Sequence[Skill] = (),
        references: Sequence[str] = (),
        history: Sequence[SessionEvent] = (),
        gateway_rule: str | None = None,
    ) -> tuple[Message, ...]:
        """All messages, the system prompt first and the current prompt last."""
        curated = [
            f'<curated_memory file="{name}">\n{_inside(snapshot.text(target).strip()) or "(empty)"}\n</curated_memory>'
            for target, name in FILES.items()
        ]
        system = "\n\n".join([INTRODUCTION, *curated, *([gateway_rule] if gateway_rule else [])])
        active = [f'<skill name="{skill.name}">\n{_inside(skill.body)}\n</skill>\n{ACTIVE}' for skill in skills]
        return (
            Message("system", system, "system"),
            *(Message("user", text, "skill") for text in active),
            *(Message("user", text, "reference") for text in references),
            *_bounded(history),
            Message("user", prompt, "prompt"),
        )


def _inside(text: str) -> str:
    """A text that stays inside of its block."""
    return _FENCES.sub("&lt;", text)


def _bounded(history: Sequence[SessionEvent]) -> list[Message]:
    """The newest messages that fit, beginning with one of the user, as every provider takes them."""
    kept: list[Message] = []
    room = MAX_HISTORY_CHARACTERS
    for event in reversed(history[-MAX_HISTORY_MESSAGES:]):
        if event.role is None:
            continue
        text = event.content
        if len(text) > MAX_MESSAGE_CHARACTERS:
            text = text[:MAX_MESSAGE_CHARACTERS] + CUT
        room -= len(text)
        if room < 0:
            break
        kept.append(Message(event.role, text, "history"))
    while kept and kept[-1].role != "user":
        kept.pop()
    return kept[::-1]
