"""What counts as a secret or a personal number: its name, its form, and what proves it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from recollect.language.masking import check_digits


@dataclass(frozen=True, slots=True)
class Kind:
    """A form, of which group `secret` is written over if there is one; `proof` tells real ones from look-alikes.

    A text without any of `signs` has none of this kind: that is found out much faster. No signs: digits in a row.
    """

    name: str
    form: str
    proof: Callable[[str], bool] | None = None
    signs: tuple[str, ...] = ()


def _kind(name: str, form: str, proof: Callable[[str], bool] | None = None, *, signs: str = "") -> Kind:
    return Kind(name, form, proof, tuple(signs.split()))


# Neither in the middle of a longer word or number, nor of another one's id.
_BEFORE: Final = r"(?<![A-Za-z0-9_])"
_AFTER: Final = r"(?![A-Za-z0-9_])"
_NUMBER_BEFORE: Final = r"(?<![0-9A-Za-z])(?<![0-9][.,/-])"
_NUMBER_AFTER: Final = r"(?![0-9A-Za-z])(?![.,/-][0-9])"


# Between the groups of a card's digits.
_BETWEEN: Final = r"(?:[ ]{1,4}|[ ]?[._-][ ]?)"


def _account(country_and_length: tuple[str, int]) -> str:
    """The form of a country's bank accounts."""
    country, length = country_and_length
    groups, rest = divmod(length - 4, 4)
    upper = rf"(?:[ ]?[A-Z0-9]{{4}}){{{groups}}}" + (rf"[ ]?[A-Z0-9]{{{rest}}}" if rest else "")
    # In small letters words look like groups, so only the bank's own group may be one.
    grouped = rf"(?:[ ][a-z0-9]{{4}})(?:[ ][0-9]{{4}}){{{groups - 1}}}" + (rf"[ ][0-9]{{{rest}}}" if rest else "")
    lower = rf"(?:[a-z0-9]{{{length - 4}}}|{grouped})"
    return rf"{country}[0-9]{{2}}{upper}|{country.lower()}[0-9]{{2}}{lower}"


def _looks_random(text: str) -> bool:
    """Whether a value is no word that somebody might write there: letters mixed with digits."""
    value = text.rstrip(".!?):")
    return any(character.isalpha() for character in value) and any(character.isdigit() for character in value)


def _is_assigned(text: str) -> bool:
    """The same behind a word such as `api_key=`, where no word is so long."""
    # Code names a variable there, with dots and underscores.
    return _looks_random(text) or (len(text) >= LONGEST_WORD and text.replace("-", "").isalpha())


# No form matches more than this, with what it looks at before and behind.
MAX_CHARACTERS: Final = 25_000

# In letters, with hyphens; longer ones that follow `password:` are passwords.
LONGEST_WORD: Final = 24

