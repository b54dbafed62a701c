"""The makers' retriever tests are a class to derive from: their own test of it, with ours in its place."""

from typing import Any

import pytest
from recollect_stores import own_connection, replace_names

from recollect.adapters.langchain import RecollectRetriever

SAID = ("Polly is a parrot.", "The parrot likes nuts.", "Bob bought a parrot in May.", "A parrot lives for decades.")


def stored() -> Any:
    connection = own_connection()
    messages = [{"role": "user", "content": text} for text in SAID]
    connection.call("POST", "/stm/{}/messages", "chat", json={"messages": messages})
    return connection


class Retriever(RecollectRetriever):
    """Over a memory with a few messages, and made with the name of a parrot, as the makers' example is."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            connection=stored(), **{name: given for name, given in options.items() if name != "parrot_name"}
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    replace_names(items, {"ParrotRetriever": Retriever})
