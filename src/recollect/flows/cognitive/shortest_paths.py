"""Shortest paths: a search from both ends, level by level, that reads only ids."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from recollect.memory.cognitive.graph import GraphView
from recollect.storage.database import Statements

MAX_PATHS = 10

Path = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Shortest paths, all of one length; none if no path is as short as the depth that was searched."""

    paths: list[Path]
    depth: int


class _Side:
    """One end of the search: the nodes at each distance from it."""

    def __init__(self, origin: int) -> None:
        self.levels = [{origin}]
        self._seen = {origin}

    @property
    def frontier(self) -> set[int]:
        return self.levels[-1]

    @property
    def depth(self) -> int:
        return len(self.levels) - 1

    def advance(self, reached: Iterable[int]) -> None:
        further = set(reached)
        further -= self._seen
        self._seen |= further
        self.levels.append(further)


async def shortest_paths(graph: GraphView, db: Statements, start: int, end: int, max_depth: int) -> Found:
    """Up to ten shortest paths between two nodes.

    The sides advance by whole levels and did not touch before, so every shortest path crosses where they first touch.
    """
    near, far = _Side(start), _Side(end)
    while near.frontier.isdisjoint(far.frontier):
        if near.depth + far.depth == max_depth or not (near.frontier and far.frontier):
            return Found([], near.depth + far.depth)
        side = min(near, far, key=lambda side: len(side.frontier))
        side.advance(await graph.adjacent(db, side.frontier))
    crossings = sorted(near.frontier & far.frontier)[:MAX_PATHS]
    back = await _lengthened(graph, db, [(node,) for node in crossings], near.levels)
    paths = await _lengthened(graph, db, [path[::-1] for path in back], far.levels)
    return Found(paths, near.depth + far.depth)


async def _lengthened(graph: GraphView, db: Statements, paths: list[Path], levels: Sequence[set[int]]) -> list[Path]:
    """Paths that end on the last level, continued to the first; each of them has a way there, so ten stay enough."""
    for level in reversed(levels[:-1]):
        links = await graph.links(db, {path[-1] for path in paths})
        longer = ((*path, node) for path in paths for node in sorted(links[path[-1]] & level))
        paths = list(islice(longer, MAX_PATHS))
    return paths
