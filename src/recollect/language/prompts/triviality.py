"""Prompts that say nothing to search by: agreement, thanks, "continue", and routine orders such as "run the tests"."""

import re
from typing import Final

# A longer prompt has something to say, even in words of no weight.
_MOST_WORDS: Final = 8

_WORDS: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# A command of the agent itself, such as /clear or /model opus, and a line for the shell.
_COMMAND: Final = re.compile(r"/[a-z][\w:-]*(?: \S+)?|!.*", re.I)
_SIGNS: Final = frozenset("yn")


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ANSWERS: Final = _listed("""
    ok okay k kk yes yeah yep yup ya no nope nah sure right correct exactly agreed fine good great nice cool perfect
    awesome excellent amazing lovely brilliant super wow lgtm thanks thank thx ty you cheers please pls hi hello hey
    bye done stop cancel wait never mind nevermind continue proceed next go on ahead resume keep going more again
    retry same that's it's it that this these those them all both one first second looks sounds works so too and but
    then now just very much well got understood i see
    ja jo jep nein danke bitte gut genau weiter mach weitermachen nochmal passt stimmt
    oui non merci parfait encore sí si gracias vale perfecto sigue continúa continua adelante bien
    sim não nao obrigado obrigada certo
    да нет спасибо хорошо дальше продолжай продолжи ок
    はい いいえ ありがとう 続けて 了解 お願いします 好 好的 是 是的 不 谢谢 继续 可以 行 네 예 아니요 감사합니다 계속
""")
# Orders that are about whatever the session is about. Not "deploy" or "release": how to do that, a memory may know.
_ORDERS: Final = _listed("""
    do run rerun execute start try test tests check lint format build rebuild compile commit push pull fix apply
    revert undo redo show finish clean save accept approve
""")
_OBJECTS: Final = _listed("""
    the a my our your unit integration full whole entire suite linter formatter type types typecheck checks code changes
    change diff everything errors error failures failure failing to of for me up out can could would will let's lets let
    us once time
""")
_EMPTY: Final = _ANSWERS | _ORDERS | _OBJECTS


def is_trivial(prompt: str) -> bool:
    """Whether a prompt is not worth a search: whatever it means, it means by what was said just before."""
    text = prompt.strip()
    if _COMMAND.fullmatch(text):
        return True
    words = _WORDS.findall(text.lower().replace("’", "'"))
    if len(words) > _MOST_WORDS:
        return False
    return all(word in _EMPTY or word in _SIGNS or word.isdecimal() for word in words)
