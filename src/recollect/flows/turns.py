"""Turns on their way into the log: with their passages, and without the messages that are stored already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from recollect import trust
from recollect.errors import Conflict, RecollectError
from recollect.memory.index.passages import Excerpt, Source
from recollect.memory.log import Destination, Message, NewMessage, Turn
from recollect.memory.sessions import SessionOwner
from recollect.origin import Origin


@dataclass(frozen=True, slots=True)
class AnalysedTurn:
    """A turn with the passages of each of its messages, worked out before its transaction."""

    turn: Turn
    excerpts: tuple[tuple[Excerpt, ...], ...]
    by: Origin
    """Kept here, because the turns of several callers are written by one task."""
    refusal: RecollectError | None = None
    is_suspect: bool = False  # a message may have to be held back, which takes more than one statement

    @property
    def has_details(self) -> bool:
        """Whether a message has some that take a statement of their own."""
        return any(message.has_details for message in self.turn.messages)

    def without_messages(self, refusal: RecollectError) -> "AnalysedTurn":
        """The same turn, refused."""
        return replace(self, turn=replace(self.turn, messages=()), excerpts=(), refusal=refusal)


def with_classes(turn: Turn) -> Turn:
    """A turn of the present caller. A message whose role claims more than the caller may say has its class stated."""
    classes = [trust.of_callers_message(message.role, message.trust) for message in turn.messages]
    if classes == [message.trust for message in turn.messages]:
        return turn
    said = (replace(message, trust=of_class) for message, of_class in zip(turn.messages, classes, strict=True))
    return replace(turn, messages=tuple(said))


def destinations_of(analysed: Sequence[AnalysedTurn], owners: Mapping[str, SessionOwner]) -> dict[str, Destination]:
    """The sessions that messages go to: those that exist, and those that a turn may begin."""
    found: dict[str, Destination] = {}
    for turn in (item.turn for item in analysed if item.turn.messages):
        if owner := owners.get(turn.session_id):
            found[turn.session_id] = Destination(turn.session_id, owner.user_id, owner.realm, begins=False)
        elif turn.owner_if_new:
            begun = Destination(turn.session_id, turn.owner_if_new, turn.realm or "", begins=True)
            found.setdefault(turn.session_id, begun)
    return found


def without_stored(item: AnalysedTurn, stored: Mapping[UUID, Message]) -> AnalysedTurn:
    """A turn without the messages that are stored; refused if one of them is stored as something else."""
    turn = item.turn
    if not stored or turn.realm is not None:
        return item
    pairs = []
    for message, excerpts in zip(turn.messages, item.excerpts, strict=True):
        known = _found(message, stored)
        if known is None:
            pairs.append((message, excerpts))
            continue
        said = (turn.session_id, message.role, message.speaker, message.content, message.payload)
        if (known.session_id, known.role, known.speaker, known.content, known.payload) != said:
            refusal = Conflict(
                f"Message {message.id} already exists with other content, role or speaker, or in another session: "
                "choose another id"
            )
            return item.without_messages(refusal)
    messages, of_messages = zip(*pairs, strict=True) if pairs else ((), ())
    return replace(item, turn=replace(turn, messages=messages), excerpts=of_messages)


def with_stored(
    turn: Turn, stored: Mapping[UUID, Message], answer: list[Message] | RecollectError
) -> list[Message] | RecollectError:
    """The messages of a turn in their order, those that were stored before among the new ones."""
    if not stored or turn.realm is not None or isinstance(answer, RecollectError):
        return answer
    new = iter(answer)
    return [_found(message, stored) or next(new) for message in turn.messages]


def _found(message: NewMessage, stored: Mapping[UUID, Message]) -> Message | None:
    return None if message.id is None else stored.get(message.id)


def message_source(
    message: Message, new: NewMessage, excerpts: tuple[Excerpt, ...], at: Destination, item: AnalysedTurn
) -> Source:
    """A stored message, as it is to be found again."""
    return Source(
        "message",
        str(message.id),
        excerpts,
        message.created_at,
        owner=at.user_id,
        session_id=message.session_id,
        position=message.position,
        role=message.role,
        speaker=message.speaker,
        metadata=new.metadata,
        realm=at.realm,
        trust=new.trust,
        by=item.by,
        is_unsuspicious=not item.is_suspect,
    )
