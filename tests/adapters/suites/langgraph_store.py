"""The tests of LangGraph's PostgreSQL store."""

from tests.adapters.suite import Suite

KEEPS = "what has expired is out of every answer here at once, and there is no option to show it until it is swept"

SUITE = Suite(
    "langgraph-checkpoint-postgres==3.2.0",
    "dffef0e6822d7c614019f7f2c4bdbef42859746aee2d3e6d9d9747cf3744ca90",
    ("tests/test_store.py",),
    "langgraph_store",
    # The same tests thrice, for three ways to hold a connection of psycopg, which ours does not have.
    options=("-k", "not pipe and not pool"),
    deselected={
        "tests/test_store.py::test_escape_like_literal": "of a helper of the makers' SQL",
        "tests/test_store.py::test_namespace_match_pattern": "of a helper of the makers' SQL",
        "tests/test_store.py::test_nonnull_migrations": "of the makers' migrations",
        "tests/test_store.py::test_omit_expired_disabled_preserves_expired_rows": KEEPS,
    },
)
