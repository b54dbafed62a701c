"""`recollect keys`, run as a user runs it."""

import os
import re
import subprocess
from pathlib import Path

import httpx
import pytest

from recollect.engine import Engine
from recollect.settings import Settings
from recollect.storage.embedded import Lease
from recollect.tasks import in_thread
from tests.commands import recollect
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

    listed = await in_thread(run, "keys", "list")
    assert listed.returncode == 0
    assert listed.stdout.startswith(credential.key_id)
    assert f"Keys of namespace {namespace}:" in listed.stderr
    assert "in use" in listed.stdout
    assert "a laptop" in listed.stdout
    assert secret.rpartition("_")[2] not in listed.stdout + listed.stderr


async def test_a_revoked_key_opens_nothing_and_stays_in_the_list(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace)
    revoked = await in_thread(run, "keys", "revoke", key.id)
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
    assert "recollect keys list" in result.stderr
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
    assert (await in_thread(run, "keys", "revoke", credential.key_id, "--namespace", other)).returncode == 0


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
