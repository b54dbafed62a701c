"""Settings that are wrong are told by the variable that set them."""

import pytest

from recollect import settings
from recollect.errors import Misconfigured


def test_a_wrong_value_is_blamed_on_the_variable_that_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STM_MAX_TOKENS", "many")
    monkeypatch.setenv("RECOLLECT_PORT", "http")
    with pytest.raises(Misconfigured) as refusal:
        settings.load()
    assert str(refusal.value) == "RECOLLECT_PORT must be a whole number; STM_MAX_TOKENS must be a whole number"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("PORT", "70000", "RECOLLECT_PORT must be at most 65535"),
        ("DATABASE_CONNECTIONS", "1", "RECOLLECT_DATABASE_CONNECTIONS must be at least 2"),
        ("DATABASE_TIMEOUT_SECONDS", "0", "RECOLLECT_DATABASE_TIMEOUT_SECONDS must be greater than 0"),
        ("DATABASE_TIMEOUT_SECONDS", "soon", "RECOLLECT_DATABASE_TIMEOUT_SECONDS must be a number"),
        ("INDEXER", "perhaps", "RECOLLECT_INDEXER must be true or false"),
        *(
            (
                "EMBEDDING_MODEL",
                f"openai:small{ending}",
                f"RECOLLECT_EMBEDDING_MODEL: write {settings.EMBEDDING_MODEL_FORMS}",
            )
            for ending in ("@", "@0", "@-1", "@007", "@1@2")
        ),
        *(
            (
                "PUBLIC_URL",
                address,
                "RECOLLECT_PUBLIC_URL: write an address without a path, such as https://memory.example.org; "
                "http only on loopback",
            )
            for address in (
                "memory.example.org",
                "http://memory.example.org",
                "https://a.example.org/memory",
                "https://",
            )
        ),
        (
            "SIGN_IN_HEADER",
            "X-Signed-In",
            "RECOLLECT_SIGN_IN_HEADER: set RECOLLECT_TRUSTED_PROXIES too: "
            "the header is trusted only from those addresses",
        ),
        ("LOG_FORMAT", "xml", "RECOLLECT_LOG_FORMAT must be 'text' or 'json'"),
    ],
)
def test_what_a_value_must_be_is_told_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(f"RECOLLECT_{name}", value)
    with pytest.raises(Misconfigured) as refusal:
        settings.load()
    assert str(refusal.value) == sentence


def test_a_misspelt_variable_is_told_with_the_nearest_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_DATABSE_URL", "postgresql:///x")
    with pytest.raises(Misconfigured, match=r"RECOLLECT_DATABSE_URL\. Did you mean RECOLLECT_DATABASE_URL\?"):
        settings.load()


@pytest.mark.parametrize("name", ["two words", "-dash", "x" * 129, "naïve"])
def test_a_namespace_must_be_usable(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("RECOLLECT_NAMESPACE", name)
    with pytest.raises(Misconfigured, match="RECOLLECT_NAMESPACE: "):
        settings.load()
