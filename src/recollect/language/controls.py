"""Characters that a terminal obeys instead of showing: escapes, and marks that change the direction of the text.

Stored text is anybody's. Printed as it is, it could move the cursor, rename the window or hide what stands before it.
Characters that merely cannot be seen stay, since output is piped and copied; pages of the console write those out, too.
"""

import re

# All but tab and newline: C0, delete, C1, and the marks, embeddings, overrides and isolates of bidirectional text.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

# Those that JSON allows unescaped inside its strings.
_UNESCAPED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def shown(text: str) -> str:
    """The text with every such character written out, as in \\x1b."""
    return _CONTROLS.sub(lambda match: repr(match.group())[1:-1], text.replace("\r\n", "\n"))


def escaped_json(document: str) -> str:
    """The same JSON, with every such character escaped as JSON does it."""
    return _UNESCAPED.sub(lambda match: f"\\u{ord(match.group()):04x}", document)
