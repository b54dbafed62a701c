"""`recollect forget`, run as a user runs it: it counts, asks, forgets, and gives a receipt."""

import json
import os
import pty
import signal
import subprocess

import pytest

from recollect.engine import Engine
from recollect.flows.gateway import Owner
from recollect.settings import Settings
from recollect.tasks import in_thread
from tests.commands import RECOLLECT, recollect
from tests.flows.talk import say_all

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return recollect("forget", *arguments)


def answered(answer: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The same on a terminal, where somebody answers."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer.encode())
        return subprocess.run(
            [RECOLLECT, "forget", *arguments], stdin=theirs, capture_output=True, text=True, timeout=60
        )
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.fixture
async def talks(engine: Engine, namespace: str) -> Engine:
    """Two people who said something, and what one of them keeps."""
    await say_all(engine, namespace, "ann", "Owls hoot.", "Owls see.", session="one")
    await say_all(engine, namespace, "ann", "Owls fly.", session="two")
    await say_all(engine, namespace, "bob", "Cats purr.", session="three")
    await engine.gateway.put_resource(Owner(namespace, "ann"), "file:owl", "All about owls.")
    return engine


async def said(engine: Engine, namespace: str) -> list[str]:
    return sorted(message.content for message in await engine.cognition.raw(namespace))


async def test_a_dry_run_counts_and_nothing_goes(talks: Engine, namespace: str) -> None:
    result = await in_thread(run, "--user", "ann", "--dry-run")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "user:ann: would be forgotten",
        "           3  messages",
        "           4  passages",
        "           1  resources",
        "           2  sessions",
    ]
    assert await said(talks, namespace) == ["Cats purr.", "Owls fly.", "Owls hoot.", "Owls see."]


async def test_without_a_terminal_it_wants_to_be_told_yes(talks: Engine, namespace: str) -> None:
    refused = await in_thread(run, "--user", "ann")
    assert refused.returncode == 2
    assert "3  messages" in refused.stderr
    assert "Nothing was deleted: no terminal to confirm on. Use --yes" in refused.stderr
    assert len(await said(talks, namespace)) == 4
    done = await in_thread(run, "--user", "ann", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "what": "user:ann",
        "outcome": "forgotten",
        "rows": {"messages": 3, "passages": 4, "resources": 1, "sessions": 2},
        "insights_left": [],
        "twins_left": [],
    }
    assert await said(talks, namespace) == ["Cats purr."]
    again = await in_thread(run, "--user", "ann", "--yes")
    assert again.returncode == 1
    assert "No data for user ann" in again.stderr


async def test_on_a_terminal_it_asks(talks: Engine, namespace: str) -> None:
    refused = await in_thread(answered, "n\n", "--session", "one")
    assert refused.returncode == 1
    assert refused.stderr.endswith("Nothing was deleted.\n")
    assert len(await said(talks, namespace)) == 4
    done = await in_thread(answered, "y\n", "--session", "one")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "session:one: forgotten"
    assert await said(talks, namespace) == ["Cats purr.", "Owls fly."]


def test_ctrl_c_ends_the_question(settings: Settings) -> None:
    stored = recollect("remember", "Owls hoot.").stdout.strip()
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [RECOLLECT, "forget", stored], stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        asked = ""
        while "[y/N]" not in asked:
            asked += process.stderr.read(1)
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(timeout=60) == 130
        finally:
            process.kill()
    os.close(ours)
    os.close(theirs)
    assert "Owls hoot." in recollect("recall", "owls").stdout


async def test_an_item_goes_by_the_id_that_recall_shows(talks: Engine, namespace: str) -> None:
    (owl, *_) = (await talks.recall.recall(namespace, "owls hoot")).memories
    for name in (owl.id, f"{owl.kind}:{owl.id}"):
        assert f"message:{owl.id}: would be forgotten" in (await in_thread(run, name, "--dry-run")).stdout
    assert (await in_thread(run, owl.id, "--yes")).returncode == 0
    assert "Owls hoot." not in await said(talks, namespace)


async def test_an_insight_that_others_have_a_part_in_is_named(talks: Engine, namespace: str) -> None:
    numbers = [message.seq for message in await talks.cognition.raw(namespace)]
    insight = (await talks.cognition.compress(namespace, "Animals.", numbers)).insight.id
    result = await in_thread(run, "--user", "ann", "--yes")
    assert f"Kept, because they are also based on messages that remain: insight:{insight}" in result.stdout


async def test_a_namespace_must_be_named_and_goes_whole(talks: Engine, namespace: str) -> None:
    assert (await in_thread(run, "--whole-namespace")).returncode == 2
    other = f"{namespace}-other"
    await say_all(talks, other, "ann", "Mice squeak.")
    done = await in_thread(run, "--whole-namespace", other, "--yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"namespace:{other}: forgotten\n")
    assert (await said(talks, other), len(await said(talks, namespace))) == ([], 4)


@pytest.mark.parametrize("arguments", [(), ("some-id", "--user", "ann"), ("--user", "ann", "--session", "one")])
def test_exactly_one_thing_is_to_be_forgotten(settings: Settings, arguments: tuple[str, ...]) -> None:
    result = run(*arguments, "--yes")
    assert result.returncode == 2
    assert "Specify exactly one of: an ID, --session, --user or --whole-namespace." in result.stderr


async def test_twins_are_named_and_go_when_asked(engine: Engine, namespace: str) -> None:
    first, second = [(await engine.remember.text(namespace, text)).id for text in ("Owls hoot.", "Owls hoot!")]
    counted = await in_thread(run, f"document:{first}", "--dry-run")
    assert counted.returncode == 0, counted.stderr
    assert counted.stdout.splitlines()[-1] == f"Duplicates kept (use --twins to delete them too): document:{second}"
    gone = await in_thread(run, f"document:{first}", "--twins", "--yes", "--json")
    receipt = json.loads(gone.stdout)
    assert (receipt["rows"], receipt["twins_left"]) == ({"documents": 2, "passages": 2}, [])
    assert (await engine.recall.recall(namespace, "owls")).memories == []
