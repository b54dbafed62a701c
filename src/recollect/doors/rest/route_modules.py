"""Every module with routes, in the order in which routes are tried."""

from recollect.doors.rest.routes import (
    checkpoints,
    coding,
    gateway,
    health,
    ltm,
    ltm_many,
    ltm_pinned,
    metrics,
    recall,
    records,
    sessions,
    stm,
    users,
)
from recollect.doors.rest.routes.oversight import audit, changes, lineage, review
from recollect.doors.rest.routes.stores import memory_stores, store_memories, store_versions

# What agents ask all the time comes first, and names before any id.
ROUTE_MODULES = (
    stm,
    sessions,
    ltm_pinned,
    ltm_many,
    ltm,
    recall,
    records,
    checkpoints,
    gateway,
    users,
    coding,
    changes,
    lineage,
    review,
    audit,
    memory_stores,
    store_memories,
    store_versions,
    health,
    metrics,
)
