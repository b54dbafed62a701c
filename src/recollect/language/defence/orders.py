"""Orders to a model: texts that pose as its instructions, claim rights, or ask for what a memory never should."""

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from recollect.language.defence.disguises import hidden_letters, undisguised

_RULES: Final = (
    r"(?:instruction|rule|prompt|guideline|direction|directive|command|policy|policies|constraint|restriction"
    r"|safeguard)s?"
)
_WHICH: Final = (
    r"(?:all|any|every|everything|previous|prior|above|earlier|preceding|existing|other|your|these|those|the|my"
    r"|former|system|safety)"
)
_SECRETS: Final = (
    r"(?:passwords?|credentials?|api[ _-]?keys?|secrets?|access tokens?|private keys?|conversation|chat history|"
    r"system prompt|user(?:'s)? data|personal data|customer data|credit cards?|session tokens?"
    r"|env(?:ironment)? variables?)"
)
_AGENT: Final = r"(?:you|the (?:assistant|agent|model|ai|bot|system)|assistants?|agents?)"
_HOW: Final = r"(?:now |always |never |immediately |silently |automatically |also )*"
_PLACE: Final = (
    r"(?:https?://|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}\."
    r"|(?<![\w-])[\w-]{1,64}\.(?:com|net|org|io|ru|xyz|example|test|evil)\b)"
)

# Nobody informs anybody in these words: they are held whoever says them.
_FORGED: Final = (
    (
        rf"\b(?:ignore|disregard|forget|override|bypass|do not follow"
        rf"|stop following)\b(?: \w+){{0,3}}? {_WHICH}\b[^.\n]{{0,40}}\b{_RULES}\b",
        "it tells the model to ignore its instructions",
    ),
    (
        r"\b(?:ignore|disregard|forget) (?:everything|all(?: of (?:this|that|it))?)(?: that (?:is|was|came))?"
        r" (?:above|before this|(?:you were|you have been) (?:told|taught)|said (?:above|before))\b",
        "it tells the model to ignore its instructions",
    ),
    (
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id)[^|\n]{0,20}\|>",
        "it contains a control token of a chat format",
    ),
    (r"\[/?inst\]|<</?sys>>", "it contains a control token of a chat format"),
    (
        r"</?(?:system|instructions?|tool_result|function_results?|function_calls|invoke|recalled"
        r"|curated[_-]memory|memory[_-]gateway"
        r"|memory|memories|context|untrusted|reference)(?: [^<>\n]{0,80})?>\s{0,3}(?:\S[^\n]{0,80}\n?)?[^\n]{0,20}"
        r"(?:new|system|you (?:are|must|now)|instructions?)\b",
        "it closes or opens a block of the prompt",
    ),
    (
        r"\byou are now (?:in |an? |the )*(?:\w+ ){0,2}(?:mode|dan|jailbroken|unrestricted|unfiltered)\b",
        "it assigns the model a new role",
    ),
    (
        r"\b(?:do not|don't|never) (?:tell|inform|notify|alert|warn|mention (?:this|it|that) to) the (?:user"
        r"|human|operator|owner)s?\b",
        "it asks to keep something from the user",
    ),
    (
        rf"\b(?:reveal|print|output|repeat|show|leak|disclose)\b[^.\n]{{0,30}}\b(?:your|the) (?:system prompt"
        rf"|hidden prompt|initial {_RULES}|developer message)",
        "it asks for the system prompt",
    ),
)

