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
    from recollect.agent.curated import MemoryService, MemorySnapshot, MemoryStore
    from recollect.agent.faults import AgentError, FileFault, ProviderError, Refused
    from recollect.agent.gateway_client import GatewayClient, GatewayError
    from recollect.agent.gateway_service import AuditEvent, MemoryGatewayService, RecallOutcome
    from recollect.agent.loader import EngineLoader, EngineLoadResult
    from recollect.agent.loop import AgentLoop, AgentRunResult
    from recollect.agent.memory_tool import MemoryTool
    from recollect.agent.secret import Secret
    from recollect.agent.session_search import SessionSearch, SessionSearchTool
    from recollect.agent.sessions import SessionEvent, SessionStore
    from recollect.agent.skills import SkillLibrary

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
    "curated": ("MemoryService", "MemorySnapshot", "MemoryStore"),
    "faults": ("AgentError", "FileFault", "ProviderError", "Refused"),
    "gateway_client": ("GatewayClient", "GatewayError"),
    "gateway_service": ("AuditEvent", "MemoryGatewayService", "RecallOutcome"),
    "loader": ("EngineLoadResult", "EngineLoader"),
    "loop": ("AgentLoop", "AgentRunResult"),
    "memory_tool": ("MemoryTool",),
    "secret": ("Secret",),
    "session_search": ("SessionSearch", "SessionSearchTool"),
    "sessions": ("SessionEvent", "SessionStore"),
    "skills": ("SkillLibrary",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Public names load on first use, so that `import recollect.agent` stays quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'recollect.agent' has no attribute {name!r}")
    return getattr(import_module(f"recollect.agent.{_HOME[name]}"), name)
