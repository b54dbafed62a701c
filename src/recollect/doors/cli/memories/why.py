"""`recollect why`: tells where an item comes from, for somebody who was not there."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from recollect.doors.cli.one_command import with_engine
from recollect.doors.cli.printing import Styled, echo, one_line, print_json, shortened
from recollect.doors.lineage import DETAILS, HAPPENED, REASONS, STATES, ItemLineage, by
from recollect.flows.lineage import Event, Mention, Source, Story

MAX_SHOWN_CHARACTERS = 200


def run(item_id: str, as_json: bool) -> None:
    """Print the story of an item."""
    story = with_engine(lambda engine: engine.lineage.of(engine.settings.namespace, item_id))
    if as_json:
        print_json(ItemLineage.of(story).model_dump(mode="json"))
        return
    for text, dim in _lines(story):
        echo(Styled(text, dim=True) if dim else text)


def _lines(story: Story) -> Iterator[tuple[str, bool]]:
    """What to print, and whether it stands back behind the rest."""
    yield f"{story.name} is {STATES[story.state]}.", False
    if story.text is not None:
        yield f"  {_quoted(story.text)}", False
    for name in ("key", "valid_from", "valid_until", "expires_at"):
        if (value := getattr(story, name)) is not None:
            yield f"  {DETAILS[name]}: {_value(value)}", True
    if story.trust is not None:
        yield f"  comes from: {story.trust}", True
    if story.held:
        yield f"  Held for review, so recall does not find it: {'; '.join(story.held)}", False
    if story.superseded_by is not None:
        yield f"  In its place: {_mention(story.superseded_by)}", False
    yield from _section("What happened", [line for event in story.events for line in _event(event)])
    replaced: list[tuple[str, bool]] = []
    for each in story.superseded:
        because = "" if each.because is None else f", because {REASONS.get(each.because, each.because)}"
        replaced.append((f"  {_moment(each.at)}  {_mention(each.memory)}{because}", False))
    yield from _section("What it superseded", replaced)
    yield from _section("What it was made from", [line for each in story.sources for line in _source(each, 1)])
    if not story.is_whole:
        yield "", False
        yield "There is more than is shown here.", False


def _section(title: str, lines: Sequence[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    if lines:
        yield "", False
        yield f"{title}:", False
        yield from lines


def _event(event: Event) -> Iterator[tuple[str, bool]]:
    who = "" if event.event == "expired" else _by(event.author, event.door)
    yield f"  {_moment(event.at)}  {HAPPENED.get(event.event, event.event)}{who}", False
    if event.said is not None:
        yield f"      was told: {_quoted(event.said)}", True
        yield f"      the language model {one_line(event.model or '')} condensed that", True
    if event.event == "stored" and event.new_text is not None:
        yield f"      it said: {_quoted(event.new_text)}", False
    if event.event == "changed" and event.old_text != event.new_text:
        yield f"      it said: {_quoted(event.old_text or '')}", False
        yield f"      now:     {_quoted(event.new_text or '')}", False
    for name, difference in (event.changed or {}).items():
        yield f"      {DETAILS[name]}: {_value(difference.old)} -> {_value(difference.new)}", False
    if event.by is not None:
        yield f"      in its place: {_mention(event.by)}", False
    if event.because is not None:
        model = f" ({one_line(event.model)})" if event.model else ""
        yield f"      because {REASONS.get(event.because, event.because)}{model}", False
    if event.despite:
        yield f"      it was held because {'; '.join(event.despite)}", False
    for seen in event.saw:
        yield f"      the model saw {_mention(seen)}", True


def _source(source: Source, depth: int) -> Iterator[tuple[str, bool]]:
    margin = "  " * depth
    if source.state == "gone" or source.at is None:
        yield f"{margin}{one_line(source.name)} is gone", False
        return
    speaker = "" if source.speaker is None else f", {one_line(source.speaker)}"
    who = _by(source.author, source.door)
    yield f"{margin}{_moment(source.at)}{speaker}{who and f', stored{who}'}", False
    yield f"{margin}    {'(held for review)' if source.text is None else _quoted(source.text)}", False
    yield f"{margin}    {source.name}" + (" (superseded)" if source.state == "superseded" else ""), True
    for inner in source.sources:
        yield from _source(inner, depth + 2)


def _by(author: str | None, door: str | None) -> str:
    return by(None if author is None else one_line(author), door)


def _mention(mention: Mention) -> str:
    if mention.text is None:
        return (
            f"{mention.name}, which is {STATES[mention.state]}" if mention.state in ("gone", "held") else mention.name
        )
    return f"{_quoted(mention.text)} ({mention.name})"


def _quoted(text: str) -> str:
    return f'"{shortened(text, MAX_SHOWN_CHARACTERS)}"'


def _value(value: object) -> str:
    if isinstance(value, datetime):
        return _moment(value)
    return "none" if value is None else one_line(str(value))


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
