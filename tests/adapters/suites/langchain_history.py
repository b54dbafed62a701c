"""LangChain's tests of chat histories and of the runnable that uses one."""

from tests.adapters.suite import Suite

HISTORIES = "tests/unit_tests/chat_history/test_chat_history.py"

SUITE = Suite(
    sdist="langchain-core==1.7.2",
    sha256="7810d029eaa4286838baad56752efb771868a5eebaf52aefe45764645dbea649",
    files=(HISTORIES, "tests/unit_tests/runnables/test_history.py"),
    plugin="langchain_histories",
    # Theirs looks for calls that block the event loop, with a package that these tests do without.
    options=("--noconftest", "--timeout=60"),
    deselected={
        f"{HISTORIES}::test_chat_history_deprecated": "reads the docstrings of LangChain's own classes",
        f"{HISTORIES}::test_add_message_implementation_only": "builds a history of its own, and none of ours",
        f"{HISTORIES}::test_bulk_message_implementation_only": "builds a history of its own, and none of ours",
        f"{HISTORIES}::test_async_interface": "builds a history of its own, and none of ours",
    },
)
