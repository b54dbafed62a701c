"""Recollect: memory for AI agents. One engine and one PostgreSQL + pgvector store behind five doors."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.doors.changes import Change, ChangesPage
    from recollect.doors.library.context_service import ContextService
    from recollect.doors.library.errors import StorageError
    from recollect.doors.library.memory_manager import MemoryManager
    from recollect.doors.library.new_items import NewDocument, NewMessage
    from recollect.doors.lineage import (
        ItemLineage,
        LineageDifference,
        LineageEvent,
        LineageMention,
        LineageReplaced,
        LineageSource,
    )
    from recollect.doors.memories import AddedMemory, DeletedMemory, MemoryEvent, MemoryRecord, PinnedRecords
    from recollect.doors.recalls import Recollection
    from recollect.errors import (
        AccessDenied,
        Conflict,
        Forbidden,
        Invalid,
        LimitReached,
        Misconfigured,
        NotFound,
        RecollectError,
        Unavailable,
    )
    from recollect.flows.forgetting.receipts import Receipt
    from recollect.flows.search.citations import Citation
    from recollect.flows.search.ranking import Parts
    from recollect.flows.search.recollection import Explanation, Memory
    from recollect.models import (
        AgentResponse,
        ApprovalRequest,
        Document,
        Message,
        Session,
        ToolCall,
        ToolGapReport,
    )
    from recollect.quotas import Quota
    from recollect.settings import Settings

__version__ = "0.2.0"

__all__ = [
    "AccessDenied",
    "AddedMemory",
    "AgentResponse",
    "ApprovalRequest",
    "Change",
    "ChangesPage",
    "Citation",
    "Conflict",
    "ContextService",
    "DeletedMemory",
    "Document",
    "Explanation",
    "Forbidden",
    "Invalid",
    "ItemLineage",
    "LimitReached",
    "LineageDifference",
    "LineageEvent",
    "LineageMention",
    "LineageReplaced",
    "LineageSource",
    "Memory",
    "MemoryEvent",
    "MemoryManager",
    "MemoryRecord",
    "Message",
    "Misconfigured",
    "NewDocument",
    "NewMessage",
    "NotFound",
    "Parts",
    "PinnedRecords",
    "Quota",
    "Receipt",
    "RecollectError",
    "Recollection",
    "Session",
    "Settings",
    "StorageError",
    "ToolCall",
    "ToolGapReport",
    "Unavailable",
]

_HOMES = {
    "ItemLineage": "recollect.doors.lineage",
    "LineageDifference": "recollect.doors.lineage",
    "LineageEvent": "recollect.doors.lineage",
    "LineageMention": "recollect.doors.lineage",
    "LineageReplaced": "recollect.doors.lineage",
    "LineageSource": "recollect.doors.lineage",
    "Change": "recollect.doors.changes",
    "ChangesPage": "recollect.doors.changes",
    "ContextService": "recollect.doors.library.context_service",
    "StorageError": "recollect.doors.library.errors",
    "MemoryManager": "recollect.doors.library.memory_manager",
    "NewDocument": "recollect.doors.library.new_items",
    "NewMessage": "recollect.doors.library.new_items",
    "AddedMemory": "recollect.doors.memories",
    "DeletedMemory": "recollect.doors.memories",
    "MemoryEvent": "recollect.doors.memories",
    "MemoryRecord": "recollect.doors.memories",
    "PinnedRecords": "recollect.doors.memories",
    "Citation": "recollect.flows.search.citations",
    "Explanation": "recollect.flows.search.recollection",
    "Memory": "recollect.flows.search.recollection",
    "Parts": "recollect.flows.search.ranking",
    "Receipt": "recollect.flows.forgetting.receipts",
    "Recollection": "recollect.doors.recalls",
    "Quota": "recollect.quotas",
    "Settings": "recollect.settings",
}
_MODELS = frozenset({"AgentResponse", "ApprovalRequest", "Document", "Message", "Session", "ToolCall", "ToolGapReport"})


def __getattr__(name: str) -> Any:
    """Public names load on first use, so that `import recollect` stays quick."""
    if name not in __all__:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    home = _HOMES.get(name) or ("recollect.models" if name in _MODELS else "recollect.errors")
    return getattr(import_module(home), name)
