"""Fixture tools, resources and prompts that return each kind of content, as the conformance suite describes them."""

import asyncio
import base64
import io
import json
import struct
import wave
import zlib
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.types import (
    AudioContent,
    CallToolResult,
    Completion,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

PAUSE_SECONDS = 0.05


def _png() -> bytes:
    """One red pixel."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\x00\xff\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


def _wav() -> bytes:
    """A moment of silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(16))
    return file.getvalue()


PNG = _png()
IMAGE = ImageContent(type="image", data=base64.b64encode(PNG).decode(), mime_type="image/png")
AUDIO = AudioContent(type="audio", data=base64.b64encode(_wav()).decode(), mime_type="audio/wav")


def text(content: str) -> TextContent:
    return TextContent(type="text", text=content)


def embedded(uri: str, mime_type: str, content: str) -> EmbeddedResource:
    resource = TextResourceContents(uri=uri, mime_type=mime_type, text=content)
    return EmbeddedResource(type="resource", resource=resource)


def add_to(server: MCPServer[Any]) -> None:
    _add_tools(server)
    _add_tools_that_report(server)
    _add_resources(server)
    _add_prompts(server)


def _add_tools(server: MCPServer[Any]) -> None:
    def tool_returning(name: str, *content: Any) -> None:
        def call() -> CallToolResult:
            return CallToolResult(content=list(content))

        server.add_tool(call, name=name, description=f"Returns the fixture content of {name}")

    mixed = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    tool_returning("test_simple_text", text("This is a simple text response for testing."))
    tool_returning("test_image_content", IMAGE)
    tool_returning("test_audio_content", AUDIO)
    tool_returning(
        "test_embedded_resource",
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
    )
    tool_returning("test_multiple_content_types", text("Multiple content types test:"), IMAGE, mixed)

    @server.tool()
    def test_error_handling() -> str:
        """Always fails."""
        raise ToolError("This tool intentionally returns an error for testing")


def _add_tools_that_report(server: MCPServer[Any]) -> None:
    async def log_thrice(context: Context[Any, Any]) -> str:
        for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await context.info(line)
            await asyncio.sleep(PAUSE_SECONDS)
        return "Logged three times"

    for name in ("test_tool_with_logging", "test_logging_tool"):
        server.add_tool(log_thrice, name=name, description="Logs three times")

    @server.tool()
    async def test_tool_with_progress(context: Context[Any, Any]) -> str:
        """Reports progress three times."""
        for progress in (0, 50, 100):
            await context.report_progress(progress, 100)
            await asyncio.sleep(PAUSE_SECONDS)
        return "Progressed to the end"

    @server.tool()
    async def test_reconnection(context: Context[Any, Any]) -> str:
        """Closes its stream before it answers."""
        await context.close_sse_stream()
        await asyncio.sleep(PAUSE_SECONDS)
        return "Reconnected"

    @server.tool()
    async def test_trigger_tool_change(context: Context[Any, Any]) -> str:
        """Tells listeners that the list of tools changed."""
        await context.notify_tools_changed()
        return "Told"

    @server.tool()
    async def test_trigger_prompt_change(context: Context[Any, Any]) -> str:
        """Tells listeners that the list of prompts changed."""
        await context.notify_prompts_changed()
        return "Told"


def _add_resources(server: MCPServer[Any]) -> None:
    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        """A text that does not change."""
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        """An image that does not change."""
        return PNG

    @server.resource("test://watched-resource", mime_type="text/plain")
    def watched() -> str:
        """A text to subscribe to."""
        return "Watched resource content"

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> str:  # noqa: A002
        """Data by id."""
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]  # the SDK leaves it untyped
    async def complete(reference: Any, argument: Any, context: Any) -> Completion:
        return Completion(values=[], total=0, has_more=False)


def _add_prompts(server: MCPServer[Any]) -> None:
    @server.prompt()
    def test_simple_prompt() -> list[UserMessage]:
        """A prompt without arguments."""
        return [UserMessage(text("This is a simple prompt for testing."))]

    @server.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> list[UserMessage]:
        """A prompt with two arguments."""
        return [UserMessage(text(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]

    @server.prompt()
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803
        """A prompt with a resource inside."""
        resource = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
        return [UserMessage(resource), UserMessage(text("Please process the embedded resource above."))]

    @server.prompt()
    def test_prompt_with_image() -> list[UserMessage]:
        """A prompt with an image inside."""
        return [UserMessage(IMAGE), UserMessage(text("Please analyze the image above."))]
