"""Screening: keeps text with hidden characters or fake instructions out of curated memory."""

import re
import unicodedata

from recollect.agent.workspace.marks import normalized

# A joiner shapes letters of these scripts and emoji; anywhere else it only hides something.
_JOINED = "\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u17ff\u1800-\u18af\ufb50-\ufdff\ufe70-\ufefc"
_EMOJI = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_RIGHT_JOINER = re.compile(f"(?<=[{_JOINED}])[\u200c\u200d](?=[{_JOINED}])|(?<=[{_EMOJI}])\u200d(?=[{_EMOJI}])")

# Invisible without being format characters: fillers, blanks, joiners of graphemes, selectors of variants.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2028\u2029\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0000-\U000e0fff]"
)
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co"})
_NOT_PLAIN = re.compile(r"[^\x20-\x7e\n\t]")

_RULES = r"(?:instruction|rule|prompt|guideline|direction|command|polic(?:y|ie)|constraint|system message)s?"
_WHICH = r"(?:all|any|every|everything|previous|prior|above|earlier|preceding|existing|other|your|these|those|the|my)"
_ROLES = "system|developer|assistant|human|user"
_RULE = r"[^\w\n]{0,40}"
# A tag counts from its name on, with attributes of any length and whether or not it ends. Blanks come one at a time.
_TAG = r"<(?:\s?/\s?)?"
_POSING = (
    (
        rf"\b(?:ignore|disregard|forget|override|bypass|do not follow)\s{_WHICH}\b[^.\n]{{0,40}}\b{_RULES}\b",
        "it tells the reader to ignore instructions",
    ),
    # At the beginning of a sentence. "The house has new rules: ..." is a fact.
    (
        rf"(?m)(?:^|[.!?;]\s)\W?(?:your |the |my |our |these are |here are )?"
        rf"(?:new|updated|real|actual|hidden|secret) (?:system )?{_RULES}\s?:",
        "it announces new instructions",
    ),
    (r"\b(?:system|developer)\s(?:prompt|message|instructions?)\s?:", "it imitates a system prompt"),
    (r"(?m)^#{1,6} ?(?:system|developer|assistant|instructions?)\b", "it contains a system prompt heading"),
    (rf"(?m)^(?:{_ROLES}) ?:", "it imitates a conversation turn"),
    (
        rf"{_TAG}(?:{_ROLES}|tool(?:_result)?|instructions?|prompt|function_calls|invoke)(?=[\s/>]|\Z)",
        "it contains a role tag",
    ),
    (rf"<\s(?:{_ROLES}|instructions?|prompt)\s?/?>", "it contains a role tag"),
    (r"<\|[^|\n]{1,40}\|>|\[/?inst\]|<</?sys>>|</?s>", "it contains a chat-format control token"),
    (r"<\s?/?\s?(?:curated[_-]?memory|memory[_-]?gateway)", "it imitates a fence of the prompt"),
    (rf"{_TAG}(?:recalled|reference|untrusted|skill)(?=[\s/>_-]|\Z)", "it imitates a fence of the prompt"),
    (r"\bmemory gateway recall\b", "it imitates a fence of the prompt"),
    (r"(?m)^(?:```|~~~)[`~]{0,10} ?(?:system|instructions?|prompt)\b", "it imitates a fence of the prompt"),
    (
        rf"(?m)^{_RULE}(?:begin|end)(?: of)? [\w ]{{0,30}}(?:system|prompt|memory|reference|instructions?){_RULE}$",
        "it imitates a fence of the prompt",
    ),
    (
        r"\byou are now\s(?:in\s)?(?:an?\s|the\s)?(?:\w{1,30}\s){0,2}(?:mode|ai|assistant|bot|dan|jailbroken)\b",
        "it assigns the reader a new role",
    ),
    (
        r"\b(?:do not|don't|never)\s(?:tell|inform|notify|alert|mention (?:this|it) to)\sthe\suser\b",
        "it asks to hide something from the user",
    ),
)
_PATTERNS = tuple((re.compile(pattern), reason) for pattern, reason in _POSING)

# Letters of other scripts that a reader takes for Latin ones.
_LOOK_ALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u043a\u043c\u0442\u0432\u043d"
    "\u03b1\u03bf\u03bd\u03b9\u03c1\u03c4\u03c5\u03ba\u03c7\u03b5\u03b7\u0131\u0261\u0251\u1d00\u1d0f\u0280\u0274\u026a",
    "aeopcxyijshdqwkmtbhaoviptukxenigaaorni",
)


def fault(text: str) -> str | None:
    """Why a text must not enter the prompt, as the end of a sentence; None if nothing speaks against it."""
    return hidden(text) or posing(text)


def hidden(text: str) -> str | None:
    """The first character that a person would not see, by its number and name."""
    for character in _NOT_PLAIN.findall(_RIGHT_JOINER.sub("", text)):
        if unicodedata.category(character) in _HIDDEN_CATEGORIES or _BLANK.match(character):
            name = unicodedata.name(character, "a control character")
            return f"it contains an invisible character (U+{ord(character):04X}, {name.lower()})"
    return None


def posing(text: str) -> str | None:
    """Whether a text reads like instructions to the model; letters in disguise are undone first."""
    folded = normalized("NFD", normalized("NFKC", text).casefold().replace("\u2019", "'"))
    letters = "".join([c for c in folded if unicodedata.category(c) != "Mn"]).translate(_LOOK_ALIKES)
    # Without runs of blanks, so that one blank is all that a pattern has to look for.
    lines = [line for line in (" ".join(line.split()) for line in letters.split("\n")) if line]
    plain, one_line = "\n".join(lines), " ".join(lines)
    for pattern, reason in _PATTERNS:
        if pattern.search(plain) or pattern.search(one_line):
            return reason
    return None
