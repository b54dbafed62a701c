"""Whoever reads the feed misses nothing and reads nothing twice, however often it is killed."""

import os

from recollect.storage import embedded
from tests.durability import feed_kills
from tests.mcp_servers import environment

CHANGES = 960
KILLS = 3


def test_a_reader_that_is_killed_goes_on_from_its_cursor(server: embedded.Lease, namespace: str) -> None:
    found = feed_kills.run(os.environ | environment(namespace), CHANGES, KILLS, seed=7)
    feed_kills.check(found, CHANGES)
