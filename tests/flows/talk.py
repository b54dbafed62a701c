"""Short talks to recall from."""

from recollect.engine import Engine
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage


async def say(engine: Engine, namespace: str, user: str, text: str, session: str = "talk") -> None:
    await engine.remember.turn(namespace, Turn(session, (NewMessage("user", text),), owner_if_new=user))


async def say_all(engine: Engine, namespace: str, user: str, *texts: str, session: str = "talk") -> None:
    lines = tuple(NewMessage("user", text) for text in texts)
    await engine.remember.turn(namespace, Turn(session, lines, owner_if_new=user))
