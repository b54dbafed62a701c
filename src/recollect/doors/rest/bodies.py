"""Bodies: what all requests have in common, chat messages as clients send them, and what answers leave out."""

from collections.abc import Mapping
from datetime import datetime
from types import NoneType
from typing import Annotated, Any, ClassVar

from fastapi import Request
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from recollect import checks
from recollect.doors import json_steps
from recollect.errors import Invalid


class Body(BaseModel):
    """The base of every request body: a field that it does not have is refused, and `true` is no number."""

    model_config = ConfigDict(extra="forbid", strict=True)

    passed_over: ClassVar[frozenset[str]] = frozenset()
    """Fields that clients are known to send and that we ignore."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_fields(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or cls.model_config.get("extra") != "forbid":
            return given
        # What the fields may be called, in their order.
        known: dict[str, None] = {}
        for name, field in cls.model_fields.items():
            alias = field.validation_alias
            choices = alias.choices if isinstance(alias, AliasChoices) else [name]
            known |= dict.fromkeys(choice for choice in choices if isinstance(choice, str))
        unknown = [name for name in given if name not in known]
        for name in unknown:
            if name not in cls.passed_over:
                raise _fault("extra_forbidden", no_such("field", name, known))
        return {name: value for name, value in given.items() if name in known} if unknown else given


def no_such(what: str, name: object, known: Mapping[str, None]) -> str:
    """The error message for an unknown name."""
    shown = str(name)[: checks.MAX_SHOWN_CHARACTERS].encode(errors="replace").decode()
    return f"Unknown {what} {shown!r}. {checks.nearest(shown, known)}"


def _fault(kind: str, sentence: str) -> PydanticCustomError:
    return PydanticCustomError(kind, "{sentence}", {"sentence": sentence})


DATE_TIME = WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-02-14T12:00:00Z"]})
# Pydantic alone would also take numbers, which the document does not allow.
Moment = Annotated[datetime, BeforeValidator(checks.moment), DATE_TIME]
SAID_AT = "When it was said; UTC if no time zone is given, now if omitted"


class ContentPart(BaseModel):
    """A part of a message's content. One that is not text (an image, a file, a tool call) is passed over."""

    model_config = ConfigDict(extra="ignore", strict=True)

    type: str = Field(examples=["text"])
    text: str | None = Field(None, examples=["I prefer dark mode."])


# Told apart here, because Pydantic would tell for each form why it is not that one.
_FORMS = {NoneType: "nothing", str: "text", list: "parts"}

Content = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[ContentPart], Tag("parts")] | Annotated[None, Tag("nothing")],
    Discriminator(
        lambda content: _FORMS.get(type(content)),
        custom_error_type="content_form",
        custom_error_message="content must be a string, a list of parts or null",
    ),
]


class ChatEntry(Body):
    """One message of a chat, as chat clients have it. Its content may be missing where it calls tools instead."""

    content: Content = Field(
        None,
        description="A string, or a list of parts (only parts of type `text` are used); null if the message only "
        "calls tools",
        examples=["I prefer dark mode."],
    )

    @model_validator(mode="before")
    @classmethod
    def _says_who_and_what(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        if given.get("role") is None:
            raise _fault("missing", "A message needs a role, such as 'user' or 'assistant'")
        if "content" not in given and not (given.get("tool_calls") or given.get("function_call")):
            raise _fault("missing", "A message needs content: a string, a list of parts, or null if it calls tools")
        return given

    def text(self) -> str:
        """The text of its content; empty if it has none."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return "\n".join(part.text for part in self.content if part.type == "text" and part.text)


async def read_json(request: Request) -> Any:
    """The body of a request, or a sentence that says how to send one."""
    body = await request.body()
    if not body:
        raise Invalid("The body is empty: send a JSON object, with the header Content-Type: application/json")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Invalid("The body must be JSON: send it with the header Content-Type: application/json")
    try:
        return await json_steps.read(body)
    except Invalid:
        raise
    except UnicodeDecodeError as problem:
        raise Invalid(f"The body is not UTF-8 from byte {problem.start} on: encode it as UTF-8") from problem
    except RecursionError as problem:
        raise Invalid("The body is nested too deeply: flatten it") from problem
    except ValueError as problem:
        raise Invalid(f"The body is not JSON: {checks.json_fault(problem)}") from problem


def only_if_set(*names: str) -> Any:
    """Leaves out of an answer what its contract does not know, unless it says something."""

    # Without a type of its result: it would take the place of the model's own in the published schema.
    def serialize(self: BaseModel, shape: SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]
        return {name: value for name, value in shape(self).items() if name not in names or value}

    return model_serializer(mode="wrap")(serialize)
