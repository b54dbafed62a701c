"""Secrets are found by form and check digit, and ordinary numbers and words are left alone."""

import random
import string

import pytest

from recollect.language.masking.kinds import KINDS
from recollect.language.masking.masking import masked

_chance = random.Random(11)


def some(characters: str, count: int) -> str:
    return "".join(_chance.choices(characters, k=count))


BASE = string.ascii_letters + string.digits
HEX = "0123456789abcdef"

# One of each kind, made up; those with check digits are the makers' own examples or computed by hand.
SECRETS = {
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nabc/def+gh=\n-----END RSA PRIVATE KEY-----",
    "Recollect key": f"rk_{some(HEX, 8)}_{some(BASE, 43)}",
    "Anthropic key": f"sk-ant-api03-{some(BASE, 60)}",
    "OpenAI key": f"sk-proj-a1{some(BASE, 46)}",
    "AWS access key": f"AKIA{some(string.ascii_uppercase, 16)}",
    "AWS secret key": f"aws_secret_access_key = {some(BASE + '/+', 40)}",
    "GitHub token": f"ghp_{some(BASE, 36)}",
    "GitLab token": f"glpat-{some(BASE, 20)}",
    "Slack token": f"xoxb-{some(string.digits, 12)}-{some(BASE, 24)}",
    "Google API key": f"AIza{some(BASE, 35)}",
    "Stripe key": f"sk_live_{some(BASE, 24)}",
    "npm token": f"npm_{some(BASE, 36)}",
    "PyPI token": f"pypi-AgE{some(BASE, 90)}",
    "Hugging Face token": f"hf_{some(BASE, 34)}",
    "SendGrid key": f"SG.{some(BASE, 22)}.{some(BASE, 43)}",
    "Twilio key": f"SK{some(HEX, 32)}",
    "Telegram token": f"{some('123456789', 10)}:AA{some(BASE, 33)}",
    "JSON web token": f"eyJ{some(BASE, 30)}.eyJ{some(BASE, 60)}.{some(BASE, 40)}",
    "password in a URL": "postgresql://anna:Sw0rdf1sh@db.example.org/notes",
    "bearer token": f"Authorization: Bearer {some(BASE, 30)}9",
    "password": "my password is hunter2!Rocks",
    "card number": "4111 1111 1111 1111",
    "bank account": "DE89 3704 0044 0532 0130 00",
    "US social security number": "536-22-8726",
    "UK national insurance number": "AB 12 34 56 C",
    "Spanish identity number": "12345678Z",
    "Italian tax code": "RSSMRA85T10A562S",
    "French social security number": "2 55 08 14 168 025 38",
    "Brazilian CPF": "529.982.247-25",
    "Aadhaar number": "2341 2341 2346",
    "Polish PESEL": "PESEL: 44051401359",
    "German tax number": "Steuer-ID 86 095 742 719",
}


@pytest.mark.parametrize("prefix", ["oac", "oat", "ort", "ocs"])
def test_codes_tokens_and_secrets_of_connections_are_masked_like_keys(prefix: str) -> None:
    assert masked(f"I used {prefix}_{some(BASE, 43)} here").found == {"Recollect key": 1}


def test_there_is_an_example_of_every_kind() -> None:
    assert {kind.name for kind in KINDS} == set(SECRETS)


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_written_over_in_the_middle_of_a_sentence(kind: str) -> None:
    for text in (SECRETS[kind], f"Note this ({SECRETS[kind]}), please.", f"a\n{SECRETS[kind]}\nb"):
        found = masked(text)
        assert found.found == {kind: 1}, found
        assert f"[masked: {kind}]" in found.text


def test_what_is_left_has_nothing_of_the_secret() -> None:
    whole = "; ".join(SECRETS.values())
    found = masked(whole)
    assert sum(found.found.values()) == len(SECRETS)
    for secret in SECRETS.values():
        for word in secret.split():
            if any(character.isdigit() for character in word) and len(word) > 3:
                assert word.strip("():,") not in found.text


