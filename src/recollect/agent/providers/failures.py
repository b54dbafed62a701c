"""Failures of a provider as error messages without credentials."""

from recollect.agent.faults import ProviderError
from recollect.agent.secret import Secret

MAX_SAID = 200

_ADVICE = {
    401: "check the API key",
    403: "the API key has no access to this model",
    404: "check the model name and the URL",
    413: "the conversation is too long: start a new one",
    429: "too many requests or no credit left: wait and try again",
    529: "it is overloaded: wait and try again",
}


def refused(name: str, status: int, said: str | None, key: Secret | None) -> ProviderError:
    """An answer with an error's status. What the server says of a key is left out: some repeat a part of it."""
    advice = _ADVICE.get(status, "try again later" if status >= 500 else "the request was not accepted")
    told = "" if status in (401, 403) or not said else f" Its message: {_one_line(said, key)}"
    return ProviderError(f"{name} answered with status {status}: {advice}.{told}")


def unreachable(name: str, address: str) -> ProviderError:
    """No connection."""
    return ProviderError(f"Cannot reach {name} at {address}: check the network and the URL")


def late(name: str) -> ProviderError:
    """No answer in time."""
    return ProviderError(f"{name} did not answer in time: try again")


def broke_off(name: str) -> ProviderError:
    """A stream that ended before the answer did."""
    return ProviderError(f"The answer from {name} was cut off: try again")


def unreadable(name: str) -> ProviderError:
    """Something that is no answer in the provider's format."""
    return ProviderError(f"Cannot parse the answer from {name}: check that the URL is a compatible API")


def ended(name: str, began: bool, kind: str) -> ProviderError:
    """A stream without an end. A web page or plain JSON is none to begin with: the address is another server's."""
    return broke_off(name) if began or kind.startswith("text/event-stream") else unreadable(name)


def gave_up(name: str, said: str | None, key: Secret | None) -> ProviderError:
    """An error in the midst of an answer."""
    told = f" Its message: {_one_line(said, key)}" if said else ""
    return ProviderError(f"{name} failed while sending its answer: try again.{told}")


def _one_line(said: str, key: Secret | None) -> str:
    line = " ".join((key.removed_from(said) if key else said).split())
    return line if len(line) <= MAX_SAID else line[: MAX_SAID - 1] + "…"
