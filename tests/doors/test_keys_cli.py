"""`recollect keys`, run as a user runs it."""

import os
import re
import subprocess
from pathlib import Path

import httpx
import pytest

from recollect.engine import Engine
from recollect.origin import Limits, acting
from recollect.settings import Settings
from recollect.storage.embedded import Lease
from recollect.tasks import in_thread
from tests.commands import recollect
from tests.console_story import connect
from tests.doors.test_serve import serving
from tests.storage.databases import empty_database, url

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return recollect(*arguments, env=os.environ | environment)


async def test_a_key_is_alone_on_standard_output_and_shown_only_once(engine: Engine, namespace: str) -> None:
    created = await in_thread(run, "keys", "create", "--label", "a laptop")
    assert created.returncode == 0, created.stderr
    (secret,) = created.stdout.splitlines()
    assert re.fullmatch(r"rk_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", secret)
    assert "Authorization: Bearer" in created.stderr
    credential = await engine.access.credential(secret)
    assert credential is not None
    assert credential.namespace == namespace
    assert created.stderr.startswith(f"Key {credential.key_id} of namespace {namespace}, role admin.\n")
    assert "From now on, HTTP requests to this namespace need a key." in created.stderr

    listed = await in_thread(run, "keys", "list")
    assert listed.returncode == 0
    assert listed.stdout.startswith(f"Keys of namespace {namespace}:\n{credential.key_id}  ")
    assert "valid" in listed.stdout
    assert "a laptop" in listed.stdout
    assert secret.rpartition("_")[2] not in listed.stdout + listed.stderr


async def test_a_key_may_read_another_namespace_until_that_is_taken_back(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace, "a laptop")
    granted = await in_thread(run, "keys", "grant", key.id, "--read", "team", "--expires", "30d")
    assert granted.returncode == 0, granted.stderr
    assert "Namespace team has nothing stored yet." in granted.stderr
    assert re.fullmatch(
        rf"Key {key.id} of namespace {namespace} may read namespace team until [-0-9]+ [:0-9]+ UTC\.\n", granted.stdout
    )
    assert re.search(r"\(also reads team until [-0-9]+ [:0-9]+ UTC\)", (await in_thread(run, "keys", "list")).stdout)
    readers = (await in_thread(run, "keys", "list", "--namespace", "team")).stdout
    assert f"Namespace team is also read by key {key.id} (a laptop) of namespace {namespace} until" in readers
    ended = await in_thread(run, "keys", "ungrant", key.id, "--read", "team")
    assert ended.stdout == f"Key {key.id} of namespace {namespace} may no longer read namespace team.\n"
    assert "team" not in (await in_thread(run, "keys", "list")).stdout
    again = await in_thread(run, "keys", "ungrant", key.id, "--read", "team")
    assert again.returncode == 1
    assert "no grant to read" in again.stderr


async def test_connected_clients_are_listed_and_can_be_disconnected(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace, "a laptop")
    await connect(engine, namespace, key.id, "Claude\x1b[2J")
    listed = await in_thread(run, "keys", "list")
    assert len(listed.stdout.splitlines()) == 3
    line = f"Connection 1f2e3d4c with key {key.id}: Claude"
    assert re.search(rf"{line}.* \(claude\.ai\), write, since [-0-9]+ [:0-9]+\n", listed.stdout), listed.stdout
    assert "\x1b" not in listed.stdout
    ended = await in_thread(run, "keys", "disconnect", "1f2e3d4c")
    assert ended.stdout == "Disconnected 1f2e3d4c.\n"
    assert "Connection" not in (await in_thread(run, "keys", "list")).stdout
    again = await in_thread(run, "keys", "disconnect", "1f2e3d4c")
    assert (again.returncode, "has no connection 1f2e3d4c" in again.stderr) == (1, True)


