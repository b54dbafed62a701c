"""Spans and figures of what a server does, through OpenTelemetry's API; nothing is noted unless a server exports it.

Names follow the semantic conventions of HTTP, MCP and GenAI memory operations. No text, id, key or question of a caller
is ever an attribute: routes are named by their patterns, and a memory store by its namespace.
"""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, Literal, TypeVar, cast

from opentelemetry import trace
from opentelemetry.metrics import Histogram, Meter
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

from recollect.errors import category

SCOPE = "recollect"

Operation = Literal["create_memory", "search_memory", "update_memory", "upsert_memory", "delete_memory"]

Method = TypeVar("Method", bound=Callable[..., Awaitable[Any]])

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"})

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)


class _Observer:
    """Somebody who looks. It has a tracer and a meter of its own: libraries that we use trace by the global ones, and
    put paths, queries and texts of errors into their spans."""

    def __init__(self, tracer: Tracer | None, meter: Meter) -> None:
        self.tracer = tracer
        self.requests = _durations(meter, "http.server.request.duration", "HTTP requests, by route and door")
        self.mcp = _durations(meter, "mcp.server.operation.duration", "MCP requests, by method and tool")
        self.operations = _durations(meter, "gen_ai.client.operation.duration", "Operations on memory")
        self.stored = meter.create_counter("recollect.messages.stored", "{message}", "Messages stored")
        self.recalls = meter.create_counter("recollect.recalls", "{recall}", "Searches answered")
        self.indexed = meter.create_counter("recollect.passages.indexed", "{passage}", "Passages that were embedded")
        self.waiting = meter.create_gauge(
            "recollect.passages.waiting", "{passage}", "Passages waiting to be embedded, in all namespaces"
        )


class _Here:
    """Who looks at this process. The library has the spans of its contract, and its callers get no others."""

    observer: _Observer | None = None


def observe(tracer: Tracer | None, meter: Meter) -> None:
    """From now on, note what happens in this process; without a tracer, figures alone."""
    _Here.observer = _Observer(tracer, meter)


def memory_operation(name: Operation, count: Callable[[Any], int] | None = None) -> Callable[[Method], Method]:
    """Note each call of a method whose first argument is a namespace; `count` tells the records of its result."""

    def noting(method: Method) -> Method:
        @wraps(method)
        async def noted(self: object, namespace: str, *values: Any, **options: Any) -> Any:
            observer = _Here.observer
            if observer is None:
                return await method(self, namespace, *values, **options)
            attributes = {"gen_ai.operation.name": name, "gen_ai.provider.name": SCOPE}
            store = {"gen_ai.memory.store.id": namespace}
            with (
                _span(observer, name, SpanKind.INTERNAL, attributes | store) as span,
                _measured(span, observer.operations, attributes),
            ):
                result = await method(self, namespace, *values, **options)
                if count is not None:
                    span.set_attribute("gen_ai.memory.record.count", count(result))
            if name == "search_memory":
                observer.recalls.add(1)
            return result

        return cast(Method, noted)

    return noting


def messages_stored(count: int) -> None:
    """So many messages are durable."""
    if _Here.observer is not None:
        _Here.observer.stored.add(count)


def passages_indexed(count: int) -> None:
    """Count embedded passages."""
    if _Here.observer is not None:
        _Here.observer.indexed.add(count)


def passages_waiting(count: int) -> None:
    """So many passages wait, in all namespaces."""
    if _Here.observer is not None:
        _Here.observer.waiting.set(count)


def known_method(method: str) -> str:
    """The method of a request as lines, spans and figures have it: any other is the caller's own text."""
    return method if method in _METHODS else "_OTHER"


class Incoming:
    """An HTTP request that is being answered."""

    def __init__(self, observer: _Observer | None, span: Span) -> None:
        self._observer = observer
        self._span = span

    def answered(self, method: str, scheme: str, route: str | None, door: str, status: int, seconds: float) -> None:
        """Note how it ended; a status of 0 means that the client was gone before there was an answer."""
        if self._observer is None:
            return
        method = known_method(method)
        attributes: dict[str, str | int] = {"http.request.method": method, "url.scheme": scheme, "recollect.door": door}
        if route is not None:
            attributes["http.route"] = route
        if status:
            attributes["http.response.status_code"] = status
        if not status or status >= 500:
            attributes["error.type"] = str(status) if status else "no_answer"
            self._span.set_status(StatusCode.ERROR)
        self._span.update_name(f"{method} {route}" if route else method)
        self._span.set_attributes(attributes)
        self._observer.requests.record(seconds, attributes)


@contextmanager
def incoming(headers: Mapping[str, str]) -> Iterator[Incoming]:
    """A span around one HTTP request, within the trace of its caller if the headers name one."""
    observer = _Here.observer
    if observer is None:
        yield Incoming(None, trace.INVALID_SPAN)
        return
    with _span(observer, "HTTP", SpanKind.SERVER, carrier=headers) as span:
        yield Incoming(observer, span)


@contextmanager
def mcp_request(method: str, tool: str | None, meta: Mapping[str, Any] | None) -> Iterator[Callable[[], None]]:
    """A span around one MCP request; the names are ours, not the client's. Gives what to call if a tool refuses."""
    observer = _Here.observer
    if observer is None:
        yield lambda: None
        return
    attributes = {"mcp.method.name": method}
    if tool is not None:
        attributes |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
    with (
        _span(observer, f"{method} {tool}" if tool else method, SpanKind.SERVER, attributes, meta) as span,
        _measured(span, observer.mcp, attributes) as failed,
    ):
        yield lambda: failed("tool_error")


@contextmanager
def _measured(span: Span, histogram: Histogram, attributes: Mapping[str, str]) -> Iterator[Callable[[str], None]]:
    """Record how long it took; a failure is recorded by its category, because its sentence may quote the caller."""
    noted = dict(attributes)
    began = time.perf_counter()

    def failed(category: str) -> None:
        noted["error.type"] = category
        span.set_attribute("error.type", category)
        span.set_status(StatusCode.ERROR)

    try:
        yield failed
    except BaseException as problem:
        failed(category(problem))
        raise
    finally:
        histogram.record(time.perf_counter() - began, noted)


@contextmanager
def _span(
    observer: _Observer,
    name: str,
    kind: SpanKind,
    attributes: Mapping[str, str] | None = None,
    carrier: Mapping[str, Any] | None = None,
) -> Iterator[Span]:
    if observer.tracer is None:
        yield trace.INVALID_SPAN
        return
    context = None
    if carrier:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        # The trace that a caller names, if it names one that is valid.
        named = {key: value for key in ("traceparent", "tracestate") if isinstance(value := carrier.get(key), str)}
        extracted = TraceContextTextMapPropagator().extract(named)
        context = extracted if trace.get_current_span(extracted).get_span_context().is_valid else None
    with observer.tracer.start_as_current_span(
        name,
        context=context,
        kind=kind,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        yield span


def _durations(meter: Meter, name: str, what: str) -> Histogram:
    return meter.create_histogram(name, "s", f"{what}: seconds", explicit_bucket_boundaries_advisory=_SECONDS)
