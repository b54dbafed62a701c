"""Settings that are wrong are told by the variable that set them."""

import pytest

from recollect import settings
from recollect.errors import Misconfigured


def test_a_wrong_value_is_blamed_on_the_variable_that_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STM_MAX_TOKENS", "many")
    monkeypatch.setenv("RECOLLECT_PORT", "http")
    with pytest.raises(Misconfigured) as refusal:
        settings.load()
    assert ". RECOLLECT_PORT: " in str(refusal.value)
    assert "; STM_MAX_TOKENS: " in str(refusal.value)


def test_a_misspelt_variable_is_told_with_the_nearest_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_DATABSE_URL", "postgresql:///x")
    with pytest.raises(Misconfigured, match=r"RECOLLECT_DATABSE_URL\. Did you mean RECOLLECT_DATABASE_URL\?"):
        settings.load()


@pytest.mark.parametrize("name", ["two words", "-dash", "x" * 129, "naïve"])
def test_a_namespace_must_be_usable(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("RECOLLECT_NAMESPACE", name)
    with pytest.raises(Misconfigured, match="RECOLLECT_NAMESPACE: "):
        settings.load()