async def test_a_key_has_a_role_and_an_end_and_can_be_rotated(engine: Engine, namespace: str) -> None:
    created = await in_thread(run, "keys", "create", "--label", "a laptop", "--role", "read", "--expires", "30d")
    assert created.returncode == 0, created.stderr
    assert "It expires on " in created.stderr
    old = await engine.access.credential(created.stdout.strip())
    assert old is not None
    rotated = await in_thread(run, "keys", "rotate", old.key_id, "--overlap", "12h")
    assert rotated.returncode == 0, rotated.stderr
    assert f"The old key {old.key_id} expires on " in rotated.stderr
    new = await engine.access.credential(rotated.stdout.strip())
    assert new is not None
    assert (new.role, new.label) == ("read", "a laptop")
    assert rotated.stderr.startswith(f"Key {new.key_id} of namespace {namespace} replaces key {old.key_id}.\n")
    listed = (await in_thread(run, "keys", "list")).stdout.splitlines()[1:]
    assert [line.split()[0] for line in listed] == [old.key_id, new.key_id]
    assert all(re.search(r"valid +read +a laptop  \(.*expires \d{4}-\d\d-\d\d \d\d:\d\d\)$", line) for line in listed)
    limited = await in_thread(run, "keys", "create", "--user", "anna", "--agent", "coder")
    found = await engine.access.credential(limited.stdout.strip())
    assert found is not None
    assert found.limits == Limits("anna", "coder")
    new_id = (await engine.access.rotate(namespace, found.key_id, 0)).id
    assert f"{new_id}  " in (shown := (await in_thread(run, "keys", "list")).stdout.splitlines()[-1])
    assert shown.endswith("(only user anna and agent coder)")
    dated = await in_thread(run, "keys", "create", "--role", "write", "--expires", "2999-01-31")
    assert "No key of this namespace may delete for good" in dated.stderr
    assert "From now on" not in dated.stderr
    assert "It expires on 2999-01-31 at 00:00 UTC." in dated.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        ("--expires", "soon"),
        ("--expires", "2001-01-01"),
        ("--expires", "9999999999d"),
        ("--role", "none"),
        ("--user", "anonymous"),
    ],
)
def test_terms_that_no_key_can_have_are_a_sentence(settings: Settings, wrong: tuple[str, str]) -> None:
    result = run("keys", "create", *wrong)
    assert result.returncode == 2
    assert (result.stdout, "Traceback" in result.stderr) == ("", False)


def test_a_time_that_cannot_be_read_is_told_the_forms(settings: Settings) -> None:
    assert "a time from now looks like 12h, 30d or 2w" in run("keys", "create", "--expires", "1m").stderr


async def test_a_rotated_key_can_end_at_once(engine: Engine, namespace: str) -> None:
    old = await engine.access.create_key(namespace)
    rotated = await in_thread(run, "keys", "rotate", old.id, "--overlap", "0")
    assert rotated.returncode == 0, rotated.stderr
    assert f"The old key {old.id} no longer works." in rotated.stderr
    assert await engine.access.credential(old.secret) is None
    assert await engine.access.credential(rotated.stdout.strip()) is not None
    refused = await in_thread(run, "keys", "rotate", old.id, "--overlap", "30m")
    assert "--overlap must be a number of seconds, or a number of hours, days or weeks" in refused.stderr


async def test_the_last_key_is_revoked_only_if_that_is_meant(engine: Engine, namespace: str) -> None:
    first, last = [await engine.access.create_key(namespace) for _ in range(2)]
    assert (await in_thread(run, "keys", "revoke", first.id)).returncode == 0
    refused = await in_thread(run, "keys", "revoke", last.id)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"{last.id} is the last key of namespace {namespace}." in refused.stderr
    assert "Use --yes to revoke the last key." in refused.stderr
    assert await engine.access.credential(last.secret) is not None
    revoked = await in_thread(run, "keys", "revoke", last.id, "--yes")
    assert "That was the last key" in revoked.stderr
    again = await in_thread(run, "keys", "revoke", last.id)
    assert "has no active key" in again.stderr
    assert "is the last key" not in again.stderr


async def test_a_revoked_key_opens_nothing_and_stays_in_the_list(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace)
    revoked = await in_thread(run, "keys", "revoke", key.id, "--yes")
    assert revoked.returncode == 0
    assert revoked.stdout == f"Revoked {key.id}.\n"
    assert await engine.access.credential(key.secret) is None
    assert "revoked" in (await in_thread(run, "keys", "list")).stdout
    again = await in_thread(run, "keys", "revoke", key.id)
    assert again.returncode == 1
    assert "has no active key" in again.stderr