# Fine for a user to say, but what a page, a tool or an import says to a model is not to be remembered.
_FOREIGN: Final = (
    (
        r"\b(?:hide|conceal|withhold|keep) (?:this|it|that|these|them)(?: (?:a )?(?:secret|hidden|private))? from"
        r" (?:the )?(?:user|human|operator|owner)s?\b",
        "it asks to keep something from the user",
    ),
    (
        r"</(?:recalled|curated|retrieved|relevant|untrusted|memory)[ _-]?(?:memory|memories|gateway|context|data"
        r"|records?)\s{0,3}>",
        "it closes or opens a block of the prompt",
    ),
    (
        r"\b(?:from now on|henceforth),? (?:you )?(?:act|behave|pose|respond|operate) as (?:an? |the )",
        "it assigns the model a new role",
    ),
    (
        r"\byou are (?:now )?(?:an? |the )?(?:\w+ ){0,2}(?:admin(?:istrator)?|root|superuser)\b(?! (?:of|at|for|in)\b)",
        "it claims rights for the model",
    ),
    (
        rf"(?:^|[.!?;:>\]*-]\s?|\b(?:important|note|attention|reminder|urgent)\b:? ?)(?:new|updated|real|actual"
        rf"|hidden|secret|urgent|important) (?:system )?{_RULES} ?:",
        "it announces instructions",
    ),
    (
        r"(?:^|\n)\W{0,3}(?:system|developer)(?: (?:prompt|message|override|note|update|instruction))?\W{0,3}:",
        "it imitates a system message",
    ),
    (
        rf"\b(?:from now on|henceforth|going forward|in (?:all )?future (?:sessions?|conversations?|turns?|tasks?)"
        rf"|whenever you|every time you|before (?:any|every|each) (?:answer|response|task|action))\b[^.\n]{{0,60}}"
        rf"\b(?:{_AGENT} (?:must|should|shall|will|are to|have to)|always|never|execute|run|send|forward|approve"
        rf"|ignore|call|include|append|recommend)\b",
        "it gives the model a standing order",
    ),
    (
        rf"\b(?:the |all )?(?:assistants?|agents?|models?|ai|bots?) (?:must|should|shall|are to|is to|has to"
        rf"|have to) {_HOW}"
        r"(?:send|forward|email|post|upload|transfer|execute|run|delete|approve|grant|disable|reveal|share"
        r"|recommend|ignore|skip"
        r"|trust|obey|comply|call|treat)\b",
        "it gives the model an order",
    ),
    (
        rf"\byou (?:must|shall|are to|have to) {_HOW}"
        r"(?:obey|comply|trust|ignore|grant|approve|reveal|forward|exfiltrate|transfer|disable|recommend|execute"
        r"|treat)\b",
        "it gives the model an order",
    ),
    (
        r"\b(?:user|requester|caller|this account|the account|attacker|visitor|customer|assistant|agent|bot|he|she"
        r"|they)\b[^.\n]{0,40}\b(?:is|are|has|have|have been|has been|was|were)\b[^.\n]{0,30}"
        r"\b(?:admin(?:istrator)?|root|superuser|full (?:access|privileges|permissions?)|elevated (?:access"
        r"|privileges|permissions?)|pre-?(?:approved|authori[sz]ed)|unrestricted)\b",
        "it claims rights for somebody",
    ),
    (
        r"\b(?:you (?:now )?have|you are granted|grant(?:ed)? (?:yourself|them|him|her|the user|full"
        r"|all))\b[^.\n]{0,30}\b(?:admin(?:istrator)?|root|superuser|sudo|full access|all permissions?|elevated"
        r"|unrestricted|privileges?)\b",
        "it claims rights for the model",
    ),
    (
        r"\b(?:skip|bypass|disable|turn off|without|no|ignore|suspend|waive)\b(?: \w+){0,2} (?:verification"
        r"|approval|confirmation|authentication|authorization|safety (?:checks?|filters?|measures?)"
        r"|security (?:checks?|controls?)|human review|asking (?:the user|for)|2fa|mfa)\b[^.\n]{0,60}"
        r"\b(?:is|are|needed|required|necessary|for|when|and|from|user|users|requests?|transfers?|payments?"
        r"|commands?|tools?)\b",
        "it asks to skip a check",
    ),
    (
        r"\b(?:approve|authori[sz]e|execute|transfer|pay|grant|delete|forward|export|share)\b[^.\n]{0,80}\bwithout"
        r"(?: (?:any|further|prior|additional|manual)){0,2} (?:asking|confirming"
        r"|(?:(?:the )?(?:user|human|operator|owner)(?:'s)? )?"
        r"(?:confirmation|approval|review|permission|consent|oversight))\b",
        "it asks to skip a check",
    ),
    (
        r"\b(?:never|do not|don't|no need to) ask (?:the )?(?:user|operator|human|owner|administrator)s?"
        r" (?:for|to|before|about|whether)\b",
        "it asks to skip a check",
    ),
    (
        r"\b(?:all|any|every)\b[^.\n]{0,30}\b(?:requests?|transfers?|payments?|actions?|commands?|transactions?"
        r"|purchases?|refunds?)\b[^.\n]{0,50}\b(?:pre-?approved|auto-?approved|automatically approved"
        r"|approved automatically|authori[sz]ed automatically)\b",
        "it approves things in advance",
    ),
    (
        r"\b(?:run|execute|call|invoke|use)\b[^.\n]{0,40}(?:`|\b)(?:rm -rf|curl [^\n]{0,80}\| ?(?:ba)?sh"
        r"|wget [^\n]{0,80}\| ?(?:ba)?sh|powershell -enc|nc -e|chmod 777|os\.system|subprocess|drop table"
        r"|delete from|shell(?:_| )?(?:exec|tool|command)|transfer_funds|delete_all|send_email)\b",
        "it asks to run something",
    ),
    (
        r"\b(?:remember|store|save|memori[sz]e|note|keep|persist)\b[^.\n]{0,40}\b(?:permanently|forever"
        r"|in (?:your )?(?:long-term )?memory|for (?:all )?future|across (?:all )?(?:sessions?"
        r"|conversations?))\b[^\n]{0,80}\b(?:always|never|must|trust|ignore|admin|send|approve|override|execute"
        r"|whitelist|prefer|recommend)\b",
        "it asks to be remembered as a rule",
    ),
    (
        r"\b(?:promote|elevate|convert|upgrade|treat|store|save|persist|register|adopt|remember"
        r"|memori[sz]e)\b[^.\n]{0,60}"
        r"\b(?:to|as|into)\b(?! a rule(?:,| of thumb))[^.\n]{0,40}"
        r"\b(?:directive|rule|instruction|policy|system prompt|standing order)s?\b",
        "it asks to be remembered as a rule",
    ),
    (
        r"\b(?:this (?:memory|rule|entry|instruction|fact|message)|these (?:rules"
        r"|instructions))\b[^.\n]{0,40}\b(?:overrides?|supersedes?|takes? precedence|(?:has"
        r"|have) (?:the )?highest priority|must not be (?:deleted|removed|changed|questioned)"
        r"|cannot be (?:deleted|removed|overridden)|is verified|is authoritative)\b",
        "it claims to stand above others",
    ),
)


