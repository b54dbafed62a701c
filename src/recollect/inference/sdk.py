"""What the two providers' SDKs have in common: both are generated from one mould, down to the names of their errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import SecretStr

from recollect.inference.failures import Provider

# Servers of one's own often want no key, and the SDKs want one.
_NO_KEY = "none"


class Account:
    """How a provider is reached."""

    def __init__(self, provider: Provider, key: SecretStr | None, base_url: str | None, timeout: float) -> None:
        self._provider = provider
        self._key = key
        self._base_url = base_url
        self._timeout = timeout

    def client_options(self) -> dict[str, Any]:
        """What a client is made with; Misconfigured without a key, unless the server is one's own."""
        if self._key is None and self._base_url is None:
            raise self._provider.without_key()
        return {
            "api_key": self._secret(),
            "base_url": self._base_url,
            "timeout": self._timeout,
            "max_retries": 0,  # ours are used: they know the limiter, the breaker and the budget
        }

    @contextmanager
    def translated(self, sdk: Any) -> Iterator[None]:
        """Raise the errors of an SDK inside this block as ours. They are not chained: theirs hold the request."""
        import httpx2

        try:
            yield
        except sdk.APIStatusError as problem:
            said = f"{getattr(problem, 'code', None) or ''} {problem.message}".strip()
            headers = problem.response.headers
            raise self._provider.status(problem.status_code, headers, said, self._secret()) from None
        except sdk.APITimeoutError as problem:
            if isinstance(problem.__cause__, httpx2.ConnectTimeout | httpx2.PoolTimeout):
                raise self._provider.unreachable(perhaps_billed=False) from None
            raise self._provider.silent() from None
        except sdk.APIConnectionError as problem:
            never_asked = isinstance(problem.__cause__, httpx2.ConnectError)
            raise self._provider.unreachable(perhaps_billed=not never_asked) from None
        except (sdk.APIError, httpx2.HTTPError, ValueError):
            raise self._provider.unreadable() from None

    def _secret(self) -> str:
        return _NO_KEY if self._key is None else self._key.get_secret_value()
