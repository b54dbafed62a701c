"""The command that the hooks of coding agents run: asks the memory before a prompt, and sends it what was said.

It runs before every prompt, so it imports nothing of the package and little of Python, and talks to a background
process, which it starts if there is none. It is best effort: whatever fails is a line in `hooks.log`, and the agent
goes on without.
"""

import json
import os
import signal
import socket
import sys
import time
from typing import Any

LOG = "hooks.log"
LOG_BYTES = 256 * 1024
BACKGROUND = "recollect.doors.cli.coding_agents.background"
# How long an agent waits at most, by what it waits for. A background process needs a few seconds to start.
SECONDS = {"start": 2.0, "prompt": 1.5, "answer": 1.0, "turn": 2.0, "end": 1.0}
# When even that is not kept, as on a disk that hangs.
LAST_SECONDS = 5
POLL_SECONDS = 0.025
# A process that could not start is not started again at every prompt.
START_AGAIN_SECONDS = 10
# Two hooks of one prompt, of the user's settings and of the project's, come this close to each other.
SAME_PROMPT_SECONDS = 5
MOST_SHOWN = 500
SESSION_SECONDS = 14 * 24 * 3600
TRANSCRIPT_BYTES = 512 * 1024


class Failure(Exception):
    """The memory cannot be asked; the sentence is for the log."""


def main() -> None:
    """Handle one event: `hook.py FOLDER KIND`, with the agent's JSON on standard input."""
    folder, kind = sys.argv[1:]
    home, name = os.path.split(folder)
    sys.excepthook = lambda _, problem, __: _give_up(home, f"{name} {kind}: {type(problem).__name__}: {problem}")
    signal.signal(signal.SIGALRM, lambda *_: _give_up(home, f"{name} {kind}: no answer in {LAST_SECONDS} seconds"))
    signal.alarm(LAST_SECONDS)
    given = json.load(sys.stdin, object_hook=_storable)
    os.chdir(home)  # the path of a socket may have a hundred characters
    with open(f"{name}/record.json") as file:
        hook = json.load(file)["hook"]
    context = None
    # Cursor runs the hooks of Claude Code, too, and has its own. What agents say to each other is no prompt of a user.
    is_foreign = hook["agent"] == "claude-code" and "cursor_version" in given
    if not is_foreign and not given.get("agent_id"):
        context = Event(hook, name, kind, given).handle()
    print(json.dumps(_output(hook["agent"], kind, given, context)))


