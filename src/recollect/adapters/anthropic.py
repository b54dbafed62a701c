"""The memory tool of the Anthropic SDK over Recollect: Claude's files are kept, versioned and recalled by all."""

import posixpath
import unicodedata
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from recollect.adapters.connection import Connection
from recollect.errors import Conflict, Invalid, RecollectError
from recollect.settings import Settings

ROOT = "/memories"
STORES = "/v1/memory_stores"

# How often an edit is made anew because somebody else was faster.
EDIT_ATTEMPTS = 10

# As the SDK's own tool numbers lines and shortens listings.
_NUMBER_WIDTH = 6
_LEVELS = 2
_CONTEXT_LINES = 2


class Call(NamedTuple):
    """One request to the server."""

    method: str
    path: str
    ids: tuple[str, ...] = ()
    json: Any = None
    params: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _File:
    id: str
    path: str
    size: int
    sha256: str
    content: str


Steps = Generator[Call, Any, str]
"""A command: asks for one request after the other, and ends with what to tell the model."""


class _Commands:
    """What each command does, once for both tools; directories are there as long as files are in them."""

    def __init__(self, store: str, user_id: str | None) -> None:
        self._name = store
        self._user_id = user_id
        self._store_id: str | None = None

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> Steps:
        path = _stored(command.path)
        if path != "/" and (file := (yield from self._file(path))) is not None:
            return _numbered(command.path, file.content, command.view_range)
        files = yield from self._below(path)
        if not files and path != "/":
            raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
        return _listed(command.path, path, files)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> Steps:
        path = _stored(command.path)
        taken = ToolError(f"File {command.path} already exists")
        if path == "/":
            raise taken
        store = yield from self._store()
        try:
            yield Call("POST", STORES + "/{}/memories", (store,), {"path": path, "content": command.file_text})
        except Conflict as problem:
            if (yield from self._is_there(path)):
                raise taken from problem
            raise
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> Steps:
        old, new = yield from self._edit(command.path, lambda content: _replaced(content, command))
        changed = old.count("\n", 0, old.find(command.old_str))
        return "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n" + (
            _with_numbers(new.split("\n"), max(0, changed - _CONTEXT_LINES), changed + _CONTEXT_LINES + 1)
        )

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> Steps:
        yield from self._edit(command.path, lambda content: _inserted(content, command))
        return f"The file {command.path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> Steps:
        path = _stored(command.path)
        if path == "/":
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        if not (yield from self._delete(path)):
            raise ToolError(f"The path {command.path} does not exist")
        return f"Successfully deleted {command.path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> Steps:
        old, new = _stored(command.old_path), _stored(command.new_path)
        if old == "/":
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        if (yield from self._is_there(new)):
            raise ToolError(f"The destination {command.new_path} already exists")
        if new.startswith(f"{old}/"):
            raise ToolError(f"Cannot rename {command.old_path} to a path below itself")
        store = yield from self._store()
        moved = yield from self._all(old)
        if not moved:
            raise ToolError(f"The path {command.old_path} does not exist")
        for file in moved:
            body = {"path": new + file.path.removeprefix(old)}
            yield Call("POST", STORES + "/{}/memories/{}", (store, file.id), body)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear(self) -> Steps:
        yield from self._delete("/")
        return "All memory cleared"

    def _store(self) -> Generator[Call, Any, str]:
        """The store, which is made if there is none."""
        if self._store_id is None:
            metadata = {} if self._user_id is None else {"user_id": self._user_id}
            body = {"name": self._name, "metadata": metadata}
            self._store_id = str((yield Call("POST", STORES, json=body, params={"if_absent": True}))["id"])
        return self._store_id

    def _edit(self, shown: str, edited: Callable[[str], str]) -> Generator[Call, Any, tuple[str, str]]:
        """The old and the new content of a file; an edit begins anew if somebody else has changed it meanwhile."""
        path = _stored(shown)
        for attempt in range(EDIT_ATTEMPTS):
            file = None if path == "/" else (yield from self._file(path))
            if file is None:
                is_folder = yield from self._is_there(path)
                is_not = "is not a file." if is_folder else "does not exist. Please provide a valid path."
                raise ToolError(f"The path {shown} {is_not}")
            content = edited(file.content)
            seen = {"type": "content_sha256", "content_sha256": file.sha256}
            store = yield from self._store()
            try:
                yield Call(
                    "POST", STORES + "/{}/memories/{}", (store, file.id), {"content": content, "precondition": seen}
                )
            except Conflict:
                if attempt == EDIT_ATTEMPTS - 1:
                    raise
            else:
                return file.content, content
        raise AssertionError("the last attempt succeeds or raises")

    def _delete(self, path: str) -> Generator[Call, Any, bool]:
        """Whether there was anything at a path or below it."""
        store = yield from self._store()
        files = yield from self._all(path)
        for file in files:
            yield Call("DELETE", STORES + "/{}/memories/{}", (store, file.id))
        return bool(files)

    def _all(self, path: str) -> Generator[Call, Any, list[_File]]:
        """The file at a path, or all that are below it."""
        file = None if path == "/" else (yield from self._file(path))
        return [file] if file is not None else (yield from self._below(path))

    def _is_there(self, path: str) -> Generator[Call, Any, bool]:
        return path == "/" or bool((yield from self._all(path)))

    def _file(self, path: str) -> Generator[Call, Any, _File | None]:
        store = yield from self._store()
        found = yield Call("GET", STORES + "/{}/memories", (store,), params={"path": path, "view": "full"})
        return _file_of(found["data"][0]) if found["data"] else None

    def _below(self, path: str) -> Generator[Call, Any, list[_File]]:
        """The files in a folder and in the folders in it, without their contents."""
        store = yield from self._store()
        files: list[_File] = []
        page: str | None = None
        while True:
            params = {"path_prefix": path.rstrip("/") + "/", "limit": 100, "page": page}
            found = yield Call("GET", STORES + "/{}/memories", (store,), params=params)
            files += map(_file_of, found["data"])
            page = found["next_page"]
            if page is None:
                return files


