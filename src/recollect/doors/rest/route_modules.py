"""Every module with routes, in the order in which routes are tried."""

from recollect.doors.rest.routes import (
    changes,
    checkpoints,
    gateway,
    health,
    lineage,
    ltm,
    ltm_pinned,
    metrics,
    recall,
    records,
    sessions,
    stm,
    users,
)
from recollect.doors.rest.routes.stores import memory_stores, store_memories, store_versions

# What agents ask all the time comes first, and `pinned` before any id.
ROUTE_MODULES = (
    stm,
    sessions,
    ltm_pinned,
    ltm,
    recall,
    records,
    checkpoints,
    gateway,
    users,
    changes,
    lineage,
    memory_stores,
    store_memories,
    store_versions,
    health,
    metrics,
)
