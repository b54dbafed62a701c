"""Where spans and figures go: to an OTLP collector if the environment names one, and to clients of /metrics.

The SDK and its exporters are an extra, imported here alone, and only by a server.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

from recollect import __version__, tasks, telemetry
from recollect.engine import Engine
from recollect.errors import Misconfigured, RecollectError

TRACES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
METRICS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")

INSTALL = "pip install 'recollect[telemetry]'"

# How old the number of waiting passages may be when it leaves.
WAITING_SECONDS = 15.0

# What is left is sent at the end, to a collector that answers.
LAST_EXPORT_SECONDS = 1.0

_log = logging.getLogger(__name__)


class _Scraped:
    """The figures of this process in the text form of Prometheus, if somebody keeps them."""

    write: Callable[[], tuple[bytes, str]] | None = None


def check() -> None:
    """Refuse an environment that asks for an export which cannot happen."""
    if not _wanted(TRACES) and not _wanted(METRICS):
        return
    if not _installed():
        raise Misconfigured(f"OTEL_EXPORTER_OTLP_ENDPOINT is set, but the exporter is not installed: {INSTALL}")
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    if protocol != "http/protobuf":
        raise Misconfigured(
            f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}, but Recollect exports only over http/protobuf: unset it "
            "and use the collector's port for HTTP, usually 4318"
        )


@asynccontextmanager
async def exporting(engine: Engine, *, scraped: bool) -> AsyncIterator[None]:
    """Export what happens in this process; `scraped` also keeps figures for /metrics."""
    traces, pushed = _wanted(TRACES), _wanted(METRICS)
    if _disabled() or not _installed() or not (traces or pushed or scraped):
        yield
        return
    stops = _start(traces=traces, pushed=pushed, scraped=scraped)
    measuring = tasks.BackgroundTask("recollect-measuring")
    if pushed:
        measuring.start(_measure_often(engine))
    try:
        yield
    finally:
        await measuring.stop()
        await tasks.ended_within(LAST_EXPORT_SECONDS, _stop_all(stops))


async def _stop_all(stops: list[Callable[[], Any]]) -> None:
    await asyncio.gather(*(tasks.in_thread(stop) for stop in stops))


def missing() -> str | None:
    """Why this process keeps no figures for /metrics, in a sentence; None if it does."""
    if _Scraped.write is not None:
        return None
    if _disabled():
        return "Metrics are off, because OTEL_SDK_DISABLED is set: unset it and restart the server"
    return f"Metrics need an extra that is not installed: {INSTALL}, then restart the server"


async def scrape(engine: Engine) -> tuple[bytes, str]:
    """The figures of this process, and the type of their text."""
    assert _Scraped.write is not None, missing()
    await _measure(engine)
    return _Scraped.write()


def _start(*, traces: bool, pushed: bool, scraped: bool) -> list[Callable[[], Any]]:
    """Begin to note what happens. Returns what to call at the end.

    The providers are ours alone, not the global ones, by which libraries would tell what callers say.
    """
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    # What we give would replace what the environment says.
    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    name = {} if named else {"service.name": "recollect"}
    resource = Resource.create(name | {"service.version": __version__, "service.instance.id": str(uuid4())})
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    readers: list[Any] = []
    if traces:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    if pushed:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter()))
    if scraped:
        readers.append(_scraped_reader())
    meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
    tracer = tracers.get_tracer(telemetry.SCOPE, __version__) if traces else None
    telemetry.observe(tracer, meters.get_meter(telemetry.SCOPE, __version__))
    return [tracers.shutdown, meters.shutdown]


def _scraped_reader() -> Any:
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

    registry = CollectorRegistry()
    _Scraped.write = lambda: (generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4)
    return PrometheusMetricReader(registry=registry, scope_info_enabled=False)


async def _measure_often(engine: Engine) -> None:
    while True:
        try:
            await _measure(engine)
        except RecollectError as problem:
            _log.warning("Could not count the waiting passages: %s", problem)
        await asyncio.sleep(WAITING_SECONDS)


async def _measure(engine: Engine) -> None:
    telemetry.passages_waiting(await engine.indexer.waiting_anywhere())


def _wanted(names: tuple[str, ...]) -> bool:
    return not _disabled() and any(os.environ.get(name) for name in names)


def _disabled() -> bool:
    return os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"


def _installed() -> bool:
    modules = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http", "prometheus_client")
    try:
        return all(find_spec(module) is not None for module in modules)
    except ModuleNotFoundError:
        return False
