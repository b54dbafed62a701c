"""The command line, run as a user runs it."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from recollect.doors.cli.operating import doctor
from recollect.settings import Settings
from tests.commands import recollect

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return recollect(*arguments, env=os.environ | environment)


def test_help_lists_every_command_with_a_sentence(settings: Settings) -> None:
    result = run("--help")
    assert result.returncode == 0
    for command in ("serve", "remember", "recall", "index", "bench", "doctor", "migrate"):
        assert command in result.stdout
        assert run(command, "--help").returncode == 0


def test_an_unknown_command_is_a_usage_error(settings: Settings) -> None:
    result = run("remind")
    assert result.returncode == 2
    assert "No such command" in result.stderr


@pytest.mark.embedded("doctor names its directory")
def test_doctor_says_that_everything_needed_is_there(settings: Settings) -> None:
    result = run("doctor")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "ok       database   embedded, in " in result.stdout
    assert "pgvector 0.8" in result.stdout
    assert "row-level security applies to this role" in result.stdout
    assert "Everything required is present." in result.stdout


def test_a_reader_who_has_read_enough_is_no_failure_worth_a_traceback(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    failures: list[object] = []

    def read_three_lines(line: str, **options: object) -> None:
        lines.append(line)
        if len(lines) > 3:
            raise BrokenPipeError

    monkeypatch.setattr(click, "echo", read_three_lines)
    with asyncio.Runner() as runner:
        runner.get_loop().set_exception_handler(lambda _, told: failures.append(told))
        with pytest.raises(BrokenPipeError):
            runner.run(doctor._print_findings())
    assert failures == []


@pytest.mark.embedded("it has an account")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another account")
def test_doctor_tells_root_whose_programs_can_reach_the_server(settings: Settings) -> None:
    result = run("doctor")
    assert re.search(r"note +account +you are root, so the server runs as nobody", result.stdout), result.stdout


def test_doctor_exits_with_one_and_says_what_is_missing_without_the_password(
    settings: Settings, tmp_path: Path
) -> None:
    result = run("doctor", RECOLLECT_DATABASE_URL=f"postgresql://me:hunter2@/db?host={tmp_path}")
    assert result.returncode == 1
    assert "MISSING" in result.stdout
    assert "cannot be reached" in result.stdout
    assert "hunter2" not in result.stdout + result.stderr


def test_doctor_names_a_setting_that_is_wrong(settings: Settings) -> None:
    result = run("doctor", RECOLLECT_DATABASE_CONNECTIONS="21")
    assert result.returncode == 1
    assert "RECOLLECT_DATABASE_CONNECTIONS" in result.stdout
    assert "20" in result.stdout


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NAMESPACE", "a b"),
        ("DATABASE_URL", "postgresql://me:hun#ter2@host/db"),
        ("REDIS_URL", "redis://h:abc"),
        ("EMBEDDING_MODEL_PATH", "/etc/passwd"),
        ("DATBASE_URL", "postgresql://h/db"),
    ],
)
def test_doctor_finds_settings_that_could_not_work(settings: Settings, name: str, value: str) -> None:
    result = run("doctor", **{f"RECOLLECT_{name}": value})
    assert result.returncode == 1, result.stdout
    assert f"RECOLLECT_{name}" in result.stdout
    assert "Traceback" not in result.stderr
    assert "hun" not in result.stdout + result.stderr


def test_an_empty_variable_counts_as_not_set(settings: Settings) -> None:
    result = run("doctor", RECOLLECT_DATABASE_URL="", RECOLLECT_REDIS_URL="")
    assert result.returncode == 0
    assert "ok       database   embedded, in " in result.stdout


def test_doctor_says_when_redis_is_set_but_silent(settings: Settings) -> None:
    result = run("doctor", RECOLLECT_REDIS_URL="redis://:hunter2@127.0.0.1:1/0")
    assert result.returncode == 1
    assert "RECOLLECT_REDIS_URL is set but nothing answers" in result.stdout
    assert "hunter2" not in result.stdout


def test_migrate_names_the_schema_version(settings: Settings) -> None:
    result = run("migrate")
    assert result.returncode == 0
    assert result.stdout.startswith("Schema version ")


def test_distribute_says_what_a_server_lacks(settings: Settings) -> None:
    result = run("migrate", "--distribute", RECOLLECT_DATABASE_URL="")
    assert result.returncode == 1
    assert "A superuser must run: CREATE EXTENSION citus;" in result.stderr


def test_a_failure_is_one_sentence_and_exit_code_one(settings: Settings, tmp_path: Path) -> None:
    result = run("migrate", RECOLLECT_DATABASE_URL=f"postgresql://me:hunter2@/db?host={tmp_path}")
    assert result.returncode == 1
    assert result.stderr.startswith("recollect: The database cannot be reached")
    assert "Traceback" not in result.stderr
    assert "hunter2" not in result.stderr


def test_the_module_can_be_run_too(settings: Settings) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "recollect", "--version"], capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith("recollect, version ")
