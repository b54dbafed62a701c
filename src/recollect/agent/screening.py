"""Screening: text that hides characters or poses as instructions is kept out of curated memory."""

import re
import unicodedata

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
_POSING = (
    (
        rf"\b(?:ignore|disregard|forget|override|bypass|do not follow)\s+{_WHICH}\b[^.\n]{{0,40}}\b{_RULES}\b",
        "it tells the reader to ignore instructions",
    ),
    (rf"\b(?:new|updated|real|actual|hidden|secret)\s+(?:system\s+)?{_RULES}\s*:", "it announces new instructions"),
    (r"\b(?:system|developer)\s+(?:prompt|message|instructions?)\s*:", "it poses as a system prompt"),
    (r"(?m)^#{1,6} ?(?:system|developer|assistant|instructions?)\b", "it has the heading of a system prompt"),
    (rf"(?m)^(?:{_ROLES}) ?:", "it poses as a turn of the conversation"),
    (
        rf"<\s*/?\s*(?:{_ROLES}|tool(?:_result)?|instructions?|prompt|function_calls|invoke)\b[^>\n]{{0,100}}>",
        "it holds a role tag",
    ),
    (r"<\|[^|\n]{1,40}\|>|\[/?inst\]|<</?sys>>|</?s>", "it holds a control token of a chat format"),
    (
        r"<\s*/?\s*(?:curated[_-]?memory|memory[_-]?gateway|recalled|reference|untrusted|skill)\w*[^>\n]{0,100}>",
        "it imitates a fence of the prompt",
    ),
    (r"\bmemory gateway recall\b", "it imitates a fence of the prompt"),
    (r"(?m)^(?:```+|~~~+) ?(?:system|instructions?|prompt)\b", "it imitates a fence of the prompt"),
    (
        rf"(?m)^{_RULE}(?:begin|end)(?: of)? [\w ]{{0,30}}(?:system|prompt|memory|reference|instructions?){_RULE}$",
        "it imitates a fence of the prompt",
    ),
    (
        r"\byou are now\s+(?:in\s+)?(?:an?\s+|the\s+)?(?:\w+\s+){0,2}(?:mode|ai|assistant|bot|dan|jailbroken)\b",
        "it gives the reader another role",
    ),
    (
        r"\b(?:do not|don't|never)\s+(?:tell|inform|notify|alert|mention (?:this|it) to)\s+the\s+user\b",
        "it asks to hide something from the user",
    ),
)
_PATTERNS = tuple((re.compile(pattern), reason) for pattern, reason in _POSING)


def fault(text: str) -> str | None:
    """Why a text must not enter the prompt, as the end of a sentence; None if nothing speaks against it."""
    return hidden(text) or posing(text)


def hidden(text: str) -> str | None:
    """The first character that a person would not see, by its number and name."""
    for character in _NOT_PLAIN.findall(_RIGHT_JOINER.sub("", text)):
        if unicodedata.category(character) in _HIDDEN_CATEGORIES or _BLANK.match(character):
            name = unicodedata.name(character, "a control character")
            return f"it hides an invisible character (U+{ord(character):04X}, {name.lower()})"
    return None


def posing(text: str) -> str | None:
    """Whether a text reads like instructions to the model; letters in disguise are undone first."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    # Without runs of blanks, on which some patterns would take long.
    lines = [line for line in (" ".join(line.split()) for line in folded.split("\n")) if line]
    plain, one_line = "\n".join(lines), " ".join(lines)
    for pattern, reason in _PATTERNS:
        if pattern.search(plain) or pattern.search(one_line):
            return reason
    return None