class Event:
    """One event of an agent, whatever the agent calls its parts."""

    def __init__(self, hook: dict[str, Any], name: str, kind: str, given: dict[str, Any]) -> None:
        self._hook = hook
        self._name = name
        self._kind = kind
        self._given = given
        self._memory = Memory(hook, time.monotonic() + SECONDS[kind])
        session = str(given.get("session_id") or given.get("conversation_id") or "unknown")
        roots = given.get("workspace_roots") or [os.environ.get("PWD", "/")]
        self._where = {
            "agent": hook["agent"],
            "session_id": session[:200],
            "project": _project_of(str(given.get("cwd") or roots[0])),
            "user_id": hook["user"],
        }
        safe = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in session)
        # One for all scopes: where an agent is installed for its user and for a project, a turn has two hooks.
        self._file = f"sessions/{hook['agent']}-{safe[:150]}.json"
        self._session: dict[str, Any] = _read(self._file)

    def handle(self) -> str | None:
        """Text for the model, if there is any."""
        context: str | None = getattr(self, f"_{self._kind}")()
        return context

    def _start(self) -> str | None:
        _forget_old("sessions")
        self._deliver()
        source = self._given.get("source")
        if source == "resume":
            return None  # what it knew then is still before the model
        if source == "compact":
            self._session["shown"] = []
        return self._context({})

    def _prompt(self) -> str | None:
        prompt, now = self._given.get("prompt") or "", time.time()
        is_waiting = "prompt" in self._session and not self._session["answered"]
        is_same = is_waiting and self._session["prompt"] == prompt and now - self._session["at"] < SAME_PROMPT_SECONDS
        if not is_same:
            if is_waiting:
                self._keep_turn()  # it was interrupted: no answer will come
            key = self._turn_id() or str(time.time_ns())
            self._session |= {"key": key, "prompt": prompt, "at": now, "answer": None, "answered": False}
            _write(self._file, self._session)
        self._deliver()
        return self._context({"prompt": prompt, "shown": self._session.get("shown", [])})

    def _answer(self) -> None:
        self._session["answer"] = self._given.get("text")
        _write(self._file, self._session)
        if self._session.get("answered"):  # the agent told the end of the turn first
            self._keep_turn()
            self._deliver()

    def _turn(self) -> None:
        given, session = self._given, self._session
        said = given.get("last_assistant_message") or given.get("prompt_response") or session.get("answer")
        if not said or "key" not in session:
            found = _last_said(given.get("transcript_path"))
            said = said or found.get("assistant")
            if "key" not in session:
                session["prompt"] = given.get("prompt") or found.get("user")
        session |= {"answer": said, "answered": True}
        self._keep_turn()
        _write(self._file, session)
        self._deliver()

    def _end(self) -> None:
        if self._session.get("prompt") and not self._session["answered"]:
            self._keep_turn()
        if os.path.exists(self._file):
            os.unlink(self._file)
        self._deliver()

    def _turn_id(self) -> str | None:
        named = self._given.get("turn_id") or self._given.get("generation_id")
        return None if named is None else str(named)[:200]

    def _context(self, asked: dict[str, Any]) -> str | None:
        asked |= {"only_user": self._hook["only_user"]}
        found = self._memory.ask("/coding/context", self._where | asked)
        if found["degraded"]:
            _log(f"{self._name} {self._kind}: keyword search only: {found['degraded']}")
        if found["ids"]:
            self._session["shown"] = [*self._session.get("shown", []), *found["ids"]][-MOST_SHOWN:]
            _write(self._file, self._session)
        context: str | None = found["context"]
        return context

    def _keep_turn(self) -> None:
        """On disk before it is sent: a turn is not lost because the background process is only starting."""
        session = self._session
        prompt, answer = session.get("prompt"), session.get("answer")
        times = {"answered_at": _moment(time.time())} if answer else {}
        if prompt and "at" in session:
            times["prompted_at"] = _moment(session["at"])
        turn = {"key": session.get("key") or self._turn_id() or "only", "prompt": prompt, "answer": answer}
        if prompt or answer:
            _write(f"{self._name}/turns/{time.time_ns()}-{os.getpid()}.json", self._where | turn | times)

    def _deliver(self) -> None:
        """Best effort: send the turns that wait, oldest first; the memory stores each once. The rest go on waiting."""
        folder = f"{self._name}/turns"
        for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            # Others are being written.
            if file.endswith(".json") and (turn := _read(f"{folder}/{file}")):
                try:
                    self._memory.ask("/coding/turns", turn)
                except Refused as problem:
                    _log(f"{self._name} {self._kind}: a turn is not stored: {problem}")
                except (Failure, OSError) as problem:
                    _log(f"{self._name} {self._kind}: turns wait to be stored: {problem}")
                    return
                if os.path.exists(f"{folder}/{file}"):
                    os.unlink(f"{folder}/{file}")


class Refused(Exception):
    """The memory will never take this."""


