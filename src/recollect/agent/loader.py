"""The composition root of the agent: builds everything a run needs from the configuration; nothing else wires."""

import importlib
from dataclasses import dataclass, replace
from typing import Any

import httpx

from recollect.agent.config import AgentConfig, ProviderConfig, checked
from recollect.agent.faults import AgentError, FileFault
from recollect.agent.loop import AgentLoop
from recollect.agent.messages import Provider
from recollect.agent.providers.offline import OfflineProvider
from recollect.agent.recall.gateway_service import MemoryGatewayService, open_gateway
from recollect.agent.tools import Toolbox
from recollect.agent.workspace import files
from recollect.agent.workspace.curated import FILES, LIMITS, MemoryService, MemoryStore
from recollect.agent.workspace.memory_tool import MemoryTool
from recollect.agent.workspace.session_search import SessionSearch, SessionSearchTool
from recollect.agent.workspace.sessions import SessionStore
from recollect.agent.workspace.skills import SkillLibrary


@dataclass(frozen=True, slots=True)
class EngineLoadResult:
    """A runtime that is ready. `memory_gateway_service` is there in hybrid mode with a whole configuration only."""

    config: AgentConfig
    memory_service: MemoryService
    memory_gateway_service: MemoryGatewayService | None
    sessions: SessionStore
    skills: SkillLibrary
    tools: Toolbox
    provider: Provider
    loop: AgentLoop
    warnings: tuple[str, ...] = ()

    def status(self) -> dict[str, Any]:
        """What runs, for people and monitors. It names no credential."""
        memory = self.config.memory
        curated: dict[str, dict[str, Any]] = {}
        for target, name in FILES.items():
            try:
                curated[name] = {"characters": self.memory_service.characters(target), "limit": LIMITS[target]}
            except FileFault as problem:
                curated[name] = {"fault": str(problem), "limit": LIMITS[target]}
        gateway: dict[str, Any] = {"active": False, "missing": list(memory.missing)}
        if self.memory_gateway_service is not None and memory.gateway is not None:
            gateway = {
                "active": True,
                "base_url": memory.gateway.base_url,
                "user_id": memory.gateway.user_id,
                "app_id": memory.gateway.app_id,
                "project_id": memory.gateway.project_id,
                "scope": list(memory.gateway.scope),
                "top_k": memory.gateway.top_k,
                "timeout_seconds": memory.gateway.timeout_seconds,
            }
        return {
            "memory": {"mode": memory.mode, "explicit": memory.explicit, "curated": curated, "gateway": gateway},
            "provider": {"name": self.config.provider.name, "model": self.provider.model},
            "tools": [spec.name for spec in self.tools.specs],
            "skills": [skill.name for skill in self.skills.all()],
            "workspace": str(self.config.workspace),
            "warnings": list(self.warnings),
        }

    async def close(self) -> None:
        """Give connections back."""
        await self.provider.close()
        if self.memory_gateway_service:
            await self.memory_gateway_service.close()


class EngineLoader:
    """Loads the runtime once; a changed configuration takes another load."""

    def __init__(
        self,
        config: AgentConfig,
        *,
        provider: Provider | None = None,
        gateway_transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._config = config
        self._provider = provider
        self._gateway_transport = gateway_transport

    def load(self) -> EngineLoadResult:
        """Everything, or an error in a sentence. Curated memory does not depend on the gateway in any way."""
        config = replace(self._config, memory=checked(self._config.memory))
        workspace = files.private_directory(config.workspace)
        memory = MemoryService(MemoryStore(workspace))
        warnings = memory.snapshot().warnings
        sessions = SessionStore(workspace / "sessions")
        skills = SkillLibrary.load(workspace / "skills")
        tools = Toolbox([MemoryTool(memory), SessionSearchTool(SessionSearch(sessions))])
        provider = self._provider or open_provider(config.provider)
        gateway = open_gateway(config.memory, self._gateway_transport)
        rounds = config.provider.max_tool_rounds
        user_key = config.memory.gateway.user_key if config.memory.gateway else None
        credentials = [secret for secret in (user_key, config.provider.api_key) if secret]
        loop = AgentLoop(provider, memory, gateway, sessions, skills, tools, rounds, credentials)
        return EngineLoadResult(
            config,
            memory,
            gateway,
            sessions,
            skills,
            tools,
            provider,
            loop,
            (*config.warnings, *warnings, *skills.warnings),
        )


def open_provider(config: ProviderConfig) -> Provider:
    """The provider that the configuration names. The others' packages are not imported."""
    if config.name == "offline":
        return OfflineProvider()
    try:
        module = importlib.import_module(f"recollect.agent.providers.{config.name}_api")
    except ImportError as problem:
        raise AgentError(
            f"The provider {config.name} needs the package {config.name}: pip install 'recollect[llm]'"
        ) from problem
    provider: Provider = module.open_provider(config)
    return provider
