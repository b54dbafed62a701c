"""Every statement of the capabilities."""

import importlib
import pkgutil

import recollect.memory
from recollect.storage.sql import Queries, Query

# Columns that hold what somebody wrote.
CONTENT = {
    *("beginning", "bodies", "body", "content", "description", "metadata", "name", "observations", "old_memory"),
    *("original_content", "payload", "properties", "query", "record", "reflection", "source", "text", "title", "value"),
}


def every_query() -> list[Query]:
    """By whatever module each is held."""
    for module in pkgutil.walk_packages(recollect.memory.__path__, "recollect.memory."):
        importlib.import_module(module.name)
    queries = {
        query.name: query
        for kind in Queries.__subclasses__()
        # Other tests have kinds of their own, and the scripts of Redis are not SQL.
        if kind.__module__.startswith("recollect.") and kind.__module__ != "recollect.storage.buffers"
        for query in vars(kind).values()
        if isinstance(query, Query)
    }
    return list(queries.values())
