"""The tests of LangGraph's asynchronous PostgreSQL store."""

from tests.adapters.suite import Suite
from tests.adapters.suites import langgraph_store

SUITE = Suite(
    langgraph_store.SUITE.sdist,
    langgraph_store.SUITE.sha256,
    ("tests/test_async_store.py",),
    "langgraph_async_store",
    options=langgraph_store.SUITE.options,
    deselected={
        "tests/test_async_store.py::test_abatch_uses_single_pool_checkout": "of the makers' pool of connections",
        "tests/test_async_store.py::test_omit_expired_disabled_preserves_expired_rows": langgraph_store.KEEPS,
    },
)
