"""The providers' SDKs, which share a generator and the names of their errors, so that one class serves both."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from pydantic import SecretStr

from recollect import forks, tasks
from recollect.inference.failures import Provider, Silent, Unreachable

# Servers of one's own often want no key, and the SDKs want one.
_NO_KEY = "none"


class Account:
    """How a provider is reached."""

    def __init__(self, provider: Provider, key: SecretStr | None, base_url: str | None) -> None:
        self.provider = provider
        self._key = key
        self._base_url = base_url

    def client_options(self) -> dict[str, Any]:
        """What a client is made with; Misconfigured without a key, unless the server is one's own."""
        if self._key is None and self._base_url is None:
            raise self.provider.without_key()
        return {
            "api_key": self.secret(),
            "base_url": self._base_url,
            "max_retries": 0,  # ours are used: they know the limiter, the breaker and the budget
        }

    def secret(self) -> str:
        """The key, to be sent and to be kept out of what is said."""
        return _NO_KEY if self._key is None else self._key.get_secret_value()


class Sdk:
    """One client a process, made when first needed; the package is imported only by those who use it."""

    def __init__(self, account: Account, client: str, **options: Any) -> None:
        self._provider = account.provider
        self._account = account
        self._client_name = client
        self._options = options
        self._client: Any = None

    async def client(self) -> Any:
        """Raises Misconfigured without the package or a key. Importing takes a second and blocks no other caller."""
        if self._client is None:
            options = self._account.client_options()
            try:
                sdk = await tasks.in_thread(_import, self._provider.package)
            except ModuleNotFoundError:
                raise self._provider.without_package() from None
            if self._client is None:
                self._client = getattr(sdk, self._client_name)(**options, **self._options)
        return self._client

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise the errors of the SDK inside this block as ours. They are not chained: theirs hold the request."""
        import httpx2

        sdk = import_module(self._provider.package)
        try:
            yield
        except sdk.APIStatusError as problem:
            # The provider's own sentence, if the answer has one in the documented place.
            body = problem.body if isinstance(problem.body, dict) else {}
            error = body.get("error", body)
            message = error.get("message") if isinstance(error, dict) else None
            sentence = message if isinstance(message, str) and message else str(problem.message)
            said = f"{getattr(problem, 'code', None) or ''} {sentence}".strip()
            headers = problem.response.headers
            raise self._provider.status(problem.status_code, headers, said, self._account.secret()) from None
        except sdk.APITimeoutError as problem:
            if isinstance(problem.__cause__, httpx2.ConnectTimeout):
                raise self._provider.unreachable(Silent) from None
            if isinstance(problem.__cause__, httpx2.PoolTimeout):
                raise self._provider.unreachable() from None
            raise self._provider.silent() from None
        except sdk.APIConnectionError as problem:
            if isinstance(problem.__cause__, httpx2.ConnectError):
                raise self._provider.unreachable(Unreachable) from None
            raise self._provider.unreachable(perhaps_billed=True) from None
        except (sdk.APIError, httpx2.HTTPError, ValueError):
            raise self._provider.unreadable() from None

    async def close(self) -> None:
        """Let go of connections."""
        if self._client is not None:
            await self._client.close()


def _import(package: str) -> ModuleType:
    with forks.importing():
        return import_module(package)
