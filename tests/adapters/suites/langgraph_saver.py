"""The tests of LangGraph's PostgreSQL checkpointers."""

from tests.adapters.suite import Suite
from tests.adapters.suites import langgraph_store

OLD = "of checkpoints that LangGraph wrote before version 4, of which none can be here"
PATCHED = "it replaces a private method that ours does not have"
OWN = "of the makers' own tables and migrations"

SUITE = Suite(
    langgraph_store.SUITE.sdist,
    langgraph_store.SUITE.sha256,
    ("tests/test_sync.py", "tests/test_async.py", "tests/test_delta_plain_value_seed.py"),
    "langgraph_saver",
    # The same tests again for other ways to hold a connection of psycopg, and for a checkpointer without history.
    options=("-k", "not pipe and not pool and not shallow"),
    deselected={
        "tests/test_sync.py::test_pending_sends_migration": OLD,
        "tests/test_async.py::test_pending_sends_migration": OLD,
        "tests/test_sync.py::test_nonnull_migrations": OWN,
        "tests/test_sync.py::test_get_checkpoint_no_channel_values": PATCHED,
        "tests/test_async.py::test_get_checkpoint_no_channel_values": PATCHED,
        "tests/test_delta_plain_value_seed.py::test_inline_primitive_seed_is_found": "it wants a stored null to be no "
        "value at all; here it is a value, as in LangGraph's base class",
    },
)
