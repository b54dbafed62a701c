"""Requests that nobody would write, made from the served OpenAPI document."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import httpx

SCHEMATHESIS = Path(sys.executable).with_name("st")

# What a schema cannot say (a text that is not blank, a scope of which one part is needed) makes input that fits it
# invalid; and Starlette names only one route's methods in `Allow`.
LEFT_OUT = "positive_data_acceptance,allow_header_conformance"

OPTIONS = ("--no-color", "--continue-on-failure", "--phases", "examples,coverage,fuzzing", "--exclude-checks", LEFT_OUT)

USER, KEY = "RECOLLECT_TEST_FUZZ_USER", "RECOLLECT_TEST_FUZZ_KEY"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run."""

    cases: int
    passed: bool
    report: str


def fuzz(url: str, *options: str) -> Outcome:
    """Ask a running server everything its document allows, and much that it does not."""
    user = httpx.post(f"{url}/users", json={"user_id": "anna"}, timeout=60).raise_for_status().json()
    run = subprocess.run(
        [str(SCHEMATHESIS), "run", f"{url}/openapi.json", *OPTIONS, *options],
        capture_output=True,
        text=True,
        timeout=3600,
        env=os.environ | {"SCHEMATHESIS_HOOKS": "tests.fuzz.hooks", USER: user["user_id"], KEY: user["user_key"]},
    )
    counted = re.search(r"(\d+) generated", run.stdout)
    return Outcome(int(counted[1]) if counted else 0, run.returncode == 0, run.stdout + run.stderr)
