"""The store tests of `langgraph-checkpoint`, which its in-memory store must pass."""

from tests.adapters.suite import Suite

SUITE = Suite(
    "langgraph-checkpoint==4.3.2",
    "fcab8468c7e965d7055e2a35c253d73a145624ef4728b150ca7c361f4afca286",
    ("tests/test_store.py",),
    "langgraph_base_store",
)
