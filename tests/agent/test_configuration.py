"""The contract's configuration tests, one for each sentence, and what else can be wrong with a file."""

import copy
import dataclasses
import json
import logging
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from recollect.agent.config import (
    AgentConfig,
    ConfigurationError,
    GatewayConfig,
    MemoryConfig,
    ProviderConfig,
    load_config,
)
from recollect.agent.loader import EngineLoader
from recollect.agent.recall.gateway_service import open_gateway
from recollect.agent.secret import Secret
from tests.agent.configs import BASE_URL, GATEWAY, gateway, hybrid, written
from tests.agent.leaks import API_KEY, USER_KEY

SCOPES: list[Any] = [[], ["all"], "resources", {}, ["resources", "resources"], [[]]]
BLOCKS: list[Any] = [GATEWAY, {"topK": 0, "nonsense": 1}, "off", []]
CREDENTIALS = ("memory.gateway.baseUrl", "memory.gateway.userId", "memory.gateway.userKey")


def refused(folder: Path, document: object) -> str:
    """The sentence with which a configuration is refused. Nothing that could show the file hangs on it."""
    with pytest.raises(ConfigurationError) as caught:
        load_config(written(folder, document))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert USER_KEY not in str(caught.value)
    return str(caught.value)


def test_missing_memory_configuration_produces_implicit_hybrid_mode(tmp_path: Path) -> None:
    memory = load_config(written(tmp_path, {})).memory
    assert memory == MemoryConfig("hybrid", explicit=False, gateway=None, missing=CREDENTIALS)


def test_implicit_hybrid_without_credentials_leaves_gateway_disabled_with_one_sanitized_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = load_config(written(tmp_path, {"memory": {"gateway": {"userKey": USER_KEY}}})).memory
    assert open_gateway(memory) is None
    (warning,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert warning.levelno == logging.WARNING
    assert "memory.gateway.baseUrl, memory.gateway.userId." in warning.getMessage()
    assert USER_KEY not in warning.getMessage()


def test_explicit_curated_mode_does_not_require_or_initialize_gateway(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = load_config(written(tmp_path, {"memory": {"mode": "curated"}})).memory
    assert memory == MemoryConfig("curated", explicit=True)
    assert open_gateway(memory) is None
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_complete_explicit_hybrid_config_parses_camel_case_fields(tmp_path: Path) -> None:
    fields = {"appId": "shop", "projectId": "web", "scope": ["all_user_memory"], "topK": 3, "timeoutSeconds": 2.5}
    memory = load_config(written(tmp_path, hybrid(**fields))).memory
    assert (memory.mode, memory.explicit, memory.missing) == ("hybrid", True, ())
    assert memory.gateway == GatewayConfig(
        BASE_URL, "gateway_test_user", Secret(USER_KEY), "shop", "web", ("all_user_memory",), 3, 2.5
    )


async def test_complete_explicit_hybrid_config_initializes_the_gateway(tmp_path: Path) -> None:
    service = open_gateway(load_config(written(tmp_path, hybrid())).memory)
    assert service is not None
    await service.close()


@pytest.mark.parametrize("empty", [None, "", "  "])
@pytest.mark.parametrize("field", ["baseUrl", "userId", "userKey"])
def test_explicit_hybrid_with_missing_credentials_fails_loading(tmp_path: Path, field: str, empty: str | None) -> None:
    sentence = refused(tmp_path, hybrid(**{field: empty}))
    assert sentence == (
        f"memory.mode hybrid requires memory.gateway.{field}: set the missing fields, or set memory.mode to curated"
    )


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"memory": {"mode": "Hybrid"}}, "memory.mode must be one of: curated, hybrid"),
        ({"memory": {"mode": ["hybrid"]}}, "memory.mode must be one of: curated, hybrid"),
        *(
            (
                hybrid(scope=scope),
                "memory.gateway.scope must be a list of one or more of: current_chat, resources, "
                "all_user_memory, without duplicates",
            )
            for scope in SCOPES
        ),
        *(
            (hybrid(topK=top_k), "memory.gateway.topK must be a whole number between 1 and 100")
            for top_k in (0, 101, -1, 8.0, "8", True)
        ),
        *(
            (
                hybrid(timeoutSeconds=seconds),
                "memory.gateway.timeoutSeconds must be a positive number of seconds, at most 86400",
            )
            for seconds in (0, -1, "10", True, 1e300, 10**400)
        ),
    ],
)
def test_invalid_mode_scope_top_k_and_timeout_fail_with_explicit_sanitized_errors(
    tmp_path: Path, document: dict[str, Any], sentence: str
) -> None:
    assert refused(tmp_path, document) == sentence


