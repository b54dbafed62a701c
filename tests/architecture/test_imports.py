"""`import recollect` is quick: it loads nothing heavy."""

import json
import subprocess
import sys

HEAVY = ("asyncpg", "fastapi", "mcp", "numpy", "onnxruntime", "opentelemetry", "pydantic", "sqlalchemy", "uvicorn")


def modules_after(statement: str) -> set[str]:
    program = f"import json, sys; {statement}; print(json.dumps(list(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return {name.split(".")[0] for name in json.loads(printed.stdout)}


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not modules_after("import recollect").intersection(HEAVY)


def test_importing_the_library_door_loads_no_server_and_no_model() -> None:
    loaded = modules_after("from recollect import ContextService, MemoryManager")
    assert not loaded.intersection({"fastapi", "mcp", "numpy", "onnxruntime", "sqlalchemy", "uvicorn"})


def test_the_command_line_shows_its_help_without_anything_heavy() -> None:
    assert not modules_after("import recollect.doors.cli.main").intersection(HEAVY)


def test_a_server_answers_before_it_loads_mcp_and_the_model() -> None:
    loaded = modules_after("import recollect.doors.cli.serving.serve")
    assert not loaded.intersection({"mcp", "mcp_types", "numpy", "onnxruntime", "sqlalchemy"})


def test_a_command_loads_no_server_and_no_model() -> None:
    loaded = modules_after("import recollect.doors.cli.memories.remember_recall")
    assert not loaded.intersection({"fastapi", "mcp", "numpy", "onnxruntime", "sqlalchemy", "starlette", "uvicorn"})
