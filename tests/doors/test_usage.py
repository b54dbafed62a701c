"""`recollect usage`, run as a user runs it."""

import json
import os
import subprocess
from datetime import UTC, datetime

import pytest

from recollect.engine import Engine
from recollect.inference.requests.meter import Purpose, Tokens
from recollect.settings import Settings
from recollect.tasks import in_thread
from tests.commands import recollect

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return recollect(*arguments, env=os.environ | environment)


async def spend(engine: Engine, namespace: str, feature: str, used: Tokens) -> None:
    purpose = Purpose(namespace, feature, "openai:gpt-4o")
    await engine.spending.settle(await engine.spending.reserve(purpose, 2000), used)


def test_nothing_asked_is_nothing_shown(settings: Settings, namespace: str) -> None:
    shown = run("usage")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == (f"No LLM usage.\nNamespace '{namespace}' has used 0 of 1,000,000 tokens today (UTC).\n")


async def test_usage_is_shown_by_day_feature_and_model(engine: Engine, namespace: str) -> None:
    await spend(engine, namespace, "judges", Tokens(1200, 34))
    await spend(engine, namespace, "judges", Tokens(100, 0))
    await spend(engine, namespace, "summaries", Tokens(5, 5))
    await spend(engine, f"{namespace}-other", "judges", Tokens(999, 999))
    today = str(datetime.now(UTC).date())
    shown = (await in_thread(run, "usage", RECOLLECT_LLM_DAILY_TOKENS="5000")).stdout.splitlines()
    assert [line.split() for line in shown[:3]] == [
        ["day", "feature", "model", "requests", "input", "output"],
        [today, "judges", "openai:gpt-4o", "2", "1,300", "34"],
        [today, "summaries", "openai:gpt-4o", "1", "5", "5"],
    ]
    assert shown[3].endswith("has used 1,344 of 5,000 tokens today (UTC).")
    document = json.loads((await in_thread(run, "usage", "--json")).stdout)
    assert document["spent_today"] == 1344
    assert document["usage"][0] == {
        "day": today,
        "feature": "judges",
        "model": "openai:gpt-4o",
        "requests": 2,
        "input_tokens": 1300,
        "output_tokens": 34,
    }


def test_days_must_be_some(settings: Settings) -> None:
    result = run("usage", "--days", "0")
    assert result.returncode == 2
    assert "days must be between 1 and" in result.stderr