@pytest.mark.parametrize(
    "document",
    [
        hybrid(topK=USER_KEY),
        hybrid(scope=[USER_KEY]),
        hybrid(baseUrl=f"http://anna:{USER_KEY}@gateway.test"),
        hybrid(userKey=[USER_KEY]),
        hybrid(userKey={"userKey": USER_KEY}),
        hybrid(userkey=USER_KEY),
        hybrid(**{USER_KEY: 1}),
        f'{{"memory": {{"{USER_KEY}": 1, "{USER_KEY}": 2}}}}',
        {"memory": {"mode": USER_KEY}},
        {"memory": USER_KEY},
        {"provider": {"name": "openai", "apiKeyEnv": USER_KEY}},
        f'{{"memory": {{"gateway": {{"userKey": "{USER_KEY}", "userKey": "{USER_KEY}"}}}}}}',
        f'{{"memory": {{"gateway": {{"userKey": "{USER_KEY}"',
        f'{{"userKey": "{USER_KEY}", "topK": NaN}}',
        f'["{USER_KEY}"]',
    ],
)
def test_no_warning_or_exception_text_contains_user_key(tmp_path: Path, document: object) -> None:
    refused(tmp_path, document)


def test_what_a_configuration_shows_of_its_keys_is_a_mask(tmp_path: Path) -> None:
    config = load_config(
        written(tmp_path, hybrid() | {"provider": {"name": "openai", "model": "m", "apiKey": API_KEY}})
    )
    assert config.memory.gateway is not None
    assert config.provider.api_key == Secret(API_KEY)
    shown = f"{config!r} {config} {dataclasses.asdict(config)} {config.memory.gateway.user_key:>40}"
    assert "canary" not in shown
    assert shown.count("***") == 7


def test_a_secret_goes_nowhere_by_itself() -> None:
    secret = Secret(USER_KEY)
    assert secret == Secret(USER_KEY)
    assert secret != Secret(USER_KEY + "x")
    assert secret != USER_KEY
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret
    for refuses in (pickle.dumps, json.dumps, hash, vars):
        with pytest.raises(TypeError):
            refuses(secret)
    assert [str(secret), f"{secret}", f"{secret:>9}", f"{secret!r}"] == ["***", "***", "***", "Secret(***)"]
    assert secret.removed_from(f"my key is {USER_KEY}, keep it") == "my key is ***, keep it"


def test_the_defaults_are_the_contracts(tmp_path: Path) -> None:
    least = {name: GATEWAY[name] for name in ("baseUrl", "userId", "userKey")}
    memory = load_config(written(tmp_path, {"memory": {"mode": "hybrid", "gateway": least}})).memory
    assert memory.gateway is not None
    assert (memory.gateway.app_id, memory.gateway.project_id) == ("default", "default")
    assert memory.gateway.scope == ("current_chat", "resources")
    assert (memory.gateway.top_k, memory.gateway.timeout_seconds) == (8, 10.0)


def test_a_gateway_without_a_mode_is_used_and_its_hybrid_is_implicit(tmp_path: Path) -> None:
    memory = load_config(written(tmp_path, {"memory": {"gateway": GATEWAY}})).memory
    assert (memory.mode, memory.explicit) == ("hybrid", False)
    assert memory.gateway is not None


def test_what_is_wrong_is_refused_in_an_implicit_hybrid_too(tmp_path: Path) -> None:
    assert "topK" in refused(tmp_path, {"memory": {"gateway": {"topK": 0}}})


def test_curated_mode_ignores_whatever_the_gateway_block_holds(tmp_path: Path) -> None:
    for block in BLOCKS:
        memory = load_config(written(tmp_path, {"memory": {"mode": "curated", "gateway": block}})).memory
        assert memory.gateway is None


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (hybrid(topk=3), "Unknown field memory.gateway.topk. Did you mean topK?"),
        ({"memory": {"modes": "curated"}}, "Unknown field memory.modes. Did you mean mode?"),
        ({"Memory": {}}, "Unknown field Memory. Did you mean memory?"),
        ({"memory": {"xyz": 1}}, "Unknown field memory.xyz. Known fields: mode, gateway."),
        ({"provider": {"modell": "x"}}, "Unknown field provider.modell. Did you mean model?"),
        ({"memory": {"mode": None}}, "memory.mode is null: set a value or omit it"),
        ({"memory": []}, "memory must be a JSON object"),
        ({"memory": {"mode": "hybrid", "gateway": 5}}, "memory.gateway must be a JSON object"),
        (hybrid(userId=5), "memory.gateway.userId must be a string"),
        ({"workspace": 5}, "workspace must be a string"),
        ({"workspace": "~nobody-of-this-name/x"}, "workspace must be the path of a folder"),
        ({"workspace": "a\0b"}, "workspace must be the path of a folder"),
    ],
)
def test_a_typing_mistake_is_not_overlooked(tmp_path: Path, document: object, sentence: str) -> None:
    assert refused(tmp_path, document) == sentence