class Memory:
    """The routes of the REST door, of a server or of the background process, until a moment."""

    def __init__(self, hook: dict[str, Any], until: float) -> None:
        self._hook = hook
        self._until = until

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer of a route."""
        sent = json.dumps(body).encode()
        status, answer = self._remote(path, sent) if self._hook["url"] else self._local(path, sent)
        read = json.loads(answer) if answer.startswith(b"{") else {}
        if status == 200:
            found: dict[str, Any] = read
            return found
        said = f"{status}: {str(read.get('detail', ''))[:300]}"
        raise Refused(said) if status in (400, 409, 413, 422) else Failure(said)

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise Failure("the memory did not answer in time")
        return left

    def _local(self, path: str, body: bytes) -> tuple[int, bytes]:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with self._connected() as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
                connection.settimeout(self._left())
        first, _, answer = b"".join(parts).partition(b"\r\n\r\n")
        return int(first.split(b" ", 2)[1]), answer

    def _connected(self) -> socket.socket:
        """A connection to the background process, which is started if there is none."""
        is_started = False
        while True:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(self._left())
            try:
                connection.connect(self._hook["socket"])
                return connection
            except (FileNotFoundError, ConnectionRefusedError):
                connection.close()
            if not is_started:
                self._start()
                is_started = True
            if self._until - time.monotonic() < POLL_SECONDS:
                raise Failure("the background process is starting; the next prompt will find it")
            time.sleep(POLL_SECONDS)

    def _start(self) -> None:
        stamp = f"{self._hook['socket']}.started"
        if os.path.exists(stamp) and time.time() - os.stat(stamp).st_mtime < START_AGAIN_SECONDS:
            return
        import subprocess  # takes as long to import as all the rest

        # A setting in the agent's environment could lead to another memory than the installed one.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("RECOLLECT_") or name.endswith("_API_KEY")
        }
        with open(stamp, "wb"), open("background.log", "ab") as log:
            os.utime(stamp)
            subprocess.Popen(
                [self._hook["python"], "-I", "-m", BACKGROUND, self._hook["socket"], str(self._hook["idle_seconds"])],
                env=inherited | self._hook["settings"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _remote(self, path: str, body: bytes) -> tuple[int, bytes]:
        from urllib import error, request

        headers = {"Content-Type": "application/json"}
        if self._hook["key"]:
            headers["Authorization"] = f"Bearer {self._hook['key']}"
        asked = request.Request(self._hook["url"].rstrip("/") + path, body, headers)  # noqa: S310  the user's own URL
        try:
            with request.urlopen(asked, timeout=self._left()) as answer:  # noqa: S310
                return answer.status, answer.read()
        except error.HTTPError as refusal:
            return refusal.code, refusal.read()


def _storable(given: dict[str, Any]) -> dict[str, Any]:
    """Without what no database takes: terminals print NULs, and programs cut a text between the halves of an emoji."""
    return {
        name: value.replace("\x00", "").encode(errors="replace").decode() if isinstance(value, str) else value
        for name, value in given.items()
    }


def _output(agent: str, kind: str, given: dict[str, Any], context: str | None) -> dict[str, Any]:
    """What the agent reads on standard output: an object, even if it has nothing to say."""
    if agent == "cursor":
        going_on: dict[str, Any] = {"continue": True} if kind == "prompt" else {}
        return going_on | ({"additional_context": context} if context else {})
    if not context:
        return {}
    return {"hookSpecificOutput": {"hookEventName": given["hook_event_name"], "additionalContext": context}}


def _project_of(folder: str) -> str:
    """The repository that a folder is in, or else the folder."""
    place = folder
    while not os.path.exists(os.path.join(place, ".git")):
        if place == os.path.dirname(place):
            return folder
        place = os.path.dirname(place)
    return place


def _last_said(path: str | None) -> dict[str, str]:
    """The last prompt and answer in a transcript of Claude Code; older versions send no text with the event."""
    if not path or not os.path.exists(path):
        return {}
    with open(path, "rb") as file:
        file.seek(max(0, os.stat(path).st_size - TRANSCRIPT_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    said: dict[str, str] = {}
    for line in lines:
        entry = json.loads(line, object_hook=_storable) if line.startswith('{"') and line.endswith("}") else {}
        content = (entry.get("message") or {}).get("content")
        if isinstance(content, list):
            content = "\n".join(part["text"] for part in content if part.get("type") == "text")
        if content and entry.get("type") in ("user", "assistant") and not entry.get("isMeta"):
            if entry["type"] == "user":
                said.pop("assistant", None)
            said[entry["type"]] = content
    return said


def _forget_old(folder: str) -> None:
    """What is left of sessions that never ended."""
    for file in os.listdir(folder) if os.path.isdir(folder) else ():
        path = os.path.join(folder, file)
        if os.path.exists(path) and time.time() - os.stat(path).st_mtime > SESSION_SECONDS:
            os.unlink(path)


def _moment(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03}Z"


def _read(path: str) -> dict[str, Any]:
    """A file of ours; none, or one that a full disk cut off, holds nothing."""
    try:
        with open(path) as file:
            read = json.load(file)
    except (FileNotFoundError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def _write(path: str, value: dict[str, Any]) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    part = f"{path}.{os.getpid()}"
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(value, file)
    os.replace(part, path)


def _log(sentence: str, home: str = ".") -> None:
    path = os.path.join(home, LOG)
    if os.path.exists(path) and os.stat(path).st_size > LOG_BYTES:
        os.replace(path, f"{path}.old")
    line = f"{_moment(time.time())} {' '.join(sentence.split())}\n"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w") as file:
        file.write(line)


def _give_up(home: str, sentence: str) -> None:
    """Best effort: record the failure, and let the agent go on."""
    try:
        print("{}", flush=True)
        sys.stderr.write(f"recollect: {sentence}\n")
        _log(sentence, home)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
