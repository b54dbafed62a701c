"""The standard integration tests of LangChain's retrievers, on the makers' example of them."""

from tests.adapters.suite import Suite

SUITE = Suite(
    "langchain-tests==1.1.9",
    "a977a0c8f9a42ba2021a5ae59d468e4023f98a83818a3cb30e12c1dfab830203",
    ("tests/unit_tests/test_basic_retriever.py",),
    "langchain_retriever",
)
