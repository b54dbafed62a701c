"""Every setting, typed, read once from the environment with the prefix RECOLLECT_."""

import difflib
import os
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from recollect import checks
from recollect.errors import Misconfigured

MAX_CONNECTIONS = 20
PREFIX = "RECOLLECT_"

# Variables of our own tools, which the product does not read.
NOT_SETTINGS = ("RECOLLECT_TEST_", "RECOLLECT_BENCH_")


class Settings(BaseSettings):
    """What someone who deploys Recollect may choose; everything has a default that works on a laptop."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid", env_ignore_empty=True)

    database_url: SecretStr | None = Field(
        None, description="Any PostgreSQL >= 15 with pgvector >= 0.7; without it the embedded server is used"
    )
    database_pooling: Literal["session", "transaction"] = Field(
        "session", description="'transaction' behind PgBouncer in transaction mode, a pooled endpoint, or Citus"
    )
    database_connections: int = Field(10, ge=1, le=MAX_CONNECTIONS, description="Connections of one process at most")
    database_timeout_seconds: float = Field(30.0, gt=0, description="How long one statement may take")
    data_dir: Path | None = Field(None, description="Home of the embedded server; by default the user's data directory")
    namespace: str = Field("default", description="Whose memory the library and the command line read and write")
    embedding_model_path: Path | None = Field(
        None, description="ONNX file of all-MiniLM-L6-v2 to use instead of the one in the wheel"
    )
    indexer: bool = Field(True, description="Whether this process gives new passages their meaning in the background")
    host: str = Field("127.0.0.1", description="Address that `recollect serve` binds")
    port: int = Field(8000, ge=0, le=65535, description="Port that `recollect serve` binds")
    redis_url: SecretStr | None = Field(None, description="Optional Redis or Valkey for short-term buffers")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Least severity that is logged")
    log_format: Literal["text", "json"] = Field("text", description="'json' writes one object a line")

    @field_validator("log_level", mode="before")
    @classmethod
    def _in_any_case(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    _namespace_is_usable = field_validator("namespace")(checks.namespace)


def _refuse_misspelt() -> None:
    """A variable that nobody reads is a wish that nobody hears: someone may believe to write to another database."""
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    for name in os.environ:
        if name.startswith(PREFIX) and not name.startswith(NOT_SETTINGS) and name not in known:
            nearest = difflib.get_close_matches(name, known, 1)
            hint = f"Did you mean {nearest[0]}?" if nearest else f"Known are: {', '.join(sorted(known))}."
            raise Misconfigured(f"There is no setting {name}. {hint}")


def load() -> Settings:
    """The settings of this process's environment; what is wrong is named, and values are not repeated."""
    _refuse_misspelt()
    try:
        return Settings()
    except ValidationError as problem:
        faults = "; ".join(f"RECOLLECT_{str(e['loc'][0]).upper()}: {e['msg']}" for e in problem.errors())
        raise Misconfigured(f"Settings in the environment are not usable. {faults}") from None