class RecollectMemoryTool(BetaAbstractMemoryTool):
    """Claude's memory tool over the server at `url`, or without a URL over an engine that this process opens.

    The files are in the memory store of this name, which is made if there is none. With a `user_id` it is that user's:
    what is in it is recalled for that user, and forgotten with the user. Tools of many users may share a `connection`.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        store: str = "memory",
        user_id: str | None = None,
        namespace: str | None = None,
        settings: Settings | None = None,
        connection: Connection | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self.connection = connection or Connection(url, key, namespace=namespace, settings=settings)
        self._commands = _Commands(store, user_id)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file with line numbers, or what is in a directory."""
        return self._run(self._commands.view(command))

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file; never in place of another."""
        return self._run(self._commands.create(command))

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that stands once in a file."""
        return self._run(self._commands.str_replace(command))

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines behind a line of a file."""
        return self._run(self._commands.insert(command))

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all that is in it."""
        return self._run(self._commands.delete(command))

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename or move a file or a directory."""
        return self._run(self._commands.rename(command))

    def clear_all_memory(self) -> str:
        """Delete every file."""
        return self._run(self._commands.clear())

    def close(self) -> None:
        """Let go of the server or the database; the next command opens it again."""
        self.connection.close()

    def _run(self, steps: Steps) -> str:
        step = _next(steps)
        while not isinstance(step, str):
            try:
                answer = self._ask(step)
            except RecollectError as problem:
                step = _next(steps, failure=problem)
            else:
                step = _next(steps, answer)
        return step

    def _ask(self, call: Call) -> Any:
        return self.connection.call(call.method, call.path, *call.ids, json=call.json, params=call.params)


class AsyncRecollectMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for `AsyncAnthropic`."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        store: str = "memory",
        user_id: str | None = None,
        namespace: str | None = None,
        settings: Settings | None = None,
        connection: Connection | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self.connection = connection or Connection(url, key, namespace=namespace, settings=settings)
        self._commands = _Commands(store, user_id)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file with line numbers, or what is in a directory."""
        return await self._run(self._commands.view(command))

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file; never in place of another."""
        return await self._run(self._commands.create(command))

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that stands once in a file."""
        return await self._run(self._commands.str_replace(command))

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines behind a line of a file."""
        return await self._run(self._commands.insert(command))

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all that is in it."""
        return await self._run(self._commands.delete(command))

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename or move a file or a directory."""
        return await self._run(self._commands.rename(command))

    async def clear_all_memory(self) -> str:
        """Delete every file."""
        return await self._run(self._commands.clear())

    def close(self) -> None:
        """Let go of the server or the database; the next command opens it again."""
        self.connection.close()

    async def _run(self, steps: Steps) -> str:
        step = _next(steps)
        while not isinstance(step, str):
            try:
                answer = await self._ask(step)
            except RecollectError as problem:
                step = _next(steps, failure=problem)
            else:
                step = _next(steps, answer)
        return step

    async def _ask(self, call: Call) -> Any:
        return await self.connection.call_async(call.method, call.path, *call.ids, json=call.json, params=call.params)


def _next(steps: Steps, answer: Any = None, failure: RecollectError | None = None) -> Call | str:
    """What a command asks for next, or what it says in the end; the model is told what it did wrong."""
    try:
        return steps.send(answer) if failure is None else steps.throw(failure)
    except StopIteration as end:
        return str(end.value)
    except (Conflict, Invalid) as problem:
        raise ToolError(str(problem)) from problem


def _stored(shown: str) -> str:
    """The path in the store of one that the model names; / for the directory of all memories."""
    if not shown.startswith(ROOT):
        raise ToolError(f"Path must start with {ROOT}, got: {shown}")
    full = posixpath.normpath(posixpath.join(ROOT, shown[len(ROOT) :].lstrip("/")))
    if full != ROOT and not full.startswith(f"{ROOT}/"):
        raise ToolError(f"Path {shown} would escape {ROOT} directory")
    return unicodedata.normalize("NFC", full[len(ROOT) :]) or "/"


def _file_of(memory: Mapping[str, Any]) -> _File:
    size, digest = memory["content_size_bytes"], memory["content_sha256"]
    return _File(memory["id"], memory["path"], size, digest, memory["content"] or "")


def _replaced(content: str, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
    count = content.count(command.old_str)
    if count == 0:
        raise ToolError(
            f"No replacement was performed, old_str `{command.old_str}` did not appear verbatim in {command.path}."
        )
    if count > 1:
        lines = ", ".join(str(line) for line in _lines_with(content, command.old_str))
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{command.old_str}` in lines: {lines}. "
            "Please ensure it is unique"
        )
    return content.replace(command.old_str, command.new_str)


def _lines_with(content: str, text: str) -> Generator[int]:
    """The number of the line in which each occurrence begins."""
    place = content.find(text)
    while place != -1:
        yield content.count("\n", 0, place) + 1
        place = content.find(text, place + 1)


def _inserted(content: str, command: BetaMemoryTool20250818InsertCommand) -> str:
    lines = content.removesuffix("\n").split("\n") if content else []
    if not 0 <= command.insert_line <= len(lines):
        raise ToolError(
            f"Invalid `insert_line` parameter: {command.insert_line}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
    return "\n".join(lines).removesuffix("\n") + "\n"


def _numbered(shown: str, content: str, view_range: list[int] | None) -> str:
    lines = content.split("\n")
    first, last = 0, len(lines)
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0]) - 1
        last = len(lines) if view_range[1] == -1 else view_range[1]
    return f"Here's the content of {shown} with line numbers:\n{_with_numbers(lines, first, last)}"


def _with_numbers(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number + 1:>{_NUMBER_WIDTH}}\t{lines[number]}" for number in range(len(lines))[first:last])


def _listed(shown: str, folder: str, files: list[_File]) -> str:
    """What is in a directory and in those in it; a directory has the size of what is in it."""
    sizes: dict[str, int] = {}
    for file in files:
        segments = file.path.removeprefix(folder).lstrip("/").split("/")
        for level in range(1, len(segments)):
            name = "/".join(segments[:level]) + "/"
            sizes[name] = sizes.get(name, 0) + file.size
        sizes["/".join(segments)] = file.size
    seen = [
        name
        for name in sorted(sizes, key=lambda name: name.rstrip("/").split("/"))
        if len(parts := name.rstrip("/").split("/")) <= _LEVELS and not any(part.startswith(".") for part in parts)
    ]
    head = f"Here're the files and directories up to {_LEVELS} levels deep in {shown}, excluding hidden items:"
    total = _size(sum(file.size for file in files))
    return "\n".join([head, f"{total}\t{shown}", *(f"{_size(sizes[name])}\t{shown}/{name}" for name in seen)])


def _size(count: int) -> str:
    if count == 0:
        return "0B"
    power = min((count.bit_length() - 1) // 10, 3)
    size = count / 1024**power
    return f"{int(size) if size == int(size) else f'{size:.1f}'}{'BKMG'[power]}"
