"""Check digits: which numbers can be real ones. A number that merely looks like one fails most of these."""

_VERHOEFF_TABLE = (
    "0123456789",
    "1234067895",
    "2340178956",
    "3401289567",
    "4012395678",
    "5987604321",
    "6598710432",
    "7659821043",
    "8765932104",
    "9876543210",
)
_VERHOEFF_ORDER = (
    "0123456789",
    "1576283094",
    "5803796142",
    "8916043527",
    "9453126870",
    "4286573901",
    "2793806415",
    "7046913258",
)
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_FIRST_TEN = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
IBAN_LENGTHS = {
    country: length
    for length, countries in {
        15: "NO",
        16: "BE",
        18: "DK FI FK FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU MN XK",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM SO TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST",
        26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HU LB NI PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU",
        31: "MT SC",
        32: "LC",
        33: "RU",
    }.items()
    for country in countries.split()
}
_ODD_PLACES = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (*_FIRST_TEN, *_FIRST_TEN, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)


def digits(text: str) -> str:
    """Only the digits."""
    return "".join(character for character in text if character in "0123456789")


def luhn(text: str) -> bool:
    """Card numbers, and others that end in Luhn's digit."""
    number = digits(text)
    doubled = sum(sum(divmod(int(digit) * 2, 10)) for digit in number[-2::-2])
    return (doubled + sum(map(int, number[-1::-2]))) % 10 == 0 and len(set(number)) > 1


def iban(text: str) -> bool:
    """Bank accounts: so long as the country's are; letters count from ten, the country comes last, 97 leaves one."""
    account = "".join(character for character in text.upper() if character.isalnum())
    if len(account) != IBAN_LENGTHS.get(account[:2]):
        return False
    moved = account[4:] + account[:4]
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


def verhoeff(text: str) -> bool:
    """Aadhaar numbers."""
    check = "0"
    for place, digit in enumerate(reversed(digits(text))):
        check = _VERHOEFF_TABLE[int(check)][int(_VERHOEFF_ORDER[place % 8][int(digit)])]
    return check == "0"


def social_security(text: str) -> bool:
    """Numbers of the United States: no part is all zeros, and some areas were never given out."""
    number = digits(text)
    area, group, serial = number[:3], number[3:5], number[5:]
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def dni(text: str) -> bool:
    """Spain: a letter that the number decides; foreigners' numbers begin with one that stands for a digit."""
    plain = text.upper().replace("-", "").replace(" ", "")
    number = plain[:-1].translate(str.maketrans("XYZ", "012"))
    return plain[-1] == _DNI_LETTERS[int(number) % 23]


def codice_fiscale(text: str) -> bool:
    """Italy: odd places count by a table, even ones by their order, and the sum is the last letter."""
    code = text.upper()
    odd = sum(_ODD_PLACES[character] for character in code[:15:2])
    even = sum(int(each) if each.isdigit() else ord(each) - ord("A") for each in code[1:15:2])
    return chr(ord("A") + (odd + even) % 26) == code[15]


def nir(text: str) -> bool:
    """France: 97 minus the number's rest; Corsica's letters stand for digits."""
    plain = "".join(text.upper().split()).replace("2A", "19").replace("2B", "18")
    return 97 - int(plain[:13]) % 97 == int(plain[13:])


def cpf(text: str) -> bool:
    """Brazil: two check digits, each a weighted sum of all before it."""
    number = [int(digit) for digit in digits(text)]
    for length in (9, 10):
        total = sum(digit * (length + 1 - place) for place, digit in enumerate(number[:length]))
        if number[length] != total * 10 % 11 % 10:
            return False
    return len(set(number)) > 1


def pesel(text: str) -> bool:
    """Poland: a weighted sum, and a month that there is in its century."""
    number = [int(digit) for digit in digits(text)]
    weights = (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)
    in_sum = sum(digit * weight for digit, weight in zip(number, weights, strict=True)) % 10 == 0
    month, day = (number[2] * 10 + number[3]) % 20, number[4] * 10 + number[5]
    return in_sum and 1 <= month <= 12 and 1 <= day <= 31


def tax_number(text: str) -> bool:
    """Germany: a running product modulo 11 and 10; of the first ten digits, only some come again."""
    number = digits(text)
    product = 10
    for digit in number[:10]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    return number[0] != "0" and (11 - product) % 10 == int(number[10]) and len(set(number[:10])) in (8, 9)
