"""Fixture tools that ask the client: by a request of their own (2025), or by a result to be answered (2026)."""

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
)

from tests.conformance.content import text

Requests = dict[str, CreateMessageRequest | ListRootsRequest | ElicitRequest]
Outcome = CallToolResult | InputRequiredResult

ENUMS: dict[str, Any] = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
        "type": "string",
        "oneOf": [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)],
    },
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {
        "type": "array",
        "items": {"anyOf": [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]},
    },
}
DEFAULTS: dict[str, Any] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}


def done(content: str) -> CallToolResult:
    return CallToolResult(content=[text(content)])


def form(message: str, properties: dict[str, Any], required: list[str] | None = None) -> ElicitRequest:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
    }
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(question: str, max_tokens: int = 100) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=text(question))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=max_tokens))


def name_form(message: str = "What is your name?") -> ElicitRequest:
    return form(message, {"name": {"type": "string"}})


def accepted(context: Context[Any, Any], key: str) -> dict[str, Any] | None:
    """What the user filled in, if it is there."""
    answer = (context.input_responses or {}).get(key)
    return dict(answer.content or {}) if isinstance(answer, ElicitResult) and answer.action == "accept" else None


def add_to(server: MCPServer[Any]) -> None:
    _add_requests_of_their_own(server)
    _add_single_questions(server)
    _add_questions_with_state(server)
    _add_capability_checks(server)


def _add_requests_of_their_own(server: MCPServer[Any]) -> None:
    @server.tool()
    async def test_sampling(prompt: str, context: Context[Any, Any]) -> str:
        """Asks the client's model."""
        message = SamplingMessage(role="user", content=text(prompt))
        answer = await context.session.create_message([message], max_tokens=100, related_request_id=context.request_id)
        return f"LLM response: {answer.content}"

    async def elicited(context: Context[Any, Any], message: str, properties: dict[str, Any], required: bool) -> str:
        schema = {"type": "object", "properties": properties, "required": list(properties) if required else []}
        answer = await context.session.elicit_form(message, schema, related_request_id=context.request_id)
        return f"Elicitation completed: action={answer.action}, content={answer.content}"

    @server.tool()
    async def test_elicitation(message: str, context: Context[Any, Any]) -> str:
        """Asks the user for two texts."""
        properties = {name: {"type": "string"} for name in ("username", "email")}
        return await elicited(context, message, properties, required=True)

    @server.tool()
    async def test_elicitation_sep1034_defaults(context: Context[Any, Any]) -> str:
        """Asks the user for a value of each type, with defaults."""
        return await elicited(context, "Please check your data", DEFAULTS, required=False)

    @server.tool()
    async def test_elicitation_sep1330_enums(context: Context[Any, Any]) -> str:
        """Asks the user to choose in each way."""
        return await elicited(context, "Please choose", ENUMS, required=False)


def _add_single_questions(server: MCPServer[Any]) -> None:
    @server.tool()
    async def test_input_required_result_elicitation(context: Context[Any, Any]) -> Outcome:
        """Asks for a name until it gets one."""
        answer = accepted(context, "user_name")
        if not answer or "name" not in answer:
            return InputRequiredResult(input_requests={"user_name": name_form()})
        return done(f"Hello, {answer['name']}!")

    @server.tool()
    async def test_streaming_elicitation(context: Context[Any, Any]) -> Outcome:
        """Asks for a name, whatever was answered."""
        return InputRequiredResult(input_requests={"user_name": name_form()})

    def ask_once(name: str, key: str, request: CreateMessageRequest | ListRootsRequest) -> None:
        async def call(context: Context[Any, Any]) -> Outcome:
            if key not in (context.input_responses or {}):
                return InputRequiredResult(input_requests={key: request})
            return done(f"Got {context.input_responses}")

        server.add_tool(call, name=name, description=f"Asks for {key}")

    ask_once("test_input_required_result_sampling", "capital_question", sampling("What is the capital of France?"))
    ask_once("test_input_required_result_list_roots", "client_roots", ListRootsRequest())

    @server.prompt()
    async def test_input_required_result_prompt(context: Context[Any, Any]) -> list[UserMessage] | InputRequiredResult:
        """A prompt that asks for its context."""
        answer = accepted(context, "user_context")
        if answer is None:
            question = form("What context should the prompt use?", {"context": {"type": "string"}})
            return InputRequiredResult(input_requests={"user_context": question})
        return [UserMessage(text(f"Use this context: {answer.get('context')}"))]


def _add_questions_with_state(server: MCPServer[Any]) -> None:
    def confirm(name: str) -> None:
        async def call(context: Context[Any, Any]) -> Outcome:
            if accepted(context, "confirm") is None or context.request_state != "asked":
                question = form("Please confirm", {"ok": {"type": "boolean"}})
                return InputRequiredResult(input_requests={"confirm": question}, request_state="asked")
            return done("state-ok")

        server.add_tool(call, name=name, description="Asks for a confirmation and keeps that it did")

    confirm("test_input_required_result_request_state")
    confirm("test_input_required_result_tampered_state")

    @server.tool()
    async def test_input_required_result_multiple_inputs(context: Context[Any, Any]) -> Outcome:
        """Asks for three things at once."""
        questions: Requests = {
            "user_name": name_form(),
            "greeting": sampling("Generate a greeting", 50),
            "client_roots": ListRootsRequest(),
        }
        if not questions.keys() <= (context.input_responses or {}).keys():
            return InputRequiredResult(input_requests=questions, request_state="asked")
        return done("All three were answered")

    @server.tool()
    async def test_input_required_result_multi_round(context: Context[Any, Any]) -> Outcome:
        """Asks two questions, one after the other."""
        if context.request_state is None:
            question = name_form("Step 1: What is your name?")
            return InputRequiredResult(input_requests={"step1": question}, request_state="step 1")
        if context.request_state == "step 1":
            colour = form("Step 2: What is your favorite color?", {"color": {"type": "string"}})
            return InputRequiredResult(input_requests={"step2": colour}, request_state="step 2")
        return done("Both steps were answered")


def _add_capability_checks(server: MCPServer[Any]) -> None:
    @server.tool()
    async def test_input_required_result_capabilities(context: Context[Any, Any]) -> Outcome:
        """Asks only what the client can answer."""
        can = context.client_capabilities
        questions: Requests = {}
        if can is not None and can.elicitation is not None:
            questions["user_name"] = name_form()
        if can is not None and can.sampling is not None:
            questions["capital_question"] = sampling("What is the capital of France?")
        if not questions or context.input_responses:
            return done("Nothing left to ask")
        return InputRequiredResult(input_requests=questions)

    @server.tool()
    async def test_missing_capability(context: Context[Any, Any]) -> str:
        """Works only with clients that can sample."""
        can = context.client_capabilities
        if can is None or can.sampling is None:
            needed: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs a client that can sample", needed)
        return "The client can sample"
