"""Providers: builds what talks to OpenAI and Anthropic, with one guard for each model however many use it."""

import re

from recollect.errors import Misconfigured
from recollect.inference.anthropic_llm import AnthropicWriter
from recollect.inference.failures import ANTHROPIC, OPENAI
from recollect.inference.guard import Guard
from recollect.inference.limits import Clock, SystemClock
from recollect.inference.llm import Llm, WrittenLlm
from recollect.inference.meter import Meter
from recollect.inference.openai_embedder import MODEL_ID, OpenAiEmbedder
from recollect.inference.openai_llm import OpenAiWriter
from recollect.inference.sdk import Account, Sdk
from recollect.settings import Settings

# The contract's rates, for each model of each process.
LLM_PER_SECOND = 1
EMBEDDINGS_PER_SECOND = 3

REQUEST_SECONDS = 60.0

CLOCK: Clock = SystemClock()

_SPEC = re.compile(r"(?P<provider>openai|anthropic):(?P<model>\S+)")


class Providers:
    """Hands out models by name. Building one costs nothing; a key or a package that is missing shows on first use."""

    def __init__(self, settings: Settings, meter: Meter, clock: Clock | None = None) -> None:
        self._meter = meter
        self._clock = clock or CLOCK
        self.has_openai = "openai" in settings.usable_providers
        openai = Account(OPENAI, settings.openai_api_key, settings.openai_base_url, REQUEST_SECONDS)
        anthropic = Account(ANTHROPIC, settings.anthropic_api_key, settings.anthropic_base_url, REQUEST_SECONDS)
        self._openai = Sdk(openai, "AsyncOpenAI")
        # Nothing of a memory belongs in a span of theirs.
        self._anthropic = Sdk(anthropic, "AsyncAnthropic", open_telemetry=False)
        self._guards: dict[str, Guard] = {}

    def llm(self, spec: str) -> Llm:
        """The model that a name such as `openai:gpt-4o` or `anthropic:claude-haiku-4-5` stands for."""
        named = _SPEC.fullmatch(spec)
        if named is None:
            raise Misconfigured(
                f"{spec!r} does not name a model: write provider and model, as in openai:gpt-4o-mini or "
                "anthropic:claude-haiku-4-5."
            )
        guard = self._guard(spec, LLM_PER_SECOND)
        if named["provider"] == "openai":
            return WrittenLlm(OpenAiWriter(self._openai, guard, named["model"]))
        return WrittenLlm(AnthropicWriter(self._anthropic, guard, named["model"]))

    def embedder(self, namespace: str) -> OpenAiEmbedder:
        """OpenAI's embeddings, on the account of a namespace."""
        return OpenAiEmbedder(self._openai, self._guard(MODEL_ID, EMBEDDINGS_PER_SECOND), namespace)

    async def close(self) -> None:
        """Let go of connections."""
        await self._openai.close()
        await self._anthropic.close()

    def _guard(self, model_id: str, per_second: int) -> Guard:
        if model_id not in self._guards:
            self._guards[model_id] = Guard(model_id, per_second, self._meter, self._clock)
        return self._guards[model_id]
