"""`recollect install` and `uninstall`: what goes into an agent's files comes out again, and nothing else changes."""

import json
import os
import pty
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from recollect.doors.cli.coding_agents import json_text
from recollect.doors.cli.coding_agents.edits import MARK
from tests.commands import RECOLLECT, recollect

AGENTS = ("claude-code", "codex", "cursor", "gemini-cli")

CLAUDE_STATE = '{\n  "numStartups": 7,\n  "oauthAccount": {"emailAddress": "a@example.org"},\n  "mcpServers": {}\n}'
CLAUDE_SETTINGS = """{
\t"permissions": {"allow": ["Bash(ls:*)"]},
\t"hooks": {
\t\t"Stop": [
\t\t\t{"hooks": [{"type": "command", "command": "say done"}]}
\t\t]
\t}
}
"""
CODEX_CONFIG = """# mine
model = "gpt-5"   # the good one

[mcp_servers.docs]
command = "docs"
args = [
  "--all", # all of them
]"""
GEMINI_SETTINGS = """{
    // comments are allowed here
    "theme": "dark", /* like this */
    "mcpServers": {
        "other": {"command": "other"},
    },
}
"""
EXISTING = {
    ".claude.json": CLAUDE_STATE,
    ".claude/settings.json": CLAUDE_SETTINGS,
    ".codex/config.toml": CODEX_CONFIG,
    ".cursor/mcp.json": '{"mcpServers": {"other": {"command": "other"}}}',
    ".cursor/hooks.json": '{\r\n  "version": 1,\r\n  "hooks": { }\r\n}\r\n',
    ".gemini/settings.json": GEMINI_SETTINGS,
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with nothing in it, which is also where projects are looked for."""
    for name in ("XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RECOLLECT_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def fill(home: Path) -> None:
    for name, text in EXISTING.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_bytes(text.encode())


def files(home: Path) -> dict[str, bytes]:
    """Everything but what the command keeps for itself."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and ".local" not in path.parts
    }


def run(*arguments: str, given: str = "") -> str:
    done = recollect(*arguments, env=dict(os.environ), given=given)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*arguments: str) -> str:
    done = recollect(*arguments, env=dict(os.environ))
    assert done.returncode != 0
    return done.stderr


def says(home: Path, name: str) -> Any:
    text = (home / name).read_text()
    return tomllib.loads(text) if name.endswith(".toml") else json_text.parse(text).value


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


# A busy machine is no fault of the text.
@hypothesis(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    document=st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES),
    held=st.none() | st.dictionaries(st.sampled_from(["other", "Stop"]), st.lists(VALUES, max_size=2)),
    indent=st.sampled_from([None, 0, 2, "\t"]),
    is_item=st.booleans(),
)
def test_what_is_put_into_any_json_can_be_taken_out(
    document: dict[str, Any], held: dict[str, Any] | None, indent: int | str | None, is_item: bool
) -> None:
    before = document | ({} if held is None else {"hooks": held})
    path, value = ("hooks", "Stop" if is_item else "recollect"), {"command": MARK}
    text = json.dumps(before, indent=indent)
    after, edit, existing = json_text.put(text, path, value, is_item=is_item)
    assert after.replace(edit.inserted, edit.replaced, 1) == text
    holder = json_text.parse(after).value["hooks"]
    assert holder["Stop"][0] == value if is_item else holder["recollect"] == value

    def is_ours(part: json_text.Part) -> bool:
        return bool(part.node.value == value)

    for rewritten in (after, json.dumps(json_text.parse(after).value, indent=1)):
        left = json_text.remove(rewritten, path if is_item else path[:-1], is_ours, existing)
        assert json_text.parse(left).value == before


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("is_filled", [True, False])
@pytest.mark.parametrize("scope", [[], ["--project"]])
def test_uninstalling_restores_every_byte(home: Path, agent: str, is_filled: bool, scope: list[str]) -> None:
    if is_filled:
        fill(home)
    before = files(home)
    run("install", agent, "--yes", *scope)
    written = files(home)
    assert written != before
    assert "connected already" in run("install", agent, "--yes", *scope)
    assert files(home) == written
    run("uninstall", agent, "--yes", *scope)
    assert files(home) == before
    assert [
        path for path in home.iterdir() if path.is_dir() and path.name != ".local" and not any(path.iterdir())
    ] == []