@pytest.mark.parametrize(
    "address",
    [
        "gateway.test",
        "ftp://gateway.test",
        "http://",
        "http://[::1",
        "http://gateway.test:port",
        "http://gateway.test:65536",
        "http://gateway.test:0",
        f"http://{'a' * 64}.test",
        "http://xn--.test",
        "http://gateway.test/\ud800",
        "http://gateway.test/?a=b",
        "http://gateway.test/#a",
        "http://anna@gateway.test",
        "http://gate\x07way.test",
        "//gateway.test",
    ],
)
def test_an_address_that_is_none_is_refused(tmp_path: Path, address: str) -> None:
    assert refused(tmp_path, hybrid(baseUrl=address)).startswith("memory.gateway.baseUrl must be a URL such as")


def test_a_section_that_is_null_is_as_good_as_none(tmp_path: Path) -> None:
    implicit = MemoryConfig(missing=CREDENTIALS)
    for document in ({"memory": None, "provider": None}, {"memory": {"gateway": None}}):
        config = load_config(written(tmp_path, document))
        assert (config.memory, config.provider) == (implicit, ProviderConfig())
    assert "requires memory.gateway.baseUrl" in refused(tmp_path, {"memory": {"mode": "hybrid", "gateway": None}})


def test_sections_of_other_programs_are_left_alone_with_one_warning(tmp_path: Path) -> None:
    document = hybrid() | {"channels": {"a": 1}, "xyz": None, USER_KEY: 1}
    config = load_config(written(tmp_path, document))
    assert config.memory.gateway is not None
    assert config.warnings == (
        "The configuration has unknown sections, which are ignored: channels, xyz, (name hidden).",
    )
    assert EngineLoader(config).load().warnings == config.warnings


@pytest.mark.parametrize("around", [" ", "\n", "\t "])
def test_blanks_around_a_key_are_no_part_of_it(tmp_path: Path, around: str) -> None:
    memory = load_config(written(tmp_path, hybrid(userKey=f"{around}{USER_KEY}{around}"))).memory
    assert memory.gateway is not None
    assert memory.gateway.user_key == Secret(USER_KEY)


WRONG_IN_PYTHON: dict[str, dict[str, Any]] = {
    "memory.mode hybrid requires memory.gateway.baseUrl:": {"base_url": " "},
    "memory.mode hybrid requires memory.gateway.userId:": {"user_id": ""},
    "memory.mode hybrid requires memory.gateway.userKey:": {"user_key": Secret(" ")},
    "memory.gateway.baseUrl must be": {"base_url": "gateway.test"},
    "memory.gateway.scope must be": {"scope": ()},
    "memory.gateway.scope must be a list": {"scope": ("everything",)},
    "memory.gateway.topK must be": {"top_k": 0},
    "memory.gateway.timeoutSeconds must": {"timeout_seconds": -1.0},
    "memory.gateway.timeoutSeconds must be": {"timeout_seconds": float("nan")},
    "memory.gateway.appId must be": {"app_id": 5},
}


@pytest.mark.parametrize("sentence", WRONG_IN_PYTHON)
@pytest.mark.parametrize("explicit", [True, False])
def test_a_gateway_configured_in_python_is_held_to_the_same_rules(
    tmp_path: Path, sentence: str, explicit: bool
) -> None:
    memory = MemoryConfig("hybrid", explicit, gateway(**WRONG_IN_PYTHON[sentence]))
    with pytest.raises(ConfigurationError) as caught:
        EngineLoader(AgentConfig(memory, workspace=tmp_path)).load()
    assert str(caught.value).startswith(sentence)


async def test_a_right_gateway_configured_in_python_is_used(tmp_path: Path) -> None:
    configured: Any = gateway(base_url=f"{BASE_URL}/", scope=["resources"], user_key=f" {USER_KEY} ")
    runtime = EngineLoader(AgentConfig(MemoryConfig("hybrid", True, configured), workspace=tmp_path)).load()
    assert runtime.memory_gateway_service is not None
    used = runtime.config.memory.gateway
    assert used == gateway(scope=("resources",))
    await runtime.close()


def test_a_mode_that_is_none_is_refused_in_python(tmp_path: Path) -> None:
    unknown: Any = "hybird"
    with pytest.raises(ConfigurationError, match=r"memory\.mode must be one of: curated, hybrid"):
        EngineLoader(AgentConfig(MemoryConfig(unknown), workspace=tmp_path)).load()


