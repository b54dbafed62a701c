"""Failures of a provider, with messages that contain neither keys nor request contents."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from recollect.errors import LimitReached, Misconfigured, RecollectError, Unavailable

_MOST_SAID = 300
_MAY_PASS = frozenset((408, 409, 425, 429))


class Transient(Unavailable):
    """A request failed in a way that may pass: asked too fast, overloaded, a fault of theirs, a lost connection."""

    def __init__(self, message: str, *, retry_after: float | None = None, perhaps_billed: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.perhaps_billed = perhaps_billed
        """The answer was lost on its way, so the provider may have done the work."""


class Unreachable(Transient):
    """No server listens there, which is known at once."""


class Silent(Transient):
    """Nothing came in the time that one attempt has."""


class Throttled(Transient):
    """The provider asks us to wait, which is all that is needed."""


class Refused(Misconfigured):
    """The provider understood the request and does not serve it in this form."""


class NoUsableKey(Misconfigured):
    """There is no key, or one that the provider does not accept."""


FAILURES = (LimitReached, Misconfigured, Unavailable)
"""What calling a model may fail with; callers that can do without it go on, and say so."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Who is asked, and the settings by which a user may change that."""

    name: str
    key_setting: str
    url_setting: str
    package: str

    def without_key(self) -> Misconfigured:
        return NoUsableKey(f"API key not configured: set {self.key_setting} to use {self.name}")

    def without_package(self) -> Misconfigured:
        return Misconfigured(
            f"{self.name} needs the package {self.package}: install it with `pip install 'recollect[llm]'`"
        )

    def unreachable(self, category: type[Transient] = Transient, *, perhaps_billed: bool = False) -> Transient:
        return category(
            f"Cannot reach {self.name}. Try again later, and check {self.url_setting} if it is set.",
            perhaps_billed=perhaps_billed,
        )

    def silent(self) -> Transient:
        return Silent(f"{self.name} did not answer in time. Try again later.", perhaps_billed=True)

    def unreadable(self) -> Transient:
        return Transient(
            f"{self.name} sent an invalid answer. Try again later, and check {self.url_setting} if it is set.",
            perhaps_billed=True,
        )

    def status(self, code: int, headers: Mapping[str, str], said: str, key: str) -> RecollectError:
        """The error for a status that is not success; `said` is the provider's own sentence."""
        if code in (401, 403):
            return NoUsableKey(f"{self.name} rejected the API key ({code}): check {self.key_setting}")
        said = said.replace(key, "***")[:_MOST_SAID]
        if code == 429 and "insufficient_quota" in said:
            return LimitReached(f"The account at {self.name} has no quota left. Add credit there, or use another key.")
        if code in _MAY_PASS or code >= 500:
            pause = _pause(headers)
            category = Transient if code != 429 and pause is None else Throttled
            return category(f"{self.name} is unavailable ({code}): {said}", retry_after=pause)
        if code == 404:
            return Misconfigured(f"{self.name} does not know the model or URL (404): {said}")
        if code == 413:
            return LimitReached(f"The text is too long for {self.name} (413): {said}")
        return Refused(f"{self.name} refused the request ({code}): {said}")


OPENAI = Provider("OpenAI", "RECOLLECT_OPENAI_API_KEY", "RECOLLECT_OPENAI_BASE_URL", "openai")
ANTHROPIC = Provider("Anthropic", "RECOLLECT_ANTHROPIC_API_KEY", "RECOLLECT_ANTHROPIC_BASE_URL", "anthropic")


def _pause(headers: Mapping[str, str]) -> float | None:
    """How long to wait by Retry-After: seconds or a date."""
    value = headers.get("retry-after")
    if value is None:
        return None
    with suppress(ValueError):
        return max(float(value), 0.0)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)