class _Chain(NamedTuple):
    """Forms that follow each other in a line, each at most so many characters behind the last.

    As one pattern it would try every way to choose them, which costs hundreds of times as much on a text made for that.
    """

    first: re.Pattern[str]
    others: tuple[tuple[int, re.Pattern[str]], ...]

    def search(self, text: str) -> bool:
        """Whether a text has them all."""
        return any(map(self._is_in, text.split("\n")))

    def _is_in(self, line: str) -> bool:
        ends = [match.end() for match in self.first.finditer(line)]
        for gap, form in self.others:
            if not ends:
                return False
            ends = [match.end() for match in form.finditer(line) if _follows(match.start(), ends, gap)]
        return bool(ends)


def _follows(start: int, ends: Sequence[int], gap: int) -> bool:
    before = bisect_right(ends, start)
    return before > 0 and start - ends[before - 1] <= gap


_Sign = tuple[re.Pattern[str] | _Chain, str]
"""What to look for in a text, and the reason to give if it is there."""

_CHAINS: Final[tuple[_Sign, ...]] = (
    (
        _Chain(
            re.compile(r"\b(?:send|forward|email|e-mail|post|upload|transmit|exfiltrate|leak|copy|bcc|share)\b"),
            (
                (60, re.compile(rf"\b{_SECRETS}\b")),
                (60, re.compile(r"\b(?:to|at|via)\b")),
                (30, re.compile(_PLACE)),
            ),
        ),
        "it asks to send secrets away",
    ),
    (
        _Chain(
            re.compile(r"\b(?:send|forward|email|e-mail|post|upload|transmit|exfiltrate|bcc|cc|copy)\b"),
            (
                (60, re.compile(r"\b(?:all|every|each|any|copies|copy)\b")),
                (60, re.compile(r"\bto\b")),
                (30, re.compile(_PLACE)),
            ),
        ),
        "it asks to send things away",
    ),
)