def test_a_slash_at_the_end_of_an_address_does_not_matter(tmp_path: Path) -> None:
    memory = load_config(written(tmp_path, hybrid(baseUrl="https://gateway.test/memory/"))).memory
    assert memory.gateway is not None
    assert memory.gateway.base_url == "https://gateway.test/memory"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "is not JSON: Expecting value (line 1, column 1)"),
        ("{'memory': 1}", "is not JSON: Expecting property name enclosed in double quotes (line 1, column 2)"),
        ('{"memory": NaN}', "is not JSON: it contains an invalid number or is nested too deeply"),
        ("[" * 100_000, "is not JSON: it contains an invalid number or is nested too deeply"),
        ("[]", "must be a JSON object"),
        ('{"workspace": "a", "workspace": "b"}', "contains workspace twice in one object"),
    ],
)
def test_a_file_that_is_no_json_object_is_one_sentence(tmp_path: Path, text: str, fault: str) -> None:
    assert refused(tmp_path, text) == f"The configuration {tmp_path / 'config.json'} {fault}"


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.json", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(ConfigurationError, match=f"cannot be read: {reason}"):
            load_config(path)
    (tmp_path / "latin.json").write_bytes(b'{"workspace": "\xe4"}')
    with pytest.raises(ConfigurationError, match="not valid UTF-8"):
        load_config(tmp_path / "latin.json")


def test_without_a_file_everything_has_a_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = load_config(None)
    assert config == AgentConfig(MemoryConfig(missing=CREDENTIALS), ProviderConfig(), tmp_path / ".recollect" / "agent")
    folder = tmp_path / ".recollect" / "agent"
    folder.mkdir(parents=True)
    written(folder, {"memory": {"mode": "curated"}})
    assert load_config(None).memory.mode == "curated"


def test_the_workspace_is_the_files_folder_or_relative_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/anna")
    monkeypatch.chdir(tmp_path)
    for named, workspace in ((".", "."), ("a/b", "a/b"), ("/elsewhere", "/elsewhere"), ("~/x", "/home/anna/x")):
        written(tmp_path, {"workspace": named})
        assert load_config(Path("config.json")).workspace == tmp_path / workspace
    assert load_config(written(tmp_path, {})).workspace == tmp_path


def test_a_provider_is_configured_by_camel_case_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", API_KEY)
    document = {
        "provider": {
            "name": "anthropic",
            "model": "some-model",
            "baseUrl": "http://127.0.0.1:9/v1/",
            "apiKeyEnv": "ANTHROPIC_API_KEY",
            "maxTokens": 99,
            "maxToolRounds": 3,
        }
    }
    provider = load_config(written(tmp_path, document)).provider
    assert provider == ProviderConfig("anthropic", "some-model", "http://127.0.0.1:9/v1", Secret(API_KEY), 99, 3)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"name": "gpt"}, "provider.name must be one of: offline, anthropic, openai"),
        ({"name": "openai", "apiKey": API_KEY}, "provider.model is missing"),
        ({"name": "anthropic", "model": "m"}, "provider.apiKeyEnv is missing"),
        ({"name": "openai", "model": "m"}, "provider.apiKeyEnv is missing"),
        ({"name": "openai", "model": "m", "apiKeyEnv": "NOT_SET"}, "provider.apiKeyEnv names an environment variable"),
        ({"name": "openai", "model": "m", "apiKeyEnv": "A", "apiKey": API_KEY}, "provider.apiKeyEnv conflicts"),
        ({"maxTokens": 0}, "provider.maxTokens must be a whole number"),
        ({"maxToolRounds": 0}, "provider.maxToolRounds must be a whole number"),
    ],
)
def test_a_provider_that_cannot_work_is_refused(tmp_path: Path, fields: dict[str, Any], named: str) -> None:
    assert refused(tmp_path, {"provider": fields}).startswith(named)


def test_a_server_of_ones_own_needs_no_key(tmp_path: Path) -> None:
    fields = {"name": "openai", "model": "m", "baseUrl": "http://127.0.0.1:11434/v1"}
    assert load_config(written(tmp_path, {"provider": fields})).provider.api_key is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*GATEWAY, "extra"]), JSON, max_size=4), st.none() | JSON)
@hypothesis(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_values_are_read_or_refused_with_a_sentence(tmp_path: Path, fields: dict[str, Any], mode: Any) -> None:
    memory = {"gateway": GATEWAY | fields} | ({} if mode is None else {"mode": mode})
    path = written(tmp_path, {"memory": memory})
    try:
        config = load_config(path)
    except ConfigurationError as problem:
        assert USER_KEY not in str(problem)  # noqa: PT017
    else:
        assert "canary" not in repr(config)
