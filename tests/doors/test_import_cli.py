"""`recollect import --from`, run as a user runs it."""

import json
import os
from pathlib import Path

import pytest

from recollect.doors.cli.main import cli
from recollect.flows.transfer.foreign.formats import FORMATS, MEM0, MEMORY_JSON
from recollect.settings import Settings
from tests.commands import recollect
from tests.foreign_exports import MAKERS

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


def test_an_export_is_counted_imported_and_told_of(settings: Settings, namespace: str, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    MAKERS["chatgpt"](path, 20_000)
    dry = recollect("import", "--from", "chatgpt", path, "--user", "mira", "--dry-run", "--json")
    assert dry.returncode == 0, dry.stderr
    counted = json.loads(dry.stdout)
    assert (counted["dry_run"], counted["known"].get("message", 0), counted["refused"]) == (True, 0, 0)
    reasons = {each["reason"]: each for each in counted["left_out"]}
    branch = reasons["messages on a branch that is not the current one"]
    assert branch["count"] > 0
    assert branch["examples"][0] == "conversations.json, conversation 1"

    done = recollect("import", "--from", "chatgpt", path, "--user", "mira")
    assert done.returncode == 0, done.stderr
    assert f"Namespace '{namespace}': {sum(counted['added'].values()):,} imported, 0 already present" in done.stdout
    imported, _, left_out = done.stdout.partition("Left out:")
    assert imported.count(" already present ") == 2  # messages and sessions, before what was left out
    assert "messages on a branch that is not the current one (conversations.json, conversation 1" in left_out
    again = json.loads(recollect("import", "--from", "chatgpt", path, "--user", "mira", "--json").stdout)
    assert (sum(again["added"].values()), again["known"]) == (0, counted["added"])
    changes = [json.loads(line) for line in recollect("watch", "--once", "--json").stdout.splitlines()]
    assert {(change["event"], change["door"]) for change in changes} == {("import", "cli")}


def test_what_cannot_be_imported_so_is_refused_in_a_sentence(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    MAKERS["claude"](path, 2_000)
    note = tmp_path / "note.md"
    note.write_text("A note.")
    for arguments, told in [
        ((path,), "Use --from claude."),
        (("--from", "chatgpt", path), "Use --from claude."),
        (("--from", "mem0", path), "Use --from claude."),
        (("--from", "letta", tmp_path), "Use --from claude."),
        (("--from", "claude", "-"), "not standard input"),
        (("--from", "mem0", "--dry-run", note), "--dry-run needs --from"),
        (("--user", "mira", note), "--user needs --from"),
    ]:
        refused = recollect("import", *arguments)
        assert (refused.returncode, refused.stdout) == (2, ""), arguments
        assert told in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_a_broken_file_ends_with_what_was_imported_and_where_it_is_broken(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    MAKERS["claude"](path, 60_000)
    os.truncate(path, 50_000)
    broken = recollect("import", "--from", "claude", path)
    assert broken.returncode == 1
    assert "conversations.json: the file is not JSON at line 1, column" in broken.stderr
    assert "1 rejected" in broken.stdout
    assert "session" in broken.stdout


def test_the_help_explains_every_format(pooling: str) -> None:
    command = cli.commands["import"]
    (option,) = [parameter for parameter in command.params if parameter.name == "origin"]
    formats = [*FORMATS, MEM0, MEMORY_JSON]
    assert list(getattr(option.type, "choices", [])) == formats
    explained = [line.split()[0] for line in (command.help or "").split("\b")[1].splitlines() if line.strip()]
    assert explained == formats