KINDS: Final = (
    _kind(
        "private key",
        # The body may have headers such as `DEK-Info: AES-256-CBC`.
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,20000}"
        r"(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?",
        signs="PRIVATE",
    ),
    _kind(
        "Recollect key",
        _BEFORE + r"(?:[ru]k_[0-9a-f]{8}|oa[ct]|ort|ocs)_[A-Za-z0-9_-]{43}",
        signs="rk_ uk_ oac_ oat_ ort_ ocs_",
    ),
    _kind("Anthropic key", _BEFORE + r"sk-ant-[A-Za-z0-9_-]{20,200}", signs="sk-ant-"),
    _kind("OpenAI key", _BEFORE + r"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,200}", _looks_random, signs="sk-"),
    _kind(
        "AWS access key",
        _BEFORE + r"(?:AKIA|ASIA|AGPA|AROA|AIDA)[A-Z2-7]{16}" + _AFTER,
        signs="AKIA ASIA AGPA AROA AIDA",
    ),
    _kind(
        "AWS secret key",
        r"(?i:aws_?secret(?:_?access)?_?key)[\"']{0,1}[ \t]{0,4}[:=][ \t]{0,4}[\"']{0,1}(?P<secret>[A-Za-z0-9/+]{40})"
        r"(?![A-Za-z0-9/+])",
        signs="aws AWS",
    ),
    _kind(
        "GitHub token",
        _BEFORE + r"(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})",
        signs="ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
    ),
    _kind(
        "GitLab token",
        _BEFORE + r"gl(?:pat|dt|rt|cbt|ptt|soat)-[A-Za-z0-9_-]{20,200}",
        signs="glpat- gldt- glrt- glcbt- glptt- glsoat-",
    ),
    _kind(
        "Slack token", _BEFORE + r"(?:xox[abeoprs]|xapp)-(?:[0-9]{1,20}-){0,4}[A-Za-z0-9-]{10,200}", signs="xox xapp"
    ),
    _kind("Google API key", _BEFORE + r"AIza[A-Za-z0-9_-]{35}" + _AFTER, signs="AIza"),
    _kind("Stripe key", _BEFORE + r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,200}", signs="_live_ _test_"),
    _kind("npm token", _BEFORE + r"npm_[A-Za-z0-9]{36}" + _AFTER, signs="npm_"),
    _kind("PyPI token", _BEFORE + r"pypi-AgE[A-Za-z0-9_-]{50,500}", signs="pypi-"),
    _kind("Hugging Face token", _BEFORE + r"hf_[A-Za-z0-9]{30,80}" + _AFTER, signs="hf_"),
    _kind("SendGrid key", _BEFORE + r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}", signs="SG."),
    _kind("Twilio key", _BEFORE + r"SK[0-9a-f]{32}" + _AFTER, signs="SK"),
    _kind("Telegram token", _NUMBER_BEFORE + r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}" + _AFTER, signs=":AA"),
    _kind(
        "JSON web token",
        _BEFORE + r"eyJ[A-Za-z0-9_-]{10,400}\.eyJ[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{10,2000}",
        signs="eyJ",
    ),
    _kind("password in a URL", r"(?<=://)[^\s:/@\[\]]{0,100}:(?P<secret>[^\s/]{1,200})@(?=[A-Za-z0-9\[])", signs="://"),
    _kind(
        "bearer token",
        r"(?i:\bbearer)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/-]{20,2000}={0,2})",
        _looks_random,
        signs="earer BEARER",
    ),
    _kind(
        "password",
        r"(?i:\b(?:password|passwd|passphrase|passcode|api[ _-]?key|api[ _-]?token|auth[_-]?token|access[_-]?token"
        r"|secret[_-]?key"
        r"|client[_-]?secret|secret))[\"']{0,1}[ \t]{0,4}(?:[:=]|\bis\b)[ \t]{0,4}[\"']{0,1}"
        r"(?P<secret>[^\s\"'<>,;()\[\]{}]{6,200})(?![(\[{])",
        _is_assigned,
        signs="assw ASSW assphrase ASSPHRASE ecret ECRET key KEY Key oken OKEN",
    ),
    _kind(
        # Words that mean other things, too: only with a sign between them and the password.
        "password",
        r"(?i:\b(?:pwd|passw|pass|pw|token))[\"']{0,1}[ \t]{0,4}[:=][ \t]{0,4}[\"']{0,1}"
        r"(?P<secret>[^\s\"'<>,;()\[\]{}]{6,200})(?![(\[{])",
        _looks_random,
        signs="pwd PWD Pwd pass Pass PASS pw Pw PW oken OKEN",
    ),
    _kind(
        "card number",
        # As printed on a card. Other numbers may stand beside it, such as its end date and its security code.
        _NUMBER_BEFORE
        + rf"(?:[2-6][0-9]{{12,18}}|[2-6][0-9]{{3}}(?:{_BETWEEN}[0-9]{{4}}){{3}}"
        + rf"|3[47][0-9]{{2}}{_BETWEEN}[0-9]{{6}}{_BETWEEN}[0-9]{{5}})(?![0-9A-Za-z])(?![.,/][0-9])",
        check_digits.luhn,
    ),
    _kind("card number", _NUMBER_BEFORE + r"[2-6][0-9](?:[ -]?[0-9]){11,17}" + _NUMBER_AFTER, check_digits.luhn),
    _kind(
        "bank account",
        # As long as those of its country: other words and numbers may follow.
        rf"(?<![A-Za-z0-9])(?:{'|'.join(map(_account, check_digits.IBAN_LENGTHS.items()))})(?![A-Za-z0-9])",
        check_digits.iban,
    ),
    _kind(
        "US social security number",
        _NUMBER_BEFORE + r"[0-9]{3}-[0-9]{2}-[0-9]{4}" + _NUMBER_AFTER,
        check_digits.social_security,
    ),
    _kind(
        "UK national insurance number",
        _BEFORE + r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z][ ]?[0-9]{2}[ ]?[0-9]{2}[ ]?[0-9]{2}"
        r"[ ]?[A-D]" + _AFTER,
    ),
    _kind(
        "Spanish identity number", _BEFORE + r"(?:[0-9]{8}|[XYZ][0-9]{7})-?[A-HJ-NP-TV-Z]" + _AFTER, check_digits.dni
    ),
    _kind(
        "Italian tax code",
        _BEFORE + r"[A-Z]{6}[0-9LMNP-V]{2}[ABCDEHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]" + _AFTER,
        check_digits.codice_fiscale,
    ),
    _kind(
        "French social security number",
        _NUMBER_BEFORE
        + r"[12][ ]?[0-9]{2}[ ]?(?:0[1-9]|1[0-2])[ ]?(?:[0-9]{2}|2[AB])[ ]?[0-9]{3}[ ]?[0-9]{3}[ ]?[0-9]{2}"
        + _NUMBER_AFTER,
        check_digits.nir,
    ),
    _kind("Brazilian CPF", _NUMBER_BEFORE + r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}" + _NUMBER_AFTER, check_digits.cpf),
    _kind(
        "Aadhaar number",
        # No part of a UUID.
        r"(?<![0-9A-Za-z]-)"
        + _NUMBER_BEFORE
        + r"[2-9][0-9]{3}[ -][0-9]{4}[ -][0-9]{4}"
        + _NUMBER_AFTER
        + r"(?!-[0-9A-Za-z])",
        check_digits.verhoeff,
    ),
    # Without signs between the groups they are told from other numbers by the word before them alone.
    _kind(
        "US social security number",
        r"(?i:\b(?:ssn|social security (?:number|no\.?)))[^0-9\n]{0,12}(?P<secret>[0-9]{9})(?![0-9])",
        check_digits.social_security,
    ),
    _kind("Brazilian CPF", r"(?i:\bcpf\b)[^0-9\n]{0,12}(?P<secret>[0-9]{11})(?![0-9])", check_digits.cpf),
    _kind(
        "Aadhaar number", r"(?i:\baadhaa?r\b)[^0-9\n]{0,12}(?P<secret>[2-9][0-9]{11})(?![0-9])", check_digits.verhoeff
    ),
    _kind("Polish PESEL", r"(?i:\bpesel\b)[^0-9\n]{0,12}(?P<secret>[0-9]{11})(?![0-9])", check_digits.pesel),
    _kind(
        "German tax number",
        r"(?i:\b(?:steuer-?id(?:entifikationsnummer|nr)?|idnr|tax id)\b)[^0-9\n]{0,12}"
        r"(?P<secret>[0-9]{2}[ ]?[0-9]{3}[ ]?[0-9]{3}[ ]?[0-9]{3})(?![0-9])",
        check_digits.tax_number,
    ),
)

FORMS: Final = {kind: re.compile(kind.form) for kind in KINDS}
