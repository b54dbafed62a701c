"""LangGraph's long-term store and checkpointer on Recollect: `pip install 'recollect[langgraph]'`."""

from recollect.adapters.langgraph.saver import RecollectSaver
from recollect.adapters.langgraph.store import AsyncRecollectStore, RecollectStore

__all__ = ["AsyncRecollectStore", "RecollectSaver", "RecollectStore"]
