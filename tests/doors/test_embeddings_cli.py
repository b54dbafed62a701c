"""`recollect embeddings` and what `doctor` says of models, run as a user runs them."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.engine import Engine
from recollect.settings import Settings
from tests.commands import RECOLLECT, recollect
from tests.flows.talk import say_all
from tests.inference.onnx_files import minilm_folder
from tests.llm_servers import Failure, ProviderServer, provider_server

OPENAI = "openai:text-embedding-3-small"
pytestmark = [
    pytest.mark.parametrize("pooling", ["session"], indirect=True),
    pytest.mark.unindexed(
        "its model is a provider that only it knows: nobody else can index for it, nor it for others"
    ),
]


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with provider_server() as provider:
        yield provider


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return recollect(*arguments, env=os.environ | environment)


async def test_a_switch_is_told_and_the_next_command_searches_by_the_new_model(
    engine: Engine, namespace: str, provider: ProviderServer
) -> None:
    await say_all(engine, namespace, "ann", "The ferry leaves at nine.", "We sold the boat.")
    await engine.indexer.flush(namespace)
    command = [str(RECOLLECT), "embeddings", "switch", OPENAI]
    env = os.environ | provider.environment()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as switching:
        assert switching.stdout is not None
        assert next((line for line in switching.stdout if "You can stop here" in line), None) is not None
        switching.send_signal(signal.SIGINT)
        switching.communicate(timeout=60)
    assert switching.returncode == 130
    status = run("embeddings", "status", **provider.environment()).stdout
    assert f": {OPENAI}." in status
    assert "left over" in status
    found = run("recall", "When does the ferry leave?", **provider.environment()).stdout
    assert "The ferry leaves at nine." in found
    assert "only keyword search" not in found
    assert "only keyword search was used" in run("recall", "When does the ferry leave?").stdout
    assert "set RECOLLECT_OPENAI_API_KEY" in run("doctor").stdout


def test_a_model_in_use_is_left_as_it_is(settings: Settings, namespace: str) -> None:
    result = run("embeddings", "switch", "local")
    assert result.returncode == 0, result.stderr
    assert f"Namespace '{namespace}' already uses all-MiniLM-L6-v2-onnx-int8." in result.stdout


def test_another_model_and_a_missing_key_are_one_sentence(settings: Settings) -> None:
    unknown = run("embeddings", "switch", "gpt-4o")
    assert unknown.returncode == 2
    assert "MODEL must be local, onnx:FOLDER or openai:MODEL[@DIMENSIONS], not 'gpt-4o'" in unknown.stderr
    keyless = run("embeddings", "switch", OPENAI)
    assert keyless.returncode == 1
    assert "API key not configured: set RECOLLECT_OPENAI_API_KEY" in keyless.stderr


async def test_what_cannot_be_embedded_now_is_stored_all_the_same(
    engine: Engine, namespace: str, provider: ProviderServer
) -> None:
    provider.answer = lambda asked: Failure(400, message="Not today.")
    stored = run("remember", "Otters hold hands.", RECOLLECT_EMBEDDING_MODEL=OPENAI, **provider.environment())
    assert stored.returncode == 0, stored.stderr
    assert "only keyword search can find it for now" in stored.stderr
    assert "Otters hold hands." in run("recall", "otters").stdout


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({}, "RECOLLECT_LLM is not set"),
        ({"RECOLLECT_LLM": "openai:gpt-4o-mini", "OPENAI_API_KEY": "sk-x"}, "openai:gpt-4o-mini, at most 1,000,000"),
        ({"RECOLLECT_LLM": "anthropic:claude-haiku-4-5"}, "set RECOLLECT_ANTHROPIC_API_KEY"),
        ({"RECOLLECT_LLM": "gpt-4o"}, "RECOLLECT_LLM: write openai:MODEL or anthropic:MODEL"),
    ],
    ids=["none", "one", "without a key", "not a name"],
)
def test_doctor_says_what_writes(settings: Settings, environment: dict[str, str], sentence: str) -> None:
    result = run("doctor", **environment)
    assert sentence in result.stdout
    assert "sk-x" not in result.stdout


async def test_doctor_names_the_model_its_speed_and_what_a_switch_would_take(
    engine: Engine, namespace: str, tmp_path: Path, provider: ProviderServer
) -> None:
    await say_all(engine, namespace, "ann", "The ferry leaves at nine.", "We sold the boat.")
    await engine.indexer.flush(namespace)
    same = run("doctor").stdout
    assert re.search(
        r"ok       model      all-MiniLM-L6-v2-onnx-int8, 384 dimensions, about \d+ texts per second", same
    )
    assert "embedding its 2 passage(s) again would take less than a minute" in same
    folder = minilm_folder(tmp_path / "mine")
    other = run("doctor", RECOLLECT_EMBEDDING_MODEL=f"onnx:{folder}").stdout
    assert re.search(r"switching its 2 passage\(s\) to onnx:mine-\w{12} would take less than a minute", other)
    provider.dimensions = 768
    served = run("doctor", RECOLLECT_EMBEDDING_MODEL="openai:nomic-embed-text", **provider.environment()).stdout
    assert "openai:nomic-embed-text, 768 dimensions, about" in served
    provider.answer = lambda asked: Failure(404, message="model not found")
    lost = run("doctor", RECOLLECT_EMBEDDING_MODEL="openai:lost", **provider.environment())
    assert lost.returncode == 1
    assert "MISSING  model      OpenAI does not know the model or URL (404): model not found" in lost.stdout


async def test_doctor_notices_another_model_under_the_name_of_the_stored_vectors(
    engine: Engine, namespace: str, provider: ProviderServer
) -> None:
    environment = {"RECOLLECT_EMBEDDING_MODEL": "openai:changing"} | provider.environment()
    provider.dimensions = 768
    assert run("remember", "Otters hold hands.", **environment).returncode == 0
    assert run("doctor", **environment).returncode == 0
    provider.dimensions = 512
    changed = run("doctor", **environment)
    assert changed.returncode == 1
    assert (
        "openai:changing has 512 dimensions, and the stored vectors have 768, so it is another model" in changed.stdout
    )


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("minilm", "RECOLLECT_EMBEDDING_MODEL: write local, onnx:FOLDER or openai:MODEL[@DIMENSIONS]"),
        ("openai:m@9999", "RECOLLECT_EMBEDDING_MODEL: at most 3,072 dimensions can be stored"),
        ("onnx:/nowhere", "/nowhere is not a folder: write onnx: followed by the path of the model's folder"),
    ],
)
def test_a_setting_that_names_no_model_is_one_sentence(settings: Settings, value: str, sentence: str) -> None:
    result = run("embeddings", "status", RECOLLECT_EMBEDDING_MODEL=value)
    assert result.returncode == 1
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
