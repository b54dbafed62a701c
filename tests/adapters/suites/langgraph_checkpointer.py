"""The conformance suite of LangGraph's checkpointers: every capability that it knows, base and extended."""

from tests.adapters.suite import Suite

SUITE = Suite(
    "langgraph-checkpoint-conformance==0.0.2",
    "6718e00937bf2f04cdfd2cdfabea23e1dabb79a534ff4c127f305f6b40dad4e0",
    ("tests/test_validate_memory.py",),
    "langgraph_checkpointer",
)