ORDINARY = [
    "Call me at 555 123 4567 or +49 30 1234567 tomorrow at 12:30.",
    "The order 4111-1111 was 1,234,567.89 euros on 2026-11-18 at 10:51:52.",
    "He was born 1985-10-10, in room 123-45-678.",
    "commit 53ce711 and 0ce4ec4d1f3572a36cb2ba28bd0ae26b7182aa27336cd838",
    "memory:01a1ee48-d3fc-7027-80e9-d72128903911",
    "The secret is to add salt. My password is easy to guess, the secret: patience.",
    "The bearer of this letter is my brother.",
    "See https://example.org:8080/a?b=1 and mail anna@example.org",
    "sk-learn and skipping-through-the-long-grass are words.",
    "4111 1111 1111 1112 is no card, GB82 WEST 1234 5698 7654 33 no account.",
    "1234567890123456 pixels, 0000 0000 0000 0000 zeros",
    "Flight AB 12 to Rome, gate C 34, seat 56D",
    "The pass: closed until May. First pass: 10 of 12. The token is 12345678.",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert masked(text).text == text


def test_a_password_may_have_signs_of_an_address_and_a_long_one_needs_no_digit() -> None:
    text = "postgresql://anna:Sw0rd@fish@db.example.org/notes API_KEY=correct-horse-battery-staple-again"
    assert masked(text).text == (
        "postgresql://anna:[masked: password in a URL]@db.example.org/notes API_KEY=[masked: password]"
    )


@pytest.mark.parametrize(
    ("before", "secret"),
    [
        ("password=", "hunter2"),
        ("password: ", "abc123"),
        ("pwd: ", "abc12345"),
        ("pass: ", "hunter22"),
        ("token: ", "9a8b7c6d5e4f3a2b"),
        ("api key: ", "9a8b7c6d5e4f3a2b"),
    ],
)
def test_a_password_is_found_behind_each_word_for_it(before: str, secret: str) -> None:
    assert masked(before + secret).text == f"{before}[masked: password]"


@pytest.mark.parametrize(
    ("word", "number", "kind"),
    [
        ("SSN: ", "536904399", "US social security number"),
        ("Aadhaar ", "234123412346", "Aadhaar number"),
        ("CPF ", "52998224725", "Brazilian CPF"),
    ],
)
def test_a_number_without_signs_is_found_behind_its_word(word: str, number: str, kind: str) -> None:
    assert masked(f"{word}{number}").text == f"{word}[masked: {kind}]"
    assert not masked(f"part {number}").found


def test_masked_text_is_masked_no_further() -> None:
    once = masked("; ".join(SECRETS.values())).text
    assert masked(once).text == once


OTHERWISE = {
    "card number": [
        "4111\u20111111\u20111111\u20111111",
        "4111 \u2013 1111 \u2013 1111 \u2013 1111",
        "\uff14\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11",
        "4111  1111  1111  1111",
        "4111.1111.1111.1111",
        "4111\u00a01111\u00a01111\u00a01111",
        "3782.822463.10005",
        "4111_1111_1111_1111",
        "\u0664\u0661\u0661\u0661 \u0661\u0661\u0661\u0661 \u0661\u0661\u0661\u0661 \u0661\u0661\u0661\u0661",
    ],
    "bank account": [
        "de89 3704 0044 0532 0130 00",
        "gb82 west 1234 5698 7654 32",
        "gb82west12345698765432",
        "es91 2100 0418 4502 0005 1332 is mine",
        "DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000",
    ],
    "French social security number": ["2\u202f55\u202f08\u202f14\u202f168\u202f025\u202f38"],
}


@pytest.mark.parametrize(
    ("kind", "number"), [(kind, number) for kind, numbers in OTHERWISE.items() for number in numbers]
)
def test_a_number_is_found_however_it_is_written(kind: str, number: str) -> None:
    text = masked(f"\u00dcber: {number} \u2013 danke\u00a0sehr").text
    left = " is mine" if number.endswith("is mine") else ""
    assert text == f"\u00dcber: [masked: {kind}]{left} \u2013 danke\u00a0sehr"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("4111 1111 1111 1111 123", "{} 123"),
        ("4111111111111111 123", "{} 123"),
        ("378282246310005 1234", "{} 1234"),
        ("2024 4111 1111 1111 1111", "2024 {}"),
        ("5500 0000 0000 0004 12 27", "{} 12 27"),
        ("pay 20 4111-1111-1111-1111-123", "pay 20 {}-123"),
        ("2026 11 19 3782 822463 10005 12/27 123", "2026 11 19 {} 12/27 123"),
    ],
)
def test_a_card_is_found_beside_other_numbers(text: str, left: str) -> None:
    assert masked(text).text == left.format("[masked: card number]")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("DE89 3704 0044 0532 0130 00 BIC COBA DEFF", "{} BIC COBA DEFF"),
        ("DE89370400440532013000 COBADEFF", "{} COBADEFF"),
        ("AB12 CD34 DE89 3704 0044 0532 0130 00", "AB12 CD34 {}"),
        ("at61 1904 3002 3457 3201 2026", "{} 2026"),
    ],
)
def test_an_account_is_found_beside_other_words(text: str, left: str) -> None:
    assert masked(text).text == left.format("[masked: bank account]")


def test_a_number_is_found_behind_one_that_fails() -> None:
    assert masked("9999 2341 2341 2346").text == "9999 [masked: Aadhaar number]"


def test_an_account_is_as_long_as_those_of_its_country() -> None:
    for text in ("DE57 3704 0044 0532 0130", "ab12cd34ef56ab78cd90ef12ab34cd56", "Version 4.1.1.1111.1111.1111.1111"):
        assert masked(text).text == text
