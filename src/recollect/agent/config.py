"""The agent's configuration: one JSON file, read once at start; error messages name the field."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, cast

import httpx

from recollect.agent.config_file import ConfigurationError as ConfigurationError
from recollect.agent.config_file import Section, read
from recollect.agent.secret import Secret

Mode = Literal["curated", "hybrid"]
ProviderName = Literal["offline", "anthropic", "openai"]

MODES = ("curated", "hybrid")
PROVIDERS = ("offline", "anthropic", "openai")
SCOPES = ("current_chat", "resources", "all_user_memory")
DEFAULT_SCOPE = ("current_chat", "resources")

DEFAULT_APP = "default"
DEFAULT_PROJECT = "default"
DEFAULT_TOP_K = 8
DEFAULT_TIMEOUT_SECONDS = 10.0
DEFAULT_TOKENS = 4096
DEFAULT_TOOL_ROUNDS = 8

MAX_TOP_K = 100
MAX_TIMEOUT_SECONDS = 86_400.0
MAX_TOKENS = 1_000_000
MAX_TOOL_ROUNDS = 100
MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """Which gateway, as whom, and what to ask of it."""

    base_url: str
    user_id: str
    user_key: Secret
    app_id: str = DEFAULT_APP
    project_id: str = DEFAULT_PROJECT
    scope: tuple[str, ...] = DEFAULT_SCOPE
    top_k: int = DEFAULT_TOP_K
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    # The least relevance of a result, from 0 to 1; None leaves the number to the gateway.
    min_relevance: float | None = None


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """Curated memory is on in both modes; hybrid adds the gateway, unless its credentials are missing."""

    mode: Mode = "hybrid"
    explicit: bool = False
    gateway: GatewayConfig | None = None
    # What an implicit hybrid lacks, as names of fields: the gateway stays off, and the loader says so once.
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """Which model answers. `offline` needs no key and no network."""

    name: ProviderName = "offline"
    model: str | None = None
    base_url: str | None = None
    api_key: Secret | None = None
    max_tokens: int = DEFAULT_TOKENS
    max_tool_rounds: int = DEFAULT_TOOL_ROUNDS


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """Everything the runtime is built from. The workspace holds the curated files, the skills and the sessions."""

    memory: MemoryConfig = field(default_factory=MemoryConfig)
    provider: ProviderConfig = field(default_factory=ProviderConfig)
    workspace: Path = field(default_factory=lambda: default_path().parent)
    warnings: tuple[str, ...] = ()


def default_path() -> Path:
    """The configuration file that is used if none is named."""
    return Path.home() / ".recollect" / "agent" / "config.json"


def load_config(path: Path | None) -> AgentConfig:
    """The configuration in a file; if none is named, that of the default place, which need not exist."""
    place = path or default_path()
    document = Section({}) if path is None and not place.exists() else read(place)
    memory = _memory(document.section("memory") or Section({}, "memory"))
    provider = _provider(document.section("provider") or Section({}, "provider"))
    named = document.text("workspace", ".")
    try:
        # A relative folder counts from the configuration's own.
        workspace = place.absolute().parent / Path(named).expanduser()
    except RuntimeError:
        workspace = None
    if workspace is None or "\0" in named:
        document.refuse("workspace", "must be the path of a folder")
    # The file may be one that other programs read, too.
    others = document.others()
    unused = (f"The configuration has unknown sections, which are ignored: {', '.join(others)}.",) if others else ()
    return AgentConfig(memory, provider, workspace, unused)


def checked(memory: MemoryConfig) -> MemoryConfig:
    """A configuration that was built in Python, held to the rules of the file; its faults name the file's fields."""
    if memory.mode not in MODES:
        raise ConfigurationError(f"memory.mode must be one of: {', '.join(MODES)}")
    if memory.mode == "curated":
        return replace(memory, gateway=None)
    if memory.gateway is None and not memory.explicit:
        return memory
    fields: dict[str, object] = {}
    if (given := memory.gateway) is not None:
        fields = {
            "baseUrl": given.base_url,
            "userId": given.user_id,
            "userKey": Secret(given.user_key.strip()) if isinstance(given.user_key, str) else given.user_key,
            "appId": given.app_id,
            "projectId": given.project_id,
            "scope": list(given.scope) if isinstance(given.scope, tuple) else given.scope,
            "topK": given.top_k,
            "timeoutSeconds": given.timeout_seconds,
            "minRelevance": given.min_relevance,
        }
    present = {name: value for name, value in fields.items() if value is not None}
    gateway = _gateway(Section(present, "memory.gateway"))
    if not isinstance(gateway, GatewayConfig):
        raise _needs(gateway)
    return replace(memory, gateway=gateway)


