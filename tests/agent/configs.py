"""Configurations of agent tests: files with the one key that the watch for leaks knows."""

import json
from pathlib import Path
from typing import Any

from recollect.agent.config import GatewayConfig
from recollect.agent.secret import Secret
from tests.agent.leaks import CONFIGURATION, USER_KEY

BASE_URL = "http://gateway.test:8010"

# The contract's example.
GATEWAY: dict[str, Any] = {
    "baseUrl": BASE_URL,
    "userId": "gateway_test_user",
    "userKey": USER_KEY,
    "appId": "default",
    "projectId": "default",
    "scope": ["current_chat", "resources"],
    "topK": 8,
    "timeoutSeconds": 10,
}


def hybrid(**gateway: Any) -> dict[str, Any]:
    """An explicit hybrid, with some of the gateway's fields changed; None leaves one out."""
    fields = {name: value for name, value in (GATEWAY | gateway).items() if value is not None}
    return {"memory": {"mode": "hybrid", "gateway": fields}}


def written(folder: Path, document: object) -> Path:
    """The document in a configuration file; a text is written as it is."""
    path = folder / CONFIGURATION
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def gateway(**fields: Any) -> GatewayConfig:
    """A gateway as the service gets it."""
    defaults: dict[str, Any] = {"base_url": BASE_URL, "user_id": "anna", "user_key": Secret(USER_KEY)}
    return GatewayConfig(**(defaults | fields))