def test_an_unknown_key_cannot_be_revoked(settings: Settings) -> None:
    result = run("keys", "revoke", "ffffffff")
    assert result.returncode == 1
    assert "has no active key ffffffff" in result.stderr
    assert "recollect keys list --namespace" in result.stderr
    assert "Traceback" not in result.stderr


async def test_the_namespace_option_says_whose_keys_are_meant(engine: Engine, namespace: str) -> None:
    other = f"{namespace}-other"
    secret = (await in_thread(run, "keys", "create", "--namespace", other)).stdout.strip()
    credential = await engine.access.credential(secret)
    assert credential is not None
    assert credential.namespace == other
    own = await in_thread(run, "keys", "list")
    assert own.stdout == ""
    assert f"Namespace {namespace} has no keys." in own.stderr
    assert f"{other} (1)" in own.stderr or " and more. " in own.stderr  # of a database with many namespaces
    assert credential.key_id in (await in_thread(run, "keys", "list", "--namespace", other)).stdout
    assert (await in_thread(run, "keys", "revoke", credential.key_id)).returncode == 1
    assert (await in_thread(run, "keys", "revoke", credential.key_id, "--yes", "--namespace", other)).returncode == 0


@pytest.mark.parametrize("name", ["a b", "x" * 500, "a'b"])
def test_a_namespace_that_cannot_be_is_a_sentence(settings: Settings, name: str) -> None:
    result = run("keys", "create", "--namespace", name)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "namespace" in result.stderr
    assert "Traceback" not in result.stderr


async def test_beyond_loopback_a_server_wants_a_key_first(server: Lease, settings: Settings, tmp_path: Path) -> None:
    """In a database of its own: a key of any namespace lets a server start."""
    async with empty_database(server) as database:
        place = {"RECOLLECT_DATABASE_URL": url(server.connection, database)}
        refused = await in_thread(run, "serve", "--host", "0.0.0.0", "--port", "0", **place)
        assert refused.returncode == 1
        assert "does not bind to 0.0.0.0 without a key" in refused.stderr
        assert "`recollect keys create`" in refused.stderr
        key = (await in_thread(run, "keys", "create", **place)).stdout.strip()
        with serving("--host", "0.0.0.0", is_installed=False, **place) as (address, _):
            there = f"http://127.0.0.1:{address.rsplit(':', 1)[1]}"
            assert httpx.get(f"{there}/health", timeout=60).status_code == 200
            assert httpx.get(f"{there}/ready", timeout=60).status_code == 401
            answer = httpx.get(
                f"{there}/ready", headers={"Authorization": f"Bearer {key}", "Host": "memory.example.org"}, timeout=60
            )
            assert answer.status_code == 200


async def test_a_key_has_a_quota_which_is_listed_with_its_use_and_changed(engine: Engine, namespace: str) -> None:
    numbers = ("--requests-per-minute", "60", "--rows-per-day", "1000", "--bytes-per-day", "5000000")
    created = await in_thread(run, "keys", "create", *numbers)
    assert created.returncode == 0, created.stderr
    credential = await engine.access.credential(created.stdout.strip())
    assert credential is not None
    with acting("rest", "app", spender=await engine.quotas.admit(credential)):
        await engine.remember.text(namespace, "Twelve bytes")
    listed = (await in_thread(run, "keys", "list")).stdout
    assert re.search(r"\d of 60 requests this minute, 1 of 1,000 rows today, 12 of 5,000,000 bytes today\)", listed)
    changed = await in_thread(
        run, "keys", "quota", credential.key_id, "--rows-per-day", "5", "--bytes-per-day", "default"
    )
    assert changed.returncode == 0, changed.stderr
    assert changed.stdout.splitlines()[1:] == ["1 of 5 rows today"]
    lifted = await in_thread(
        run, "keys", "quota", credential.key_id, "--rows-per-day", "unlimited", "--requests-per-minute", "default"
    )
    assert lifted.stdout == "This key has no quota.\n"
    for number in ("0", "-1", "many", "9" * 30):
        refused = await in_thread(run, "keys", "create", "--rows-per-day", number)
        assert refused.returncode == 2
        assert "--rows-per-day must be a whole number of at least 1" in refused.stderr
        assert "`unlimited` for no limit" in refused.stderr
