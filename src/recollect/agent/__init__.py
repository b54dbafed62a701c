"""The agent runtime: curated files, skills, sessions and a best-effort memory gateway, reached over HTTP only."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.agent.config import (
        AgentConfig,
        ConfigurationError,
        GatewayConfig,
        MemoryConfig,
        ProviderConfig,
        load_config,
    )
    from recollect.agent.context import ContextBuilder
    from recollect.agent.faults import AgentError, FileFault, ProviderError, Refused
    from recollect.agent.loader import EngineLoader, EngineLoadResult
    from recollect.agent.loop import AgentLoop, AgentRunResult
    from recollect.agent.recall.gateway_client import GatewayClient, GatewayError
    from recollect.agent.recall.gateway_service import AuditEvent, MemoryGatewayService, RecallOutcome
    from recollect.agent.secret import Secret
    from recollect.agent.workspace.curated import MemoryService, MemorySnapshot, MemoryStore
    from recollect.agent.workspace.memory_tool import MemoryTool
    from recollect.agent.workspace.session_search import SessionSearch, SessionSearchTool
    from recollect.agent.workspace.sessions import SessionEvent, SessionStore
    from recollect.agent.workspace.skills import SkillLibrary

__all__ = [
    "AgentConfig",
    "AgentError",
    "AgentLoop",
    "AgentRunResult",
    "AuditEvent",
    "ConfigurationError",
    "ContextBuilder",
    "EngineLoadResult",
    "EngineLoader",
    "FileFault",
    "GatewayClient",
    "GatewayConfig",
    "GatewayError",
    "MemoryConfig",
    "MemoryGatewayService",
    "MemoryService",
    "MemorySnapshot",
    "MemoryStore",
    "MemoryTool",
    "ProviderConfig",
    "ProviderError",
    "RecallOutcome",
    "Refused",
    "Secret",
    "SessionEvent",
    "SessionSearch",
    "SessionSearchTool",
    "SessionStore",
    "SkillLibrary",
    "load_config",
]

_HOMES = {
    "config": ("AgentConfig", "ConfigurationError", "GatewayConfig", "MemoryConfig", "ProviderConfig", "load_config"),
    "context": ("ContextBuilder",),
    "workspace.curated": ("MemoryService", "MemorySnapshot", "MemoryStore"),
    "faults": ("AgentError", "FileFault", "ProviderError", "Refused"),
    "recall.gateway_client": ("GatewayClient", "GatewayError"),
    "recall.gateway_service": ("AuditEvent", "MemoryGatewayService", "RecallOutcome"),
    "loader": ("EngineLoadResult", "EngineLoader"),
    "loop": ("AgentLoop", "AgentRunResult"),
    "workspace.memory_tool": ("MemoryTool",),
    "secret": ("Secret",),
    "workspace.session_search": ("SessionSearch", "SessionSearchTool"),
    "workspace.sessions": ("SessionEvent", "SessionStore"),
    "workspace.skills": ("SkillLibrary",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Public names load on first use, so that `import recollect.agent` stays quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'recollect.agent' has no attribute {name!r}")
    return getattr(import_module(f"recollect.agent.{_HOME[name]}"), name)