def test_each_agent_gets_its_server_and_its_hooks(home: Path) -> None:
    fill(home)
    for agent in AGENTS:
        run("install", agent, "--yes", "--namespace", "work")
    servers = {
        ".claude.json": "mcpServers",
        ".codex/config.toml": "mcp_servers",
        ".cursor/mcp.json": "mcpServers",
        ".gemini/settings.json": "mcpServers",
    }
    for file, name in servers.items():
        server = says(home, file)[name]["recollect"]
        assert server["args"] == ["mcp", "--toolsets", "core"]
        assert Path(server["command"]).name == "recollect"
        assert server["env"]["RECOLLECT_NAMESPACE"] == "work"
    claude = says(home, ".claude/settings.json")
    assert [len(claude["hooks"][event]) for event in ("SessionStart", "UserPromptSubmit", "Stop")] == [1, 1, 2]
    assert claude["permissions"] == {"allow": ["Bash(ls:*)"]}
    codex = says(home, ".codex/hooks.json")["hooks"]
    assert list(codex) == ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]
    assert [groups[0]["hooks"][0]["timeout"] for groups in codex.values()] == [10, 10, 10, 3]
    cursor = says(home, ".cursor/hooks.json")
    assert cursor["version"] == 1
    assert {"sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "stop"} <= set(cursor["hooks"])
    gemini = says(home, ".gemini/settings.json")
    assert gemini["hooks"]["BeforeAgent"][0]["hooks"][0]["timeout"] == 10_000
    assert "// comments are allowed here" in (home / ".gemini/settings.json").read_text()


def test_what_the_user_changed_since_stays(home: Path) -> None:
    fill(home)
    for agent in AGENTS:
        run("install", agent, "--yes")
    state = says(home, ".claude.json") | {"numStartups": 8}
    state["mcpServers"]["mine"] = {"command": "mine"}
    (home / ".claude.json").write_text(json.dumps(state))  # as the agent writes it, in a style of its own
    settings = says(home, ".claude/settings.json")
    settings["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "say mine"})
    (home / ".claude/settings.json").write_text(json.dumps(settings, indent=1))
    config = home / ".codex/config.toml"
    config.write_text(config.read_text().replace('model = "gpt-5" ', 'model = "o9" ') + "\n[tui]\ntheme = 1 # dark\n")
    gemini = home / ".gemini/settings.json"
    gemini.write_text(gemini.read_text().replace('"dark"', '"light"'))
    for agent in AGENTS:
        run("uninstall", agent, "--yes")
    del state["mcpServers"]["recollect"]
    assert says(home, ".claude.json") == state
    assert json.dumps(says(home, ".claude/settings.json")["hooks"]) == json.dumps(
        {
            "Stop": [
                {"hooks": [{"type": "command", "command": "say mine"}]},
                {"hooks": [{"type": "command", "command": "say done"}]},
            ]
        }
    )
    assert config.read_text() == CODEX_CONFIG.replace("gpt-5", "o9") + "\n[tui]\ntheme = 1 # dark\n"
    assert gemini.read_text() == GEMINI_SETTINGS.replace("dark", "light")


def test_prompts_that_hooks_kept_go_with_the_last_installation_of_their_agent(home: Path) -> None:
    run("install", "claude-code", "--yes")
    run("install", "claude-code", "--yes", "--project")
    run("install", "cursor", "--yes")
    (state,) = home.rglob("coding-agents")
    kept = [state / "sessions" / name for name in ("claude-code-one.json", "cursor-one.json")]
    kept[0].parent.mkdir(exist_ok=True)
    for file in kept:
        file.write_text("{}")
    run("uninstall", "claude-code", "--yes")
    assert all(file.exists() for file in kept)
    run("uninstall", "claude-code", "--yes", "--project")
    assert [file.exists() for file in kept] == [False, True]


def test_another_installation_replaces_the_first(home: Path) -> None:
    fill(home)
    before = files(home)
    run("install", "claude-code", "--yes")
    run("install", "claude-code", "--yes", "--namespace", "work")
    settings = (home / ".claude/settings.json").read_text()
    assert settings.count("hook.py") == 4
    run("uninstall", "claude-code", "--yes")
    assert files(home) == before


@pytest.mark.parametrize(
    ("agent", "file", "text", "sentence"),
    [
        ("claude-code", ".claude.json", '{"a": 1,, }', "it is not JSON: see line 1"),
        ("claude-code", ".claude/settings.json", '{"hooks": []}', "hooks must be an object"),
        ("claude-code", ".claude/settings.json", '{"hooks": {"Stop": {}}}', "hooks.Stop must be a list"),
        ("cursor", ".cursor/mcp.json", '["servers"]', "its content must be an object"),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {"recollect": {}}}', "it already has mcpServers.recollect"),
        ("codex", ".codex/config.toml", "model = ", "it is not TOML"),
        ("codex", ".codex/config.toml", "mcp_servers = {}", "it is not TOML"),
        ("codex", ".codex/config.toml", "[mcp_servers.recollect]", "it already has mcp_servers.recollect"),
        ("gemini-cli", ".gemini/settings.json", "\xff", "is not JSON"),
    ],
)
def test_a_file_that_cannot_be_read_is_left_alone(home: Path, agent: str, file: str, text: str, sentence: str) -> None:
    fill(home)
    (home / file).write_text(text)
    before = files(home)
    told = refused("install", agent, "--yes")
    assert sentence in told
    assert file in told
    assert files(home) == before
    assert "is not connected" in refused("uninstall", agent, "--yes")


def test_nothing_is_written_without_a_terminal_or_a_yes(home: Path) -> None:
    fill(home)
    before = files(home)
    assert "add --yes" in refused("install", "claude-code")
    run("install", "claude-code", "--yes")
    after = files(home)
    assert after != before
    assert "add --yes" in refused("uninstall", "claude-code")
    assert files(home) == after


@pytest.mark.parametrize(("answer", "is_connected"), [("y", True), ("n", False)])
def test_a_terminal_is_asked(home: Path, answer: str, is_connected: bool) -> None:
    terminal, end = pty.openpty()
    os.write(terminal, f"{answer}\n".encode())
    with os.fdopen(end) as given:
        done = subprocess.run([str(RECOLLECT), "install", "cursor"], stdin=given, capture_output=True, text=True)
    os.close(terminal)
    assert done.returncode == 0, done.stderr
    assert '+    "recollect": {' in done.stdout
    assert "Connect Cursor to the memory? [y/N]" in done.stderr
    assert bool(files(home)) == is_connected


@pytest.mark.parametrize("agent", AGENTS)
def test_a_key_is_written_and_not_printed(home: Path, agent: str) -> None:
    fill(home)
    before = files(home)
    options = ("--url", "http://127.0.0.1:8000", "--key", "-")
    told = run("install", agent, "--yes", *options, given="rk_secret\n")
    assert "rk_secret" not in told
    assert "Bearer ***" in told
    keyed = [home / name for name, content in files(home).items() if b"rk_secret" in content]
    assert [oct(file.stat().st_mode)[-3:] for file in keyed] == ["600"]
    assert "rk_secret" not in run("uninstall", agent, "--yes")
    assert files(home) == before
    assert "could be shared" in refused("install", agent, "--project", "--yes", "--url", "http://x", "--key", "rk_1")


def test_settings_that_an_agent_would_not_pass_on_are_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--url must be" in refused("install", "cursor", "--yes", "--url", "localhost")
    assert "name it with --url" in refused("install", "cursor", "--yes", "--key", "rk_1")
    monkeypatch.setenv("RECOLLECT_DATABASE_URL", "postgresql://somewhere/x")
    assert "install with --url" in refused("install", "cursor", "--yes")
    assert files(home) == {}


def test_a_link_to_a_file_stays_a_link(home: Path) -> None:
    (home / "dotfiles").mkdir()
    (home / "dotfiles/mcp.json").write_text("{}\n")
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").symlink_to("../dotfiles/mcp.json")
    run("install", "cursor", "--yes")
    assert (home / ".cursor/mcp.json").is_symlink()
    assert "recollect" in (home / "dotfiles/mcp.json").read_text()
    run("uninstall", "cursor", "--yes")
    assert (home / "dotfiles/mcp.json").read_text() == "{}\n"


def test_the_check_says_whether_an_agent_is_connected(home: Path) -> None:
    done = recollect("install", "cursor", "--check", env=dict(os.environ))
    assert (done.returncode, "is not connected" in done.stdout) == (1, True)
    run("install", "cursor", "--yes")
    assert "No failures are recorded" in run("install", "cursor", "--check")
    (home / ".cursor/mcp.json").write_text("{}")
    done = recollect("install", "cursor", "--check", env=dict(os.environ))
    assert (done.returncode, "lacks what was written there" in done.stdout) == (1, True)


def test_a_damaged_record_is_a_sentence(home: Path) -> None:
    run("install", "cursor", "--yes")
    (record,) = home.rglob("record.json")
    for text in ("{", '{"hook": {}, "files": []}', "[]"):
        record.write_text(text)
        assert "is damaged: delete it" in refused("uninstall", "cursor", "--yes")