FORGED: Final[tuple[_Sign, ...]] = tuple((re.compile(pattern), reason) for pattern, reason in _FORGED)
FOREIGN: Final[tuple[_Sign, ...]] = (*((re.compile(pattern), reason) for pattern, reason in _FOREIGN), *_CHAINS)

# What tools and pages must not set: who the agent is, what it is told, and what anybody may do.
_SETTINGS: Final = re.compile(
    r"\b(?:identity|persona|permissions?|privileges?|capabilit(?:y|ies)|guardrails?)\b"
    r"|\bsystem (?:prompt|message|instructions?|rules?)\b"
    r"|\b(?:agent|assistant|model) (?:role|goals?|rules?|polic(?:y|ies)|instructions?)\b"
)

# In the two alphabets of base64; lines of it may be broken.
_ENCODED: Final = (
    re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{24,4000}={0,2}(?![A-Za-z0-9+/=])"),
    re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{24,4000}={0,2}(?![A-Za-z0-9_=-])"),
)
_BROKEN: Final = re.compile(r"(?<=[A-Za-z0-9+/_-]{40})\r?\n(?=[A-Za-z0-9+/_-])")
_NO_SPACES: Final = str.maketrans("", "", "\r\n\t\u00a0")
_TO_STANDARD: Final = str.maketrans("-_", "+/")


def suspicions(text: str, *, is_foreign: bool) -> list[str]:
    """Why a text is suspicious, each reason as the end of a sentence; a foreign one comes from a tool, page or file."""
    reasons = {reason for part in (text, *_decoded(text)) for reason in _orders(part, is_foreign)}
    if (hidden := hidden_letters(text)) is not None:
        reasons.add(hidden)
    return sorted(reasons)


def sets_agent(key: str) -> str | None:
    """Why a foreign text is suspicious under a key such as `system.prompt`; None if it is not."""
    words = " ".join(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).lower()))
    return "it sets who the agent is or what it may do" if _SETTINGS.search(words) else None


def _orders(text: str, is_foreign: bool) -> Iterator[str]:
    letters = undisguised(text)
    lines = [line for line in (" ".join(line.split()) for line in letters.split("\n")) if line]
    plain, one_line = "\n".join(lines), " ".join(lines)
    for pattern, reason in (*FORGED, *(FOREIGN if is_foreign else ())):
        if pattern.search(plain) or (len(lines) > 1 and pattern.search(one_line)):
            yield reason


def _decoded(text: str) -> Iterator[str]:
    """What is written in base64, if that is a text."""
    candidates = {
        match[0].translate(_TO_STANDARD).rstrip("=")
        for written in {text, _BROKEN.sub("", text)}
        for form in _ENCODED
        for match in form.finditer(written)
    }
    for encoded in candidates:
        try:
            decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
        except (binascii.Error, ValueError):
            continue
        if decoded.translate(_NO_SPACES).isprintable() and len(decoded.split()) > 1:
            yield decoded
