"""The watch that every agent test runs under fails a test that shows a credential, whichever way."""

import os
import re
import subprocess
import sys
from pathlib import Path

LEAKING = """
import logging, subprocess, sys, warnings
import pytest
from recollect.agent.secret import Secret
from tests.agent.leaks import PACKAGE, USER_KEY

def run_in_the_agent(code):
    exec(compile(code, f"{PACKAGE}/imagined.py", "exec"), {"KEY": USER_KEY})

def test_clean(tmp_path):
    logging.warning("key %s", Secret(USER_KEY))
    (tmp_path / "config.json").write_text(USER_KEY)

def test_log(): logging.getLogger("httpcore").debug("key %s", USER_KEY)
def test_log_extra(): logging.getLogger("x").info("fine", extra={"key": USER_KEY})
def test_log_exception():
    try: raise ValueError(USER_KEY)
    except ValueError: logging.getLogger("x").exception("failed")
def test_print(): print(USER_KEY)
def test_stderr(): print(USER_KEY, file=sys.stderr)
def test_captured(capsys):
    print(USER_KEY)
    capsys.readouterr()
def test_child_process(): subprocess.run([sys.executable, "-c", f"print('{USER_KEY}')"], capture_output=True)
def test_warning():
    with pytest.warns(UserWarning): warnings.warn(USER_KEY)
def test_session_file(tmp_path):
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "a.jsonl").write_text(USER_KEY)
def test_exception_that_is_caught():
    with pytest.raises(ValueError): run_in_the_agent("raise ValueError(KEY)")
def test_result(): run_in_the_agent("def status(): return {'key': KEY}\\nstatus()")
"""


def test_a_test_that_shows_a_credential_fails_and_a_clean_one_passes(tmp_path: Path) -> None:
    program = tmp_path / "test_leaking.py"
    program.write_text(LEAKING)
    command = [sys.executable, "-m", "pytest", "-rA", "--tb=no", "-p", "tests.agent.leaks", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", tmp_path, program],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"AGENT_TEST_CANARY": "canary-of-the-inner-run"},
    )
    failed = set(re.findall(r"^(?:FAILED|ERROR) \S*::test_(\w+)", result.stdout, re.M))
    passed = set(re.findall(r"^PASSED \S*::test_(\w+)", result.stdout, re.M)) - failed
    assert passed == {"clean"}, result.stdout
    assert failed == set(re.findall(r"^def test_(\w+)", LEAKING, re.M)) - {"clean"}
