"""`recollect demo`, run as a newcomer runs it."""

import os
import re
import shlex
import signal
import subprocess

import pytest

from recollect.doors.cli.demo import play as demo
from recollect.doors.cli.demo import story as demo_story
from recollect.doors.cli.demo.screen import Screen
from recollect.flows.search.recollection import Recollection
from recollect.settings import Settings
from recollect.storage.embedded import Lease
from tests.commands import RECOLLECT, recollect
from tests.demo_picture import PICTURE, drawn
from tests.storage.databases import connect

COLUMNS = 72

pytestmark = [
    pytest.mark.parametrize("pooling", ["session"], indirect=True),
    pytest.mark.embedded("it looks into its tables"),
]


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return recollect(*arguments, env=os.environ | environment, timeout=120)


def namespace_of(output: str) -> str:
    (namespace,) = re.findall(r"Namespace (demo-[0-9a-f]{8})\.", output)
    return str(namespace)


async def tables_with_rows(server: Lease, namespace: str) -> set[str]:
    raw = await connect(server.connection)
    try:
        tables = await raw.fetch(
            "select table_name from information_schema.columns "
            "where table_schema = 'public' and column_name = 'namespace'"
        )
        await raw.execute("select set_config('recollect.namespace', $1, false)", namespace)
        return {
            row["table_name"]
            for row in tables
            if await raw.fetchval(f'select exists (select from "{row["table_name"]}" where namespace = $1)', namespace)
        }
    finally:
        await raw.close()


async def test_the_demo_answers_every_question_evicts_finds_a_path_and_leaves_nothing_behind(
    settings: Settings, server: Lease
) -> None:
    result = run("demo", COLUMNS=str(COLUMNS))
    assert (result.returncode, result.stderr) == (0, "")
    lines = [line.strip() for line in result.stdout.splitlines()]
    for question in demo_story.QUESTIONS:
        assert lines[lines.index(f"? {question.asked}") + 1] == f"✓ {question.answer}"
    assert result.stdout.count("no words in common") == len(demo_story.QUESTIONS)
    assert result.stdout.count(" semantic 0.") == len(demo_story.QUESTIONS)
    assert f"✓ Evicted: {demo_story.CROWDED_OUT.content}." in lines
    assert "✓ Mira ─KNOWS→ Nora ─SINGS_IN→ Harbour Choir ─MEETS_AT→ Old Theatre" in lines
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= COLUMNS
    assert await tables_with_rows(server, namespace_of(result.stdout)) == set()


async def test_what_is_kept_is_there_for_the_commands_that_the_demo_names(settings: Settings, server: Lease) -> None:
    kept = run("demo", "--keep")
    assert kept.returncode == 0, kept.stderr
    namespace = namespace_of(kept.stdout)
    assert {"messages", "graph_edges", "memories", "stale_items"} <= await tables_with_rows(server, namespace)
    look, forget = (line.split("recollect ", 1) for line in kept.stdout.splitlines()[-2:])
    assert look[0].strip() == f"RECOLLECT_NAMESPACE={namespace}"
    shown = run(*shlex.split(look[1]), RECOLLECT_NAMESPACE=namespace)
    assert demo_story.ALLERGY in shown.stdout, shown.stderr
    forgotten = run(*shlex.split(forget[1]), "--yes")
    assert forgotten.returncode == 0, forgotten.stderr
    assert await tables_with_rows(server, namespace) == set()


@pytest.mark.parametrize(("end", "code"), [("interrupted", 130), ("no longer read", 1)])
async def test_a_demo_that_ends_early_leaves_nothing_behind_either(
    settings: Settings, server: Lease, end: str, code: int
) -> None:
    with subprocess.Popen([RECOLLECT, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        written = ""
        while demo_story.MONDAY[0].answered not in written:
            written += process.stdout.readline()
        if end == "interrupted":
            process.send_signal(signal.SIGINT)
        else:
            process.stdout.close()
        assert process.stderr.read().strip() == ""
    assert process.returncode == code
    assert await tables_with_rows(server, namespace_of(written)) == set()


def test_a_question_that_finds_nothing_is_shown_as_a_failure(capsys: pytest.CaptureFixture[str], pooling: str) -> None:
    nothing = Recollection([], pending=0, answered=False, degraded="There is no model.")
    assert not demo._answered(Screen(), demo_story.QUESTIONS[0], nothing)
    assert "✗ Nothing was recalled." in capsys.readouterr().out


def test_the_picture_shows_this_story(pooling: str) -> None:
    picture = PICTURE.read_text()
    for text in (*(question.asked for question in demo_story.QUESTIONS), demo_story.ALLERGY, demo_story.INJURY):
        assert f">{text}<" in picture
    assert f">Evicted: {demo_story.CROWDED_OUT.content}.<" in picture


def test_a_picture_keeps_colours_columns_and_signs(pooling: str) -> None:
    picture = drawn("  \x1b[32m\x1b[1m✓\x1b[0m a < b\n")
    assert '<text x="38.8"' in picture
    assert 'fill="#8fd18a" font-weight="700">✓</text>' in picture
    assert "> a &lt; b</text>" in picture
