"""`recollect chat`: the agent runtime in a terminal, answers as they come."""

import asyncio
import dataclasses
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path

import click

from recollect import logs
from recollect.agent.config import AgentConfig, ConfigurationError, load_config
from recollect.agent.faults import AgentError, Refused
from recollect.agent.loader import EngineLoader, EngineLoadResult
from recollect.errors import Invalid, Misconfigured, RecollectError, Unavailable

HELP = """\
/new            begin a new session
/skills         list the skills
/skill NAME ... use a skill for this prompt
/status         show what runs
/quit           leave (Ctrl-D does, too; Ctrl-C stops an answer)"""

# What a terminal obeys instead of showing. Answers may quote text that others wrote.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def run(config: Path | None, workspace: Path | None, session: str | None, message: str | None) -> None:
    """Chat until the user leaves, or say one message."""
    logs.configure("WARNING", "text")
    _take_any_bytes()
    with _as_ours(), asyncio.Runner() as runner:
        runtime = EngineLoader(_configured(config, workspace)).load()
        try:
            for warning in runtime.warnings:
                click.echo(f"Warning: {warning}", err=True)
            chat = Chat(runtime, runner, session)
            chat.say(message) if message is not None else chat.converse()
        finally:
            runner.run(runtime.close())


class Chat:
    """One user at a terminal, or a script at a pipe."""

    def __init__(self, runtime: EngineLoadResult, runner: asyncio.Runner, session: str | None) -> None:
        self._runtime = runtime
        self._runner = runner
        self._session = session
        self._at_terminal = sys.stdin.isatty()
        self._commands: dict[str, Callable[[], None]] = {
            "/help": lambda: click.echo(HELP),
            "/new": self._begin,
            "/skills": self._list_skills,
            "/status": lambda: click.echo(json.dumps(self._runtime.status(), indent=2)),
        }

    def say(self, prompt: str) -> None:
        """One prompt and its answer, which is all that standard output gets."""
        result = self._runner.run(self._runtime.loop.run(self._session, prompt, _show))
        click.echo()
        if self._session is None:
            click.echo(f"Session {result.session_id}", err=True)
        self._session = result.session_id

    def converse(self) -> None:
        """Read and answer, line by line, until the end of the input."""
        self._greet()
        for line in self._lines():
            if line in ("/quit", "/exit"):
                break
            if line.startswith("/") and line.split()[0] != "/skill":
                self._commands.get(line, self._unknown)()
            elif line:
                self._answer(line)
        if self._at_terminal:
            click.echo("Bye.")

    def _answer(self, prompt: str) -> None:
        """A failed or interrupted answer is no reason to leave."""
        try:
            self.say(prompt)
        except AgentError as problem:
            click.echo(f"\nrecollect: {problem}", err=True)
        except KeyboardInterrupt:
            click.echo("\nStopped.", err=True)

    def _lines(self) -> Iterator[str]:
        if self._at_terminal:
            with suppress(ImportError):
                import readline  # noqa: F401  (input() edits lines with it)
        with suppress(EOFError, KeyboardInterrupt):
            while True:
                yield input("> " if self._at_terminal else "").strip()

    def _greet(self) -> None:
        if self._at_terminal:
            known = self._session is not None and self._runtime.sessions.exists(self._session)
            where = f"Going on in session {self._session}." if known else "A new session."
            click.echo(f"{where} The model is {self._runtime.provider.model}. /help lists the commands.")

    def _begin(self) -> None:
        self._session = None
        click.echo("A new session.")

    def _list_skills(self) -> None:
        for skill in self._runtime.skills.all():
            click.echo(f"{skill.name}: {_visible(skill.description)}")
        if not self._runtime.skills.all():
            click.echo(f"No skills. Put Markdown files into {self._runtime.config.workspace / 'skills'}.")

    def _unknown(self) -> None:
        click.echo("There is no such command; /help lists them.", err=True)


def _configured(path: Path | None, workspace: Path | None) -> AgentConfig:
    config = load_config(path)
    return dataclasses.replace(config, workspace=workspace.absolute()) if workspace else config


def _show(text: str) -> None:
    click.echo(_visible(text), nl=False)
    sys.stdout.flush()


def _visible(text: str) -> str:
    return _CONTROLS.sub("", text)


def _take_any_bytes() -> None:
    """Input that is no UTF-8 is refused by the loop, with a sentence; output always finds some form."""
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "replace"), (sys.stderr, "replace")):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=errors)


@contextmanager
def _as_ours() -> Iterator[None]:
    """The runtime's errors as this command's: one sentence and an exit code."""
    try:
        yield
    except ConfigurationError as problem:
        raise Misconfigured(str(problem)) from problem
    except AgentError as problem:
        kind: type[RecollectError] = Invalid if isinstance(problem, Refused) else Unavailable
        raise kind(str(problem)) from problem
