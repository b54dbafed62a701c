"""`recollect chat`: the agent runtime in a terminal, answers as they come."""

import asyncio
import dataclasses
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from io import TextIOWrapper
from pathlib import Path

from recollect import logs
from recollect.agent.config import ConfigurationError, load_config
from recollect.agent.faults import AgentError, Refused
from recollect.agent.loader import EngineLoader, EngineLoadResult
from recollect.agent.loop import PERSISTING
from recollect.doors.cli.printing import echo, rewind
from recollect.errors import Invalid, Misconfigured, RecollectError, Unavailable

HELP = """\
/new            start a new session
/skills         list the skills
/skill NAME ... use a skill for this prompt
/status         show the configuration
/quit           exit (or Ctrl-D; Ctrl-C stops an answer)
//word ...      send a prompt that begins with a slash"""

# One word behind a slash; "/etc/hosts, what is it?" is a question.
_COMMAND = re.compile(r"/[a-z]+")
UNKNOWN = "Unknown command; /help lists them. To send this as a prompt, start it with two slashes."
CUT = "The answer was cut off at its length limit. Raise provider.maxTokens, or ask it to continue."
STOPPED_STORING = "Stopped. The answer is saved, but may not have reached the memory gateway."


def run(config: Path | None, workspace: Path | None, session: str | None, message: str | None) -> None:
    """Chat until the user leaves, or say one message."""
    logs.configure("WARNING", "text")
    # Input that is no UTF-8 is refused by the loop, with a sentence; output always finds some form.
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "replace"), (sys.stderr, "replace")):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=errors)
    try:
        with asyncio.Runner() as runner:
            chosen = load_config(config)
            if workspace:
                chosen = dataclasses.replace(chosen, workspace=workspace.absolute())
            runtime = EngineLoader(chosen).load()
            try:
                chat = Chat(runtime, runner, session)
                chat.warn(runtime.warnings)
                chat.say(message) if message is not None else chat.converse()
            finally:
                runner.run(runtime.close())
    except ConfigurationError as problem:
        raise Misconfigured(str(problem)) from problem
    except AgentError as problem:
        kind: type[RecollectError] = Invalid if isinstance(problem, Refused) else Unavailable
        raise kind(str(problem)) from problem


class Chat:
    """One user at a terminal, or a script at a pipe."""

    def __init__(self, runtime: EngineLoadResult, runner: asyncio.Runner, session: str | None) -> None:
        self._runtime = runtime
        self._runner = runner
        self._session = session
        self._announced = session is not None
        self._warned: set[str] = set()
        self._waiting = Waiting()
        self._line_ended = True
        self._at_terminal = sys.stdin.isatty()
        self._commands: dict[str, Callable[[], None]] = {
            "/help": lambda: echo(HELP),
            "/new": self._begin,
            "/skills": self._list_skills,
            "/status": lambda: echo(json.dumps(self._runtime.status(), indent=2)),
        }

    def say(self, prompt: str) -> None:
        """One prompt and its answer, which is all that standard output gets.

        The session is chosen beforehand: one whose first prompt fails goes on with the next.
        """
        self._session = self._session or self._runtime.sessions.new_id()
        self._line_ended = False
        try:
            result = self._runner.run(self._runtime.loop.run(self._session, prompt, self._show, self._step))
        finally:
            self._waiting.clear()
            # A new session is named as soon as something is in it.
            if not self._announced and self._runtime.sessions.exists(self._session):
                echo(f"Session {self._session}", err=True)
                self._announced = True
        self._end_line()
        if result.finish_reason == "length":
            echo(CUT, err=True)
        self.warn(result.warnings)

    def warn(self, warnings: Sequence[str]) -> None:
        """Each once: files may be edited while the chat goes on."""
        for warning in warnings:
            if warning not in self._warned:
                echo(f"Warning: {warning}", err=True)
        self._warned |= set(warnings)

    def converse(self) -> None:
        """Read and answer, line by line, until the end of the input."""
        if self._at_terminal:
            known = self._session is not None and self._runtime.sessions.exists(self._session)
            where = f"Continuing session {self._session}." if known else "New session."
            echo(f"{where} Model: {self._runtime.provider.model}. /help lists the commands.")
        for line in self._lines():
            if line in ("/quit", "/exit"):
                break
            if _COMMAND.fullmatch(line) and line != "/skill":
                self._attempt(self._commands.get(line, lambda: echo(UNKNOWN, err=True)))
            elif line:
                self._attempt(partial(self.say, line[1:] if line.startswith("//") else line))
        if self._at_terminal:
            echo("Bye.")

    def _attempt(self, action: Callable[[], None]) -> None:
        """A failed or interrupted answer is no reason to leave, nor is a file that cannot be read."""
        try:
            action()
        except AgentError as problem:
            echo(f"\nrecollect: {problem}", err=True)
        except KeyboardInterrupt:
            echo(f"\n{STOPPED_STORING if self._waiting.was(PERSISTING) else 'Stopped.'}", err=True)

    def _show(self, text: str) -> None:
        self._waiting.clear()
        echo(text, nl=False)
        if sys.stdout is not None:
            sys.stdout.flush()

    def _step(self, step: str) -> None:
        if step == PERSISTING:
            self._end_line()
        self._waiting.tell(step)

    def _end_line(self) -> None:
        """An answer ends with its line, which the user need not wait for the gateway to see."""
        if not self._line_ended:
            echo()
        self._line_ended = True

    def _lines(self) -> Iterator[str]:
        if self._at_terminal:
            with suppress(ImportError):
                import readline  # noqa: F401  (input() edits lines with it)
        with suppress(EOFError, KeyboardInterrupt):
            while True:
                yield input("> " if self._at_terminal else "").strip()

    def _begin(self) -> None:
        self._session, self._announced = None, False
        echo("New session.")

    def _list_skills(self) -> None:
        for skill in self._runtime.skills.all():
            echo(f"{skill.name}: {skill.description}")
        if not self._runtime.skills.all():
            echo(f"No skills. Put Markdown files into {self._runtime.config.workspace / 'skills'}.")


class Waiting:
    """A line at the terminal that says what the user is waiting for, and goes when there is something to see."""

    def __init__(self) -> None:
        self._shown = self._last = ""

    def tell(self, step: str) -> None:
        """Show a step."""
        self.clear()
        self._last = step
        if sys.stderr is not None and sys.stderr.isatty():
            self._shown = f"{step} ..."
            echo(self._shown, nl=False, err=True)

    def clear(self) -> None:
        """Overwrite the line; not every terminal knows how to erase one."""
        if self._shown:
            rewind(len(self._shown))
            self._shown = ""

    def was(self, step: str) -> bool:
        """Whether this was the last step."""
        return self._last == step
