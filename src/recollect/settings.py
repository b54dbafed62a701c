"""Every setting, typed, read once from the environment with the prefix RECOLLECT_."""

import ipaddress
import os
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, BeforeValidator, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from recollect import checks
from recollect.errors import Misconfigured
from recollect.quotas import Quota

MAX_CONNECTIONS = 20
PREFIX = "RECOLLECT_"

# In a name as Vertex's text-embedding@001, what follows the sign is not read as dimensions.
# A model's own name may contain an @, but none that dimensions were meant to follow: `@`, `@0` and `@-1` are mistakes.
EMBEDDING_MODEL = re.compile(
    r"local|onnx:(?P<folder>.+)"
    r"|openai:(?P<model>(?:(?!@[-+]?[0-9]*(?:@|$))\S)+?)(?:@(?P<dimensions>[1-9][0-9]*))?"
)
EMBEDDING_MODEL_FORMS = "local, onnx:FOLDER or openai:MODEL[@DIMENSIONS]"

# Lower case, and without a path: clients compare it letter by letter.
PUBLIC_URL = re.compile(
    r"https://[a-z0-9.-]+(?::[0-9]{1,5})?|http://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?"
)

# Variables of our own tools, which the product does not read.
NOT_SETTINGS = ("RECOLLECT_TEST_", "RECOLLECT_BENCH_")


def _listed(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


# In the environment: a, b, c
Listed = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]


# In the environment: requests_per_minute=600, rows_per_day=10000
QuotaSetting = Annotated[
    Quota | None, NoDecode, BeforeValidator(lambda value: Quota.parse(value) if isinstance(value, str) else value)
]


