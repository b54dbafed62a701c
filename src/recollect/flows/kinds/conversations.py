"""Sessions, their messages, and the summaries of compacted messages."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, get_args

from recollect import checks, trust
from recollect.errors import Invalid
from recollect.flows.capabilities import Capabilities
from recollect.flows.chat_ids import is_stored_chat, mark
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.kinds import rules
from recollect.flows.kinds.cognitive import remove_insights
from recollect.flows.kinds.kind import MAX_SHOWN_CHARACTERS, UUIDS, Ids, InFeed, Item, Kind, SessionOwners, as_json
from recollect.flows.kinds.rules import Fields
from recollect.memory import log, sessions, windows
from recollect.memory.changes import Change, Recorded
from recollect.memory.index.passages import Source, analyse
from recollect.memory.log import StoredTurn
from recollect.storage.database import Statements, Transaction

# Of one turn, in the feed; a call may bring thousands.
MAX_SHOWN_MESSAGES = 20


def check_session(fields: Fields) -> None:
    """A window begins where messages are, and the id of a gateway's chat names its owner."""
    if fields["window_start"] > fields["next_position"]:
        raise Invalid(f"window_start must not be above next_position, which is {fields['next_position']}")
    owner = mark(fields["user_id"], fields["realm"])
    if is_stored_chat(fields["id"]) and not fields["id"].endswith(owner):
        raise Invalid("id belongs to a gateway chat of a different user, app or project than user_id and realm")


def check_message(fields: Fields) -> None:
    """Only a message that a client has more of may say nothing."""
    if fields["payload"] is None:
        checks.text(fields["content"], "content")


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
        trust=trust.of_callers_message(fields["role"], fields.get("trust")),
    )


async def remove_messages(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> Mapping[str, Ids]:
    """Messages, and the insights that were made from nothing else."""
    numbers = await memory.log.remove(tx, ids)
    tally.add("messages", len(numbers))
    gone = tally.made_from(await memory.insights.made_from(tx, numbers))
    await remove_insights(memory, tx, gone, tally)
    return {"insight": gone}


async def turn_contents(
    memory: Capabilities, db: Statements, changes: Sequence[Recorded]
) -> Mapping[int, dict[str, Any]]:
    """What is left of the messages of each turn. A message that was forgotten has no turn."""
    turns = {
        change.number: StoredTurn(change.item_id, change.detail["first"], change.detail["count"])
        for change in changes
        if change.detail is not None
    }
    found = await memory.log.of_turns(
        db, list(turns.values()), most_messages=MAX_SHOWN_MESSAGES, most_characters=MAX_SHOWN_CHARACTERS
    )
    return {
        number: {"messages": [message._asdict() | {"id": str(message.id)} for message in messages]}
        for number, messages in zip(turns, found, strict=True)
        if messages
    }


def imported_turns(records: Sequence[Fields]) -> list[Change]:
    """Messages that are next to each other in a session are told of together."""
    turns: list[StoredTurn] = []
    for session_id, position in sorted((fields["session_id"], fields["position"]) for fields in records):
        last = turns[-1] if turns else StoredTurn("", 0, 0)
        if (session_id, position) == (last.session_id, last.first + last.size):
            turns[-1] = last._replace(size=last.size + 1)
        else:
            turns.append(StoredTurn(session_id, position, 1))
    return [Change.turn("import", *turn) for turn in turns]


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
        "content": checks.optional_text,
        "payload": rules.json_text,
        "trust": rules.one_of(*trust.CLASSES),
    },
    check_message,
    later=frozenset({"payload", "trust"}),
    references={"session_id": ("session", "id")},
    item=MESSAGE_ITEM,
    feed=InFeed("message", turn_contents, imported_turns),
)
SUMMARY = Kind(
    windows.RECORD,
    {"until": rules.at_least(1), "content": checks.optional_text, "metadata": rules.json_object},
    references={"session_id": ("session", "id")},
)

CONVERSATIONS = (SESSION, MESSAGE, SUMMARY)
