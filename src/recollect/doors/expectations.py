"""Expectations of golden queries as users write them: ids of insights, between commas or spaces."""

from collections.abc import Iterable

from recollect.errors import Invalid


def insight_ids(texts: Iterable[str], name: str) -> list[int]:
    """The ids; `insight:12`, as the MCP tool `recall` writes it, is 12."""
    ids: list[int] = []
    for part in (part for text in texts for part in text.replace(",", " ").split()):
        try:
            ids.append(int(part.removeprefix("insight:")))
        except ValueError:
            raise Invalid(f"{name} takes comma-separated insight ids (whole numbers), not {part!r}") from None
    return ids
