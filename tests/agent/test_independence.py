"""The agent is a client like any other: it shares no code with the engine, and knows it over HTTP only."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import recollect.agent

PACKAGE = Path(recollect.agent.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_of_the_agent_imports_nothing_of_the_engine(path: Path) -> None:
    ours = {name for name in imported(path) if name.split(".")[0] == "recollect"}
    assert {name for name in ours if not f"{name}.".startswith("recollect.agent.")} == set()


def test_the_package_has_the_names_of_the_contract_and_loads_them_when_they_are_used() -> None:
    program = (
        "import json, sys, recollect.agent as agent; before = set(sys.modules);"
        "[getattr(agent, name) for name in agent.__all__]; print(json.dumps(sorted(before)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert not [name for name in json.loads(result.stdout) if name.startswith(("recollect.agent.", "httpx"))]
    assert set(recollect.agent.__all__) >= {
        "AgentLoop",
        "AgentRunResult",
        "ContextBuilder",
        "EngineLoadResult",
        "EngineLoader",
        "MemoryGatewayService",
        "MemoryService",
        "MemorySnapshot",
        "MemoryStore",
        "MemoryTool",
    }
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        recollect.agent.Nonsense  # noqa: B018


def test_loading_the_agent_loads_no_database_no_server_and_no_model() -> None:
    program = "import json, sys, recollect.agent.loader; print(json.dumps(list(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(json.loads(result.stdout))
    assert {
        name for name in loaded if name.startswith("recollect.") and not name.startswith("recollect.agent")
    } == set()
    assert not loaded & {"asyncpg", "fastapi", "mcp", "numpy", "onnxruntime", "pydantic", "anthropic", "openai"}
