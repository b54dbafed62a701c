"""OpenTelemetry spans with the names and attributes of the library contract."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode

from recollect.doors.recalls import Recollection

AttributeValue = str | bool | int | float | Sequence[str]

_tracer = trace.get_tracer("recollect")


@contextmanager
def operation(name: str) -> Iterator[Span]:
    """A span for one call; without an exporter it records nothing and costs next to nothing."""
    with _tracer.start_as_current_span(f"memory.{name}", record_exception=False, set_status_on_exception=False) as span:
        try:
            yield span
        except BaseException as problem:
            _describe(span, name, success=False)
            span.set_status(Status(StatusCode.ERROR, type(problem).__name__))
            raise
        _describe(span, name, success=True)


def annotate(span: Span, attributes: Mapping[str, AttributeValue]) -> None:
    """Set attributes, if anybody records them."""
    if span.is_recording():
        span.set_attributes(dict(attributes))


def keys(metadata: Mapping[str, object] | None) -> list[str]:
    """The names in some metadata, never its values."""
    return sorted(map(str, metadata)) if isinstance(metadata, Mapping) else []


def moment(value: object) -> str:
    """A time as ISO 8601, one without a zone as UTC; what is no time stays what it is."""
    if not isinstance(value, datetime):
        return str(value)
    return (value.replace(tzinfo=UTC) if value.tzinfo is None else value).isoformat()


def recalled(span: Span, found: Recollection) -> Recollection:
    """What a recall found, which the span counts."""
    annotate(span, {"result_count": len(found.memories), "pending": found.pending})
    return found


def _describe(span: Span, name: str, *, success: bool) -> None:
    annotate(
        span,
        {
            "service.name": "paias-memory-layer",
            "operation.type": name,
            "operation.success": success,
            "db.system": "postgresql",
        },
    )
