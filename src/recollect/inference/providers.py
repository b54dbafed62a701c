"""Providers: builds the clients of OpenAI and Anthropic, with one shared guard per model."""

import re
from urllib.parse import urlsplit

from recollect.errors import Misconfigured
from recollect.inference.anthropic_llm import AnthropicWriter
from recollect.inference.embedding.openai import ModelName, OpenAiEmbedder
from recollect.inference.failures import ANTHROPIC, OPENAI
from recollect.inference.llm import Llm, WrittenLlm
from recollect.inference.openai_llm import OpenAiWriter
from recollect.inference.requests.breaker import FAILURES_TO_OPEN
from recollect.inference.requests.guard import Guard
from recollect.inference.requests.limits import Clock, Limits, Pace, SystemClock, Turns
from recollect.inference.requests.meter import Meter
from recollect.inference.sdk import Account, Sdk
from recollect.settings import EMBEDDING_MODEL, Settings

# The contract's rate; as many at once as can be under way at that rate while each of them is slow.
EMBEDDINGS = Limits(per_second=3, at_once=30)

# Of a server that wants no key: nobody's account, so only its speed limits it.
OWN_EMBEDDINGS = Limits(per_second=100, at_once=30)

# Both attempts of one search: those that follow need not wait as long.
SILENT_EMBEDDINGS_TO_OPEN = 2

CLOCK: Clock = SystemClock()

_SPEC = re.compile(r"(?P<provider>openai|anthropic):(?P<model>\S+)")


class Providers:
    """Hands out models by name. Building one costs nothing; a key or a package that is missing shows on first use."""

    def __init__(self, settings: Settings, meter: Meter, turns: Turns, clock: Clock | None = None) -> None:
        self._meter = meter
        self._turns = turns
        self._clock = clock or CLOCK
        self._limits = Limits(settings.llm_requests_per_second, settings.llm_concurrency)
        self._seconds = settings.llm_deadline_seconds
        self._addresses = {"openai": settings.openai_base_url, "anthropic": settings.anthropic_base_url}
        self._is_own_server = settings.openai_api_key is None and settings.openai_base_url is not None
        self.has_openai = "openai" in settings.usable_providers
        openai = Account(OPENAI, settings.openai_api_key, settings.openai_base_url)
        anthropic = Account(ANTHROPIC, settings.anthropic_api_key, settings.anthropic_base_url)
        self._openai = Sdk(openai, "AsyncOpenAI")
        # Nothing of a memory belongs in a span of theirs.
        self._anthropic = Sdk(anthropic, "AsyncAnthropic", open_telemetry=False)
        self._guards: dict[str, Guard] = {}

    def llm(self, spec: str) -> Llm:
        """The model that a name such as `openai:gpt-4o` or `anthropic:claude-haiku-4-5` stands for."""
        named = _SPEC.fullmatch(spec)
        if named is None:
            raise Misconfigured(
                f"{spec!r} does not name a model: write provider and model, such as openai:gpt-4o-mini or "
                "anthropic:claude-haiku-4-5"
            )
        guard = self._guard(spec, self._limits)
        if named["provider"] == "openai":
            return WrittenLlm(OpenAiWriter(self._openai, guard, named["model"]), self._clock, self._seconds)
        return WrittenLlm(AnthropicWriter(self._anthropic, guard, named["model"]), self._clock, self._seconds)

    def embedder(self, model_id: str, namespace: str, stored_dimensions: int | None = None) -> OpenAiEmbedder:
        """A model of OpenAI's protocol that embeds, on the account of a namespace."""
        named = EMBEDDING_MODEL.fullmatch(model_id)
        if named is None or named["model"] is None:
            raise Misconfigured(f"{model_id!r} does not name an embedding model: write openai:MODEL")
        name = ModelName(model_id, named["model"], int(named["dimensions"]) if named["dimensions"] else None)
        limits = OWN_EMBEDDINGS if self._is_own_server else EMBEDDINGS
        return OpenAiEmbedder(
            name,
            self._openai,
            self._guard(model_id, limits, SILENT_EMBEDDINGS_TO_OPEN),
            namespace,
            stored_dimensions=stored_dimensions,
            own_server=self._is_own_server,
        )

    async def close(self) -> None:
        """Let go of connections."""
        await self._openai.close()
        await self._anthropic.close()

    def _guard(self, model_id: str, limits: Limits, silences_to_open: int = FAILURES_TO_OPEN) -> Guard:
        if model_id not in self._guards:
            # The same name at another address has limits of its own.
            served, address = model_id, self._addresses[model_id.partition(":")[0]]
            if address is not None:
                host = urlsplit(address).netloc.rpartition("@")[2]  # what is before it may be a password
                served = f"{model_id} at {host}"
            pace = Pace(served, limits, self._turns, self._clock)
            self._guards[model_id] = Guard(model_id, pace, self._meter, self._clock, silences_to_open)
        return self._guards[model_id]
