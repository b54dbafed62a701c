"""Contract memory-manager: the JSON Schemas of the six models, property by property."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from recollect import AgentResponse, ApprovalRequest, Document, Message, Session, ToolGapReport


def text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def uuid(description: str) -> dict[str, Any]:
    return text(description, format="uuid")


def moment(description: str) -> dict[str, Any]:
    return text(description, format="date-time")


def free_object(description: str) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": True}


def texts(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def score(description: str) -> dict[str, Any]:
    return {"type": "number", "minimum": 0.0, "maximum": 1.0, "description": description}


SCHEMAS: list[tuple[type[BaseModel], dict[str, Any], list[str]]] = [
    (
        Session,
        {
            "id": uuid("Unique session identifier"),
            "user_id": text("User identifier", maxLength=255),
            "created_at": moment("Session creation timestamp (UTC)"),
            "updated_at": moment("Last activity timestamp (UTC)"),
            "metadata_": free_object("Flexible session metadata"),
        },
        ["id", "user_id", "created_at", "updated_at"],
    ),
    (
        Message,
        {
            "id": uuid("Unique message identifier"),
            "session_id": uuid("Parent session reference"),
            "role": text("Message role", enum=["user", "assistant", "system"]),
            "content": text("Message content", minLength=1),
            "created_at": moment("Message creation timestamp (UTC)"),
            "metadata_": free_object("Flexible message metadata"),
        },
        ["id", "session_id", "role", "content", "created_at"],
    ),
    (
        Document,
        {
            "id": uuid("Unique document identifier"),
            "content": text("Document content", minLength=1),
            "embedding": {
                "type": "array",
                "items": {"type": "number"},
                "minItems": 1536,
                "maxItems": 1536,
                "description": "1536-dimensional vector embedding (nullable)",
            },
            "metadata_": free_object("Flexible document metadata"),
            "created_at": moment("Document creation timestamp (UTC)"),
            "updated_at": moment("Last update timestamp (UTC)"),
        },
        ["id", "content", "created_at", "updated_at"],
    ),
    (
        AgentResponse,
        {
            "answer": text("The agent's response text"),
            "reasoning": text("Explanation of agent's reasoning process (nullable)"),
            "tool_calls": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "args": {"type": "object"}, "result": {}},
                },
                "description": "List of tool calls made",
            },
            "confidence": score("Confidence score (0.0-1.0)"),
            "timestamp": moment("Response generation timestamp (UTC)"),
        },
        ["answer", "confidence", "timestamp"],
    ),
    (
        ToolGapReport,
        {
            "missing_tools": texts("List of required tool names that are missing"),
            "attempted_task": text("Description of the task that failed"),
            "existing_tools_checked": texts("List of existing tools evaluated"),
            "proposed_mcp_server": text("Proposed MCP server name (nullable)"),
        },
        ["missing_tools", "attempted_task", "existing_tools_checked"],
    ),
    (
        ApprovalRequest,
        {
            "action_type": text("Type of action (e.g., 'send_email', 'delete_file')"),
            "action_description": text("Human-readable description of the action"),
            "confidence": score("Agent's confidence (0.0-1.0)"),
            "risk_level": text("Risk category", enum=["reversible", "reversible_with_delay", "irreversible"]),
            "tool_name": text("Name of the tool that will execute"),
            "parameters": free_object("Parameters for the tool"),
            "requires_immediate_approval": {
                "type": "boolean",
                "description": "If true, action blocks until approval",
            },
            "timeout_seconds": {
                "type": "integer",
                "minimum": 1,
                "description": "Auto-reject after N seconds (nullable)",
            },
        },
        [
            "action_type",
            "action_description",
            "confidence",
            "risk_level",
            "tool_name",
            "parameters",
            "requires_immediate_approval",
        ],
    ),
]


@pytest.mark.parametrize(("model", "properties", "required"), SCHEMAS, ids=[m.__name__ for m, _, _ in SCHEMAS])
def test_the_schema_is_the_contracts(model: type[BaseModel], properties: dict[str, Any], required: list[str]) -> None:
    assert model.model_json_schema() == {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": model.__name__,
        "type": "object",
        "properties": properties,
        "required": required,
    }


def test_nullable_fields_take_none() -> None:
    report = ToolGapReport(missing_tools=[], attempted_task="t", existing_tools_checked=[], proposed_mcp_server=None)
    assert report.proposed_mcp_server is None


def test_a_confidence_above_one_is_refused() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        AgentResponse.model_validate({"answer": "a", "confidence": 1.01, "timestamp": "2026-01-01T00:00:00Z"})


def test_an_agent_response_round_trips_with_its_tool_calls() -> None:
    given = {
        "answer": "42",
        "tool_calls": [{"name": "add", "args": {"a": 40, "b": 2}, "result": 42}],
        "confidence": 0.9,
        "timestamp": "2026-01-01T00:00:00Z",
    }
    response = AgentResponse.model_validate(given)
    assert AgentResponse.model_validate_json(response.model_dump_json()) == response
    assert response.tool_calls[0].result == 42
