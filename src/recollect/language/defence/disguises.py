"""Letters in disguise: characters that nobody sees, and foreign letters that pass for Latin ones."""

import re
from typing import Final
from unicodedata import category

from recollect.language.letters import normalized

# A joiner shapes letters of these scripts and emoji; anywhere else it only hides something.
_SHAPED: Final = "\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u17ff\u1800-\u18af\ufb50-\ufdff\ufe70-\ufefc"
_EMOJI: Final = "\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff"
_JOINER: Final = re.compile(f"(?<=[{_SHAPED}])[\u200c\u200d]|(?<=[{_EMOJI}])\u200d(?=[{_EMOJI}])")

# Flags of regions are an emoji with tag characters behind it; elsewhere these spell out what nobody sees.
_FLAG: Final = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{1,8}\U000e007f")
_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2064\u206a-\u206f\u2800\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_TURNED: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
_TAGS: Final = re.compile("[\U000e0020-\U000e007e]{4,}")

# Letters of other scripts that a reader takes for Latin ones.
_LOOK_ALIKES: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u043a\u043c\u0442\u0432\u043d"
    "\u03b1\u03bf\u03bd\u03b9\u03c1\u03c4\u03c5\u03ba\u03c7\u03b5\u03b7\u0131\u0261\u0251",
    "aeopcxyijshdqwkmtbhaoviptukxeniga",
)
_MIXED: Final = re.compile(r"[a-z][\u0370-\u03ff\u0400-\u052f]|[\u0370-\u03ff\u0400-\u052f][a-z]")

# A soft hyphen or a byte order mark comes with copied text; several in the middle of words do not.
MAX_STRAY = 2


def hidden_letters(text: str) -> str | None:
    """What a text hides, as the end of a sentence; None if a reader sees all of it."""
    if text.isascii():
        return None
    if _TAGS.search(rest := _FLAG.sub("", text)):
        return "it spells out a text in characters that nobody sees"
    if len(_UNSEEN.findall(_JOINER.sub("", rest))) > MAX_STRAY:
        return "it has characters that nobody sees between its letters"
    if any(mark in text for mark in "\u202d\u202e"):
        return "it turns the direction of the text around, so that it reads differently from what it says"
    return None


def undisguised(text: str) -> str:
    """The text as a reader takes it: lower case, without accents and unseen characters, in Latin letters."""
    if text.isascii():
        return text.lower()
    plain = _UNSEEN.sub("", _TURNED.sub("", normalized("NFKC", text))).casefold().replace("\u2019", "'")
    bare = "".join(letter for letter in normalized("NFD", plain) if category(letter) != "Mn")
    # Only where scripts are mixed within a word: Russian and Greek words stay what they are.
    return bare.translate(_LOOK_ALIKES) if _MIXED.search(bare) else bare
