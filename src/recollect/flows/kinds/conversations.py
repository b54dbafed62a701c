"""Sessions, their messages, and the summaries of compacted messages."""

from collections.abc import Mapping
from datetime import datetime
from typing import get_args

from recollect import checks
from recollect.errors import Invalid
from recollect.flows.capabilities import Capabilities
from recollect.flows.chat_ids import is_stored_chat, mark
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.kinds import rules
from recollect.flows.kinds.cognitive import remove_insights
from recollect.flows.kinds.kind import UUIDS, Ids, Item, Kind, SessionOwners, as_json
from recollect.flows.kinds.rules import Fields
from recollect.memory import log, sessions, windows
from recollect.memory.index.passages import Source, analyse
from recollect.storage.database import Transaction


def check_session(fields: Fields) -> None:
    """A window begins where messages are, and the id of a gateway's chat names its owner."""
    if fields["window_start"] > fields["next_position"]:
        raise Invalid(f"window_start must not be above next_position, which is {fields['next_position']}")
    owner = mark(fields["user_id"], fields["realm"])
    if is_stored_chat(fields["id"]) and not fields["id"].endswith(owner):
        raise Invalid("id belongs to a gateway chat of a different user, app or project than user_id and realm")


def message_source(fields: Fields, owners: SessionOwners) -> Source:
    """What was said, by whom, and where."""
    owner = owners[fields["session_id"]]
    return Source(
        "message",
        fields["id"],
        analyse(fields["content"], fields["speaker"]),
        datetime.fromisoformat(fields["created_at"]),
        owner=owner.user_id,
        session_id=fields["session_id"],
        position=fields["position"],
        role=fields["role"],
        speaker=fields["speaker"],
        metadata=as_json(fields["metadata"]),
        realm=owner.realm,
    )


async def remove_messages(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> Mapping[str, Ids]:
    """Messages, and the insights that were made from nothing else."""
    numbers = await memory.log.remove(tx, ids)
    tally.add("messages", len(numbers))
    gone = tally.made_from(await memory.insights.made_from(tx, numbers))
    await remove_insights(memory, tx, gone, tally)
    return {"insight": gone}


SESSION = Kind(
    sessions.RECORD,
    {
        "id": checks.identifier,
        "user_id": checks.identifier,
        "agent_id": checks.identifier,
        "title": checks.optional_text,
        "metadata": rules.json_object,
        "next_position": rules.at_least(0),
        "window_start": rules.at_least(0),
        "window_strategy": rules.one_of(*get_args(windows.Strategy)),
        "window_max_messages": checks.positive,
        "window_max_tokens": checks.positive,
    },
    check_session,
    shown_with=("summaries",),
)
MESSAGE_ITEM = Item("message", UUIDS, remove_messages, message_source)
MESSAGE = Kind(
    log.RECORD,
    {
        "session_id": checks.identifier,
        "position": rules.at_least(0),
        "role": checks.short_name,
        "speaker": checks.short_name,
        "content": checks.text,
    },
    references={"session_id": ("session", "id")},
    item=MESSAGE_ITEM,
)
SUMMARY = Kind(
    windows.RECORD,
    {"until": rules.at_least(1), "content": checks.optional_text, "metadata": rules.json_object},
    references={"session_id": ("session", "id")},
)

CONVERSATIONS = (SESSION, MESSAGE, SUMMARY)
