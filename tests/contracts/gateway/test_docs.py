"""The requests of docs/gateway.md, sent to a real server in their order, get the answers that the page shows."""

import json
import re
import shlex
from pathlib import Path
from typing import Any, Literal

import pytest

from recollect.engine import Engine
from tests.rest_servers import serving

PAGE = (Path(__file__).parents[3] / "docs" / "gateway.md").read_text()
EXAMPLE = re.compile(r"^```bash\n(?P<command>[^\n]*)\n```\n\n```json\n(?P<answer>.*?)^```$", re.M | re.S)
ADDRESS = "http://127.0.0.1:8000"
ANY = "..."


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


def is_like(shown: Any, got: Any) -> bool:
    """Whether an answer is what the page shows: three dots stand for any text, and a fraction for any other."""
    if isinstance(shown, dict):
        return isinstance(got, dict) and shown.keys() == got.keys() and all(is_like(shown[k], got[k]) for k in shown)
    if isinstance(shown, list):
        return isinstance(got, list) and len(shown) == len(got) and all(map(is_like, shown, got))
    if isinstance(shown, str) and shown.endswith(ANY):
        return isinstance(got, str) and got.startswith(shown.removesuffix(ANY))
    if isinstance(shown, float):
        return isinstance(got, float) and 0 <= got <= 1
    return bool(shown == got)


async def test_every_request_of_the_page_gets_the_answer_that_it_shows(engine: Engine) -> None:
    key = "uk_..."
    examples = list(EXAMPLE.finditer(PAGE))
    assert len(examples) == PAGE.count("```bash") == 5
    async with serving(engine) as http:
        for example in examples:
            curl, silent, url, as_json, body = shlex.split(example["command"])
            assert (curl, silent, as_json) == ("curl", "-s", "--json")
            answer = await http.post(url.removeprefix(ADDRESS), json=json.loads(body.replace("uk_...", key)))
            assert is_like(json.loads(example["answer"]), answer.json()), answer.text
            key = answer.json().get("user_key", key)


def test_the_table_has_every_endpoint_of_the_gateway() -> None:
    for path in ("/users", "/memories/search", "/memories/add", "/memories/flush", "/resources"):
        assert f"| `POST {path}` |" in PAGE