class Settings(BaseSettings):
    """What a deployment can choose; every default works on a laptop."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", env_ignore_empty=True, populate_by_name=True
    )

    database_url: SecretStr | None = Field(
        None, description="PostgreSQL 15 or newer with pgvector 0.7 or newer; the embedded server if not set"
    )
    database_owner_url: SecretStr | None = Field(
        None,
        description="The same database with the role that owns the tables, if that of RECOLLECT_DATABASE_URL does not",
    )
    database_read_url: SecretStr | None = Field(
        None, description="A streaming standby of the server of RECOLLECT_DATABASE_URL; it answers searches"
    )
    database_pooling: Literal["session", "transaction"] = Field(
        "session", description="Use 'transaction' behind PgBouncer in transaction mode or a pooled endpoint"
    )
    database_connections: int = Field(
        10, ge=2, le=MAX_CONNECTIONS, description="Maximum number of connections per process"
    )
    database_timeout_seconds: float = Field(30.0, gt=0, description="Timeout of one statement")
    data_dir: Path | None = Field(
        None, description="Directory of the embedded server; the user's data directory if not set"
    )
    namespace: str = Field("default", description="Namespace that the library and the command line use")
    embedding_model_path: Path | None = Field(
        None, description="What `local` stands for: an ONNX file of all-MiniLM-L6-v2, or a model's folder"
    )
    embedding_model: str = Field(
        "local",
        description=f"Embedding model for new namespaces: {EMBEDDING_MODEL_FORMS}; "
        "`recollect embeddings switch` changes existing ones",
    )
    llm: str | None = Field(
        None,
        description="Model that writes summaries and memories, such as openai:gpt-4o-mini; no LLM is used if not set",
    )
    llm_daily_tokens: int = Field(1_000_000, ge=0, description="Daily token budget per namespace (UTC days)")
    llm_requests_per_second: float = Field(
        5.0, gt=0, le=1000, description="Requests per second to each language model, from all processes together"
    )
    llm_concurrency: int = Field(
        8, ge=1, le=1000, description="Concurrent requests to each language model, from all processes together"
    )
    llm_deadline_seconds: float = Field(
        30.0,
        gt=0,
        le=3600,
        description="How long to wait for the language model before a summary or memory is made without it",
    )
    openai_api_key: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("RECOLLECT_OPENAI_API_KEY", "OPENAI_API_KEY"),
        description="API key for OpenAI, or for the server at the base URL",
    )
    openai_base_url: str | None = Field(
        None,
        validation_alias=AliasChoices("RECOLLECT_OPENAI_BASE_URL", "OPENAI_BASE_URL"),
        pattern=r"^https?://\S+$",
        description="URL of an OpenAI-compatible server; OpenAI itself if not set",
    )
    anthropic_api_key: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("RECOLLECT_ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"),
        description="API key for Anthropic, or for the server at the base URL",
    )
    anthropic_base_url: str | None = Field(
        None,
        validation_alias=AliasChoices("RECOLLECT_ANTHROPIC_BASE_URL", "ANTHROPIC_BASE_URL"),
        pattern=r"^https?://\S+$",
        description="URL of an Anthropic-compatible server; Anthropic itself if not set",
    )
    judge_openai_model: str = Field(
        "gpt-4o", pattern=r"^\S+$", description="OpenAI model for the first of the two judges"
    )
    judge_anthropic_model: str = Field(
        "claude-haiku-4-5", pattern=r"^\S+$", description="Anthropic model for the second of the two judges"
    )
    judge_deadline_seconds: float = Field(
        55.0, gt=0, le=3600, description="Timeout of one judging call; documents not judged by then are reported"
    )
    indexer: bool = Field(True, description="Whether this process embeds new passages in the background")
    host: str = Field("127.0.0.1", description="Address `recollect serve` binds to")
    port: int = Field(8000, ge=0, le=65535, description="Port `recollect serve` binds to")
    console: bool = Field(True, description="Whether `recollect serve` has the console, pages for browsers at /console")
    defence: Literal["off", "warn", "enforce"] = Field(
        "off",
        description="Screen what is stored: 'warn' lists texts that seem to steer a model for review, 'enforce' also "
        "keeps them from recall until somebody releases them",
    )
    masking: bool = Field(
        False, description="Whether secrets and personal numbers are written over before anything is stored"
    )
    audit: Literal["off", "changes", "all"] = Field(
        "off",
        description="What the audit log records: every operation ('all'), only those that changed something or did not "
        "succeed ('changes'), or nothing ('off')",
    )
    rate_limit_per_minute: int | None = Field(
        None, ge=1, description="Maximum requests per minute per key, in each server process; unlimited if not set"
    )
    key_quota: QuotaSetting = Field(
        None,
        description="Default quota of each key, counted across all processes: requests_per_minute=N, rows_per_day=N, "
        "bytes_per_day=N, or some of them; unlimited if not set",
    )
    user_quota: QuotaSetting = Field(None, description="Quota of each user, in the same form")
    require_key: bool = Field(
        False, description="Whether HTTP requests always need a key, even on loopback and in a namespace without keys"
    )
    trusted_proxies: Listed = Field(
        (), description="Addresses or networks of proxies whose X-Forwarded-For is trusted, comma-separated"
    )
    public_url: str | None = Field(
        None,
        description="Public address of `recollect serve`, such as https://memory.example.org; lets remote MCP clients "
        "sign in with OAuth",
    )
    sign_in_header: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9-]+$",
        description="Header in which the proxies in RECOLLECT_TRUSTED_PROXIES name the person they signed in, who "
        "can then connect MCP clients without a key",
    )
    cors_origins: Listed = Field((), description="Origins allowed to call from a browser, comma-separated; * for all")
    redis_url: SecretStr | None = Field(None, description="Optional Redis or Valkey for short-term buffers")
    stm_strategy: Literal["sliding_window", "token_threshold"] = Field(
        "sliding_window",
        validation_alias=AliasChoices("RECOLLECT_STM_STRATEGY", "STM_STRATEGY"),
        description="How a short-term window is limited: keep the last messages, or summarise the oldest",
    )
    stm_max_messages: int = Field(
        50,
        ge=1,
        validation_alias=AliasChoices("RECOLLECT_STM_MAX_MESSAGES", "STM_MAX_MESSAGES"),
        description="Messages in a sliding window",
    )
    fidelity_threshold: float = Field(
        0.5, ge=0, le=1, description="Information density below which an insight gets a warning"
    )
    stm_max_tokens: int = Field(
        4000,
        ge=1,
        validation_alias=AliasChoices("RECOLLECT_STM_MAX_TOKENS", "STM_MAX_TOKENS"),
        description="Tokens in a window above which its oldest messages are summarised",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Minimum severity to log")
    log_format: Literal["text", "json"] = Field("text", description="'json' writes one object per line")

    @property
    def usable_providers(self) -> frozenset[str]:
        """Providers with an API key, or with a base URL, which may not need a key."""
        known = {
            "openai": self.openai_api_key or self.openai_base_url,
            "anthropic": self.anthropic_api_key or self.anthropic_base_url,
        }
        return frozenset(name for name, access in known.items() if access)

    @field_validator("log_level", mode="before")
    @classmethod
    def _in_any_case(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @field_validator("llm")
    @classmethod
    def _names_a_provider(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"(openai|anthropic):\S+", value):
            raise ValueError("write openai:MODEL or anthropic:MODEL")
        return value

    @field_validator("embedding_model")
    @classmethod
    def _names_a_model(cls, value: str) -> str:
        named = EMBEDDING_MODEL.fullmatch(value)
        if named is None:
            raise ValueError(f"write {EMBEDDING_MODEL_FORMS}")
        if named["dimensions"] and int(named["dimensions"]) > checks.MAX_DIMENSIONS:
            raise ValueError(f"at most {checks.MAX_DIMENSIONS:,} dimensions can be stored")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            try:
                ipaddress.ip_network(each)
            except ValueError:
                raise ValueError("write addresses or networks, such as 127.0.0.1,10.0.0.0/8") from None
        return value

    @field_validator("public_url")
    @classmethod
    def _is_an_origin(cls, value: str | None) -> str | None:
        plain = None if value is None else value.rstrip("/")
        if plain is not None and not PUBLIC_URL.fullmatch(plain):
            raise ValueError(
                "write an address without a path, such as https://memory.example.org; http only on loopback"
            )
        return plain

    @field_validator("sign_in_header")
    @classmethod
    def _comes_from_a_proxy(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and not info.data.get("trusted_proxies"):
            raise ValueError("set RECOLLECT_TRUSTED_PROXIES too: the header is trusted only from those addresses")
        return value

    @field_validator("cors_origins")
    @classmethod
    def _are_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(each != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]{0,30}://[^/\s]+", each) for each in value):
            raise ValueError("write origins without a path, such as https://app.example.org, or *")
        return value

    _namespace_is_usable = field_validator("namespace")(checks.namespace)


def _variable(place: str) -> str:
    """The variable a setting came from; the first that is set if it has several names."""
    for field in Settings.model_fields.values():
        alias = field.validation_alias
        if isinstance(alias, AliasChoices) and place in alias.choices:
            return next((str(name) for name in alias.choices if os.environ.get(str(name))), place)
    return f"{PREFIX}{place.upper()}"


# The library's own words are for programmers.
_FAULTS = {
    "bool_parsing": "must be true or false",
    "float_parsing": "must be a number",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge}",
    "int_parsing": "must be a whole number",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
}


def _fault(error: ErrorDetails) -> str:
    name = _variable(str(error["loc"][0]))
    if said := _FAULTS.get(error["type"]):
        return f"{name} {said.format(**error.get('ctx', {}))}"
    return f"{name}: {error['msg'].removeprefix('Value error, ')}"


def load() -> Settings:
    """Settings from the environment. Errors name the variable but do not repeat its value."""
    # Unknown variables are refused: a typo could select the wrong database.
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    for name in os.environ:
        if name.startswith(PREFIX) and not name.startswith(NOT_SETTINGS) and name not in known:
            raise Misconfigured(f"Unknown setting {name}. {checks.nearest(name, sorted(known))}")
    try:
        return Settings()
    except ValidationError as problem:
        raise Misconfigured("; ".join(map(_fault, problem.errors()))) from None