def _needs(missing: tuple[str, ...]) -> ConfigurationError:
    return ConfigurationError(
        f"memory.mode hybrid requires {', '.join(missing)}: set the missing fields, or set memory.mode to curated"
    )


def _memory(section: Section) -> MemoryConfig:
    """Hybrid is explicit when `mode` says so. A section without `mode`, like no section, is implicitly hybrid."""
    chosen = section.choice("mode", MODES)
    if chosen == "curated":
        section.skip("gateway")
        section.finish()
        return MemoryConfig("curated", explicit=True)
    explicit = chosen is not None
    gateway = _gateway(section.section("gateway") or Section({}, section.path("gateway")))
    section.finish()
    if isinstance(gateway, GatewayConfig):
        return MemoryConfig("hybrid", explicit, gateway)
    if explicit:
        raise _needs(gateway)
    return MemoryConfig("hybrid", explicit, missing=gateway)


def _gateway(section: Section) -> GatewayConfig | tuple[str, ...]:
    """The gateway, or the names of the fields it cannot do without. What is there must be right in either case."""
    base_url = _url(section, "baseUrl")
    user_id = section.text("userId", "")
    user_key = section.secret("userKey")
    rest = {
        "app_id": section.text("appId", DEFAULT_APP),
        "project_id": section.text("projectId", DEFAULT_PROJECT),
    }
    scope = section.choices("scope", DEFAULT_SCOPE, SCOPES)
    top_k = section.whole("topK", DEFAULT_TOP_K, 1, MAX_TOP_K)
    timeout = section.seconds("timeoutSeconds", DEFAULT_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS)
    floor = section.fraction("minRelevance")
    section.finish()
    if base_url and user_id and user_key:
        return GatewayConfig(
            base_url, user_id, user_key, **rest, scope=scope, top_k=top_k, timeout_seconds=timeout, min_relevance=floor
        )
    there = {"baseUrl": base_url, "userId": user_id, "userKey": user_key}
    return tuple(section.path(name) for name, value in there.items() if not value)


def _provider(section: Section) -> ProviderConfig:
    name = cast(ProviderName, section.choice("name", PROVIDERS) or "offline")
    model = section.text("model", "") or None
    base_url = _url(section, "baseUrl") or None
    api_key, variable = section.secret("apiKey"), section.text("apiKeyEnv", "")
    if api_key and variable:
        section.refuse("apiKeyEnv", "conflicts with apiKey: keep only one of them")
    if variable:
        api_key = Secret(os.environ.get(variable, "").strip())
        if not api_key:
            section.refuse("apiKeyEnv", "names an environment variable that is not set")
    config = ProviderConfig(
        name=name,
        model=model,
        base_url=base_url,
        api_key=api_key,
        max_tokens=section.whole("maxTokens", DEFAULT_TOKENS, 1, MAX_TOKENS),
        max_tool_rounds=section.whole("maxToolRounds", DEFAULT_TOOL_ROUNDS, 1, MAX_TOOL_ROUNDS),
    )
    section.finish()
    if name != "offline" and config.model is None:
        section.refuse("model", f"is missing: set it to a model of {name}")
    # Servers of one's own that speak as OpenAI does often take no key.
    if config.api_key is None and (name == "anthropic" or (name == "openai" and config.base_url is None)):
        section.refuse("apiKeyEnv", f"is missing: set it to the environment variable with the API key for {name}")
    return config


def _url(section: Section, field: str) -> str:
    """An address to add paths to. One with a password in it would be shown by logs that name the address."""
    text = section.text(field, "").rstrip("/")
    try:
        url = httpx.URL(text)
        # What the resolver or the socket would choke on is refused here.
        reachable = bool(url.host.encode("idna")) and (url.port is None or 0 < url.port <= MAX_PORT)
        usable = reachable and url.scheme in ("http", "https") and not (url.userinfo or url.query or url.fragment)
    except (httpx.InvalidURL, ValueError):
        usable = False
    if text and not usable:
        section.refuse(field, "must be a URL such as http://127.0.0.1:8000, without user, query or fragment")
    return text
