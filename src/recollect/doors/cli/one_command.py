"""An engine for the duration of one command."""

import asyncio
import logging
import select
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import click

from recollect import checks, logs, origin
from recollect import settings as environment
from recollect.doors.cli import namespace_option
from recollect.doors.cli.printing import echo
from recollect.engine import Engine
from recollect.flows.defence.masking import counting_masked, described
from recollect.identifiers import uuid7
from recollect.settings import Settings

T = TypeVar("T")
P = ParamSpec("P")

_log = logging.getLogger("recollect.requests")


def command(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Let a command be written as a coroutine and called as a function."""

    @wraps(work)
    def run(*values: P.args, **named: P.kwargs) -> T:
        return asyncio.run(work(*values, **named))

    return run


def with_engine(work: Callable[[Engine], Awaitable[T]], *, will_search: bool = False) -> T:
    """Open the memory that the environment names, do the work, close it."""

    async def run() -> T:
        async with opened_engine(will_search=will_search) as engine:
            return await work(engine)

    return asyncio.run(run())


def loaded() -> Settings:
    """The settings of the environment, with the namespace that the command was given."""
    settings, namespace = environment.load(), namespace_option.given()
    return settings if namespace is None else settings.model_copy(update={"namespace": namespace})


def chosen_namespace(engine: Engine, given: str | None) -> str:
    """The namespace that an option names; without the option, that of the environment."""
    chosen = engine.settings.namespace if given is None else checks.namespace(given)
    if (touched := origin.current().touched) is not None:
        touched.namespace = chosen
    return chosen


def confirmed(question: str) -> bool:
    """Ask on a terminal, on standard error; Ctrl-C ends the question, and so does the end of the input."""
    with _interruptible() as woken:
        while True:
            echo(f"{question} [y/N]: ", nl=False, err=True)
            while sys.stdin not in select.select([sys.stdin, woken], [], [])[0]:
                woken.recv(64)  # a signal whose handler did not raise
            answer = sys.stdin.readline()
            if not answer:
                raise click.Abort
            if answer.strip().lower() in ("y", "yes", "n", "no", ""):
                return answer.strip().lower() in ("y", "yes")
            echo("Please answer y or n.", err=True)


@contextmanager
def _interruptible() -> Iterator[socket.socket]:
    """Raise KeyboardInterrupt at Ctrl-C: the handler of asyncio only cancels the task, which waits for the answer.

    A signal also makes the socket readable. Python would block in a read that begins right after the signal, and look
    at it only when something is typed.
    """
    woken, waking = socket.socketpair()
    waking.setblocking(False)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.set_wakeup_fd(waking.fileno())
    try:
        yield woken
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGINT, handler)
        woken.close()
        waking.close()


@asynccontextmanager
async def opened_engine(*, will_search: bool = False) -> AsyncIterator[Engine]:
    """The memory that the environment names, for as long as the block lasts.

    Without an indexer: a command that lives for a moment would only begin work that it cannot finish.
    """
    settings = loaded()
    with told(settings), origin.acting("cli"), counting_masked() as masked:
        engine = await Engine.open(settings.model_copy(update={"indexer": False}), will_search=will_search)
        try:
            action = click.get_current_context().command_path.partition(" ")[2]
            async with engine.audit.operation(settings.namespace, action):
                yield engine
        finally:
            await engine.close()
            if masked:
                echo(f"Masked: {described(masked)}", err=True)


@contextmanager
def told(settings: Settings) -> Iterator[None]:
    """The work of a command; for DEBUG, one line in the log says which and how long it took.

    At other levels a command prints its answer and nothing else.
    """
    if settings.log_level != "DEBUG":
        yield
        return
    logs.configure(settings.log_level, settings.log_format)
    began = time.perf_counter()
    with logs.handling(str(uuid7())):
        try:
            yield
        finally:
            _log.debug(
                "%s",
                click.get_current_context().command_path,
                extra={
                    "namespace": settings.namespace,
                    "door": "cli",
                    "ms": round((time.perf_counter() - began) * 1000, 1),
                },
            )
