"""What screening and masking find and miss: planted secrets by kind, and false alarms on ordinary talk.

    python -m benchmarks.screening FOLDER

The folder has files `*.corpus.jsonl.gz` of texts that people and assistants wrote.
"""

import gzip
import json
import random
import string
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from recollect.language.defence.orders import suspicions
from recollect.language.masking import check_digits
from recollect.language.masking.masking import masked

PLANTED = 200

SENTENCES = (
    "Please note {} for later.",
    "It is {}, I think",
    "My colleague sent this: {}\nThanks!",
    '{{"value": "{}"}}',
    "({}) is what she told me.",
)

chance = random.Random(20)
BASE, DIGITS, UPPER, HEX = (
    string.ascii_letters + string.digits,
    string.digits,
    string.ascii_uppercase,
    "0123456789abcdef",
)


def some(characters: str, count: int) -> str:
    """A random text."""
    return "".join(chance.choices(characters, k=count))


def proven(make: Callable[[], str], proof: Callable[[str], bool]) -> str:
    """A number whose check digits are right."""
    while not proof(number := make()):
        pass
    return number


def grouped(digits: str, *sizes: int) -> str:
    """Digits with spaces between."""
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    return " ".join(digits[end - size : end] for end, size in zip(ends, sizes, strict=True))


def iban() -> str:
    """A German one."""
    number = some(DIGITS, 18)
    return f"DE{98 - int(number + '131400') % 97:02}{number}"


MADE: dict[str, Callable[[], str]] = {
    "private key": lambda: f"-----BEGIN PRIVATE KEY-----\n{some(BASE, 64)}\n-----END PRIVATE KEY-----",
    "Recollect key": lambda: f"rk_{some(HEX, 8)}_{some(BASE, 43)}",
    "Anthropic key": lambda: f"sk-ant-api03-{some(BASE + '-_', 93)}",
    "OpenAI key": lambda: f"sk-proj-{some(BASE, 48)}",
    "AWS access key": lambda: f"AKIA{some(UPPER + '234567', 16)}",
    "AWS secret key": lambda: f"AWS_SECRET_ACCESS_KEY={some(BASE + '/+', 40)}",
    "GitHub token": lambda: f"{chance.choice(['ghp', 'gho', 'ghs'])}_{some(BASE, 36)}",
    "GitLab token": lambda: f"glpat-{some(BASE + '-_', 20)}",
    "Slack token": lambda: f"xoxb-{some(DIGITS, 12)}-{some(DIGITS, 12)}-{some(BASE, 24)}",
    "Google API key": lambda: f"AIza{some(BASE + '-_', 35)}",
    "Stripe key": lambda: f"sk_live_{some(BASE, 24)}",
    "npm token": lambda: f"npm_{some(BASE, 36)}",
    "PyPI token": lambda: f"pypi-AgEIcHlwaS5vcmc{some(BASE + '-_', 100)}",
    "Hugging Face token": lambda: f"hf_{some(string.ascii_letters, 34)}",
    "SendGrid key": lambda: f"SG.{some(BASE + '-_', 22)}.{some(BASE + '-_', 43)}",
    "Twilio key": lambda: f"SK{some(HEX, 32)}",
    "Telegram token": lambda: f"{chance.randint(10**8, 10**10 - 1)}:AA{some(BASE + '-_', 33)}",
    "JSON web token": lambda: f"eyJ{some(BASE, 33)}.eyJ{some(BASE, 80)}.{some(BASE + '-_', 43)}",
    "password in a URL": lambda: f"https://anna:{some(BASE + '!$%', 12)}@example.org/",
    "bearer token": lambda: f"Authorization: Bearer {some(BASE + '._-', 40)}",
    "password": lambda: f"{chance.choice(['password', 'passwd', 'api_key', 'secret'])}: {some(BASE + '!$%#', 12)}",
    "card number": lambda: grouped(
        proven(lambda: "4" + some(DIGITS, 15), check_digits.luhn), *chance.choice([(16,), (4, 4, 4, 4)])
    ),
    "bank account": lambda: grouped(iban(), *chance.choice([(22,), (4, 4, 4, 4, 4, 2)])),
    "US social security number": lambda: proven(
        lambda: f"{some(DIGITS, 3)}-{some(DIGITS, 2)}-{some(DIGITS, 4)}", check_digits.social_security
    ),
    "UK national insurance number": lambda: f"AB{some(DIGITS, 6)}{chance.choice('ABCD')}",
    "Spanish identity number": lambda: proven(lambda: some(DIGITS, 8) + chance.choice(UPPER), check_digits.dni),
    "Italian tax code": lambda: proven(
        lambda: f"{some(UPPER, 6)}85T10A562{chance.choice(UPPER)}", check_digits.codice_fiscale
    ),
    "French social security number": lambda: proven(
        lambda: f"2{some(DIGITS, 2)}08{some(DIGITS, 2)}{some(DIGITS, 6)}{chance.randint(1, 97):02}", check_digits.nir
    ),
    "Brazilian CPF": lambda: proven(
        lambda: f"{some(DIGITS, 3)}.{some(DIGITS, 3)}.{some(DIGITS, 3)}-{some(DIGITS, 2)}", check_digits.cpf
    ),
    "Aadhaar number": lambda: grouped(proven(lambda: "2" + some(DIGITS, 11), check_digits.verhoeff), 4, 4, 4),
    "Polish PESEL": lambda: f"PESEL {proven(lambda: f'{some(DIGITS, 2)}0514{some(DIGITS, 5)}', check_digits.pesel)}",
    "German tax number": lambda: f"Steuer-ID {proven(lambda: some(DIGITS, 11), check_digits.tax_number)}",
}


def planted() -> None:
    """How many of each kind are written over, whatever they are taken for."""
    total: Counter[str] = Counter()
    for kind, make in MADE.items():
        for number in range(PLANTED):
            secret = make()
            own = secret.split("Bearer ")[-1].split(": ")[-1].split("=")[-1].split("//anna:")[-1].partition("@")[0]
            found = masked(SENTENCES[number % len(SENTENCES)].format(secret))
            total["found" if own not in found.text else "missed"] += 1
            if own in found.text:
                total[f"missed {kind}"] += 1
        print(f"  {kind}: {PLANTED - total[f'missed {kind}']} of {PLANTED}")
    print(f"  all {len(MADE)} kinds: {total['found']} of {total['found'] + total['missed']}")


def false_alarms(folder: Path) -> None:
    """On talk that nobody meant ill."""
    for file in sorted(folder.glob("*.corpus.jsonl.gz")):
        with gzip.open(file, "rt") as lines:
            texts = [json.loads(line)["text"] for line in lines]
        held = [sum(bool(suspicions(text, is_foreign=foreign)) for text in texts) for foreign in (False, True)]
        alarms = sum(bool(masked(text).found) for text in texts)
        shares = ", ".join(
            f"{name} {count} ({count / len(texts):.3%})"
            for name, count in (("said by a user", held[0]), ("from elsewhere", held[1]), ("masked", alarms))
        )
        print(f"  {file.name.partition('.')[0]}: of {len(texts):,} texts, {shares}")


if __name__ == "__main__":
    print("Planted secrets that are masked:")
    planted()
    if len(sys.argv) > 1:
        print("False alarms:")
        false_alarms(Path(sys.argv[1]))
