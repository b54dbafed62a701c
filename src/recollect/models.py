"""The records that the library contract names, with exactly its JSON Schemas."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema
from pydantic_core import CoreSchema

from recollect.checks import EMBEDDING_DIMENSIONS, MAX_IDENTIFIER_CHARACTERS

_SCHEMA_DIALECT = "http://json-schema.org/draft-07/schema#"


class ContractModel(BaseModel):
    """A record whose schema is written as the contract writes it: no generated titles, no defaults."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core_schema))
        for described in schema["properties"].values():
            described.pop("title", None)
            described.pop("default", None)
        schema.pop("description", None)
        return {"$schema": _SCHEMA_DIALECT, **schema}


class Session(ContractModel):
    """A conversation and who it belongs to."""

    id: UUID = Field(description="Unique session identifier")
    user_id: str = Field(max_length=MAX_IDENTIFIER_CHARACTERS, description="User identifier")
    created_at: datetime = Field(description="Session creation timestamp (UTC)")
    updated_at: datetime = Field(description="Last activity timestamp (UTC)")
    metadata_: dict[str, Any] = Field(default_factory=dict, description="Flexible session metadata")


class Message(ContractModel):
    """One turn of a conversation."""

    id: UUID = Field(description="Unique message identifier")
    session_id: UUID = Field(description="Parent session reference")
    role: Literal["user", "assistant", "system"] = Field(description="Message role")
    content: str = Field(min_length=1, description="Message content")
    created_at: datetime = Field(description="Message creation timestamp (UTC)")
    metadata_: dict[str, Any] = Field(default_factory=dict, description="Flexible message metadata")
    # Beyond the contract, so not in its schema: other doors and imports know who spoke.
    speaker: SkipJsonSchema[str | None] = None


class Document(ContractModel):
    """A text that was stored whole, with the caller's own embedding if one was given."""

    id: UUID = Field(description="Unique document identifier")
    content: str = Field(min_length=1, description="Document content")
    embedding: (
        Annotated[list[float], Field(min_length=EMBEDDING_DIMENSIONS, max_length=EMBEDDING_DIMENSIONS)]
        | SkipJsonSchema[None]
    ) = Field(None, description="1536-dimensional vector embedding (nullable)")
    metadata_: dict[str, Any] = Field(default_factory=dict, description="Flexible document metadata")
    created_at: datetime = Field(description="Document creation timestamp (UTC)")
    updated_at: datetime = Field(description="Last update timestamp (UTC)")


class ToolCall(BaseModel):
    """One call of a tool that an agent made on the way to its answer, with whatever else its provider tells of it."""

    model_config = ConfigDict(extra="allow")

    name: str | None = None
    args: dict[str, Any] = Field(default_factory=dict)
    result: Any = None


_TOOL_CALLS_SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "args": {"type": "object"}, "result": {}},
    },
}


class AgentResponse(ContractModel):
    """What an agent answered and how sure it is."""

    answer: str = Field(description="The agent's response text")
    reasoning: str | SkipJsonSchema[None] = Field(
        None, description="Explanation of agent's reasoning process (nullable)"
    )
    tool_calls: Annotated[list[ToolCall], WithJsonSchema(_TOOL_CALLS_SCHEMA)] = Field(
        default_factory=list, description="List of tool calls made"
    )
    confidence: float = Field(ge=0.0, le=1.0, description="Confidence score (0.0-1.0)")
    timestamp: datetime = Field(description="Response generation timestamp (UTC)")


class ToolGapReport(ContractModel):
    """Which tools an agent would have needed."""

    missing_tools: list[str] = Field(description="List of required tool names that are missing")
    attempted_task: str = Field(description="Description of the task that failed")
    existing_tools_checked: list[str] = Field(description="List of existing tools evaluated")
    proposed_mcp_server: str | SkipJsonSchema[None] = Field(None, description="Proposed MCP server name (nullable)")


class ApprovalRequest(ContractModel):
    """An action that waits for a person's yes."""

    action_type: str = Field(description="Type of action (e.g., 'send_email', 'delete_file')")
    action_description: str = Field(description="Human-readable description of the action")
    confidence: float = Field(ge=0.0, le=1.0, description="Agent's confidence (0.0-1.0)")
    risk_level: Literal["reversible", "reversible_with_delay", "irreversible"] = Field(description="Risk category")
    tool_name: str = Field(description="Name of the tool that will execute")
    parameters: dict[str, Any] = Field(description="Parameters for the tool")
    requires_immediate_approval: bool = Field(description="If true, action blocks until approval")
    timeout_seconds: Annotated[int, Field(ge=1)] | SkipJsonSchema[None] = Field(
        None, description="Auto-reject after N seconds (nullable)"
    )
