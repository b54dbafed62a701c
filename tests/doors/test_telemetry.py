"""What a server tells a collector and Prometheus, seen by a real receiver of OTLP over HTTP; and what it does not."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from mcp import StdioServerParameters, stdio_client
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from recollect.settings import Settings
from tests.commands import RECOLLECT, recollect
from tests.doors.test_serve import serving
from tests.mcp_servers import connected, environment

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

SECRETS = ("marzipan", "nougat", "quince", "toffee", "caramel")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class Collector:
    """Everything that was sent to it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.received: list[tuple[str, bytes]] = []

    def spans(self) -> list[Any]:
        messages = [ExportTraceServiceRequest.FromString(body) for path, body in self.received if path == "/v1/traces"]
        return [s for m in messages for r in m.resource_spans for scope in r.scope_spans for s in scope.spans]

    def metrics(self) -> dict[str, Any]:
        """The last state of each."""
        messages = [ExportMetricsServiceRequest.FromString(b) for path, b in self.received if path == "/v1/metrics"]
        found = [m for x in messages for r in x.resource_metrics for scope in r.scope_metrics for m in scope.metrics]
        return {metric.name: metric for metric in found}


@pytest.fixture
def collector() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            server.kept.received.append((self.path, body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_CONNECT = do_GET = do_POST  # noqa: N815

        def log_message(self, *values: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        kept: Collector

    with Server(("127.0.0.1", 0), Handler) as server:
        server.kept = Collector(f"http://127.0.0.1:{server.server_address[1]}")
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server.kept
        server.shutdown()
        thread.join()


def attributes(thing: Any) -> dict[str, Any]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in thing.attributes}


def use(url: str) -> None:
    """Store, search and miss, with secrets in every place where a caller can put one."""
    with httpx.Client(base_url=url, timeout=60, headers={"User-Agent": "nougat"}) as client:
        memory = {"messages": "Ann likes marzipan.", "category": "fact", "user_id": "quince", "metadata": {"toffee": 1}}
        stored = client.post("/ltm/memories", json=memory)
        assert stored.status_code == 200, stored.text
        trace = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        found = client.post("/ltm/memories/search", json={"query": "marzipan", "user_id": "quince"}, headers=trace)
        assert found.status_code == 200, found.text
        assert client.get(f"/ltm/memories/{stored.json()['id']}").status_code == 200
        assert client.get(f"/ltm/memories/{stored.json()['id']}?caramel=1").status_code == 422
        assert client.get("/ltm/memories/nougat").status_code in (404, 422)
        assert client.get("/caramel").status_code == 404
        assert client.request("MARZIPAN", "/health").status_code == 405
        assert client.get("/ready", headers={"Authorization": "Bearer rk_marzipan"}).status_code == 401


def test_spans_and_figures_reach_the_collector_without_anything_that_a_caller_said(
    settings: Settings, namespace: str, collector: Collector
) -> None:
    with serving(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_SERVICE_NAME="memory-of-tests") as (url, process):
        use(url)
        with connected(f"{url}/mcp", namespace) as client:
            client.ok("remember", text="toffee")
            client.ok("store_raw_dialogue", session_id="quince", speaker="nougat", content="marzipan")
            assert client.call("caramel", {"nougat": 1}).is_error
            client.refused("forget", id="document:nougat")
        process.terminate()
        process.communicate(timeout=30)

    spans = {(span.name, attributes(span).get("http.response.status_code")): span for span in collector.spans()}
    names = {name for name, _ in spans}
    assert {"POST /ltm/memories", "create_memory", "search_memory", "_OTHER /health", "tools/call remember"} <= names
    found = attributes(spans["search_memory", None])
    assert found["gen_ai.operation.name"] == "search_memory"
    assert found["gen_ai.memory.store.id"] == namespace
    assert found["gen_ai.memory.record.count"] == 1
    request = spans["POST /ltm/memories/search", 200]
    assert request.trace_id.hex() == TRACE
    assert spans["search_memory", None].trace_id.hex() == TRACE
    assert attributes(request)["recollect.door"] == "rest"
    assert attributes(spans["tools/call forget", None])["error.type"] == "tool_error"
    assert ("GET", 404) in spans

    metrics = collector.metrics()
    assert {
        "http.server.request.duration",
        "mcp.server.operation.duration",
        "gen_ai.client.operation.duration",
        "recollect.messages.stored",
        "recollect.recalls",
        "recollect.passages.indexed",
        "recollect.passages.waiting",
    } <= set(metrics)
    points = metrics["http.server.request.duration"].histogram.data_points
    assert {
        (a["http.route"], a["http.response.status_code"]) for a in map(attributes, points) if "http.route" in a
    } >= {
        ("/ltm/memories", 200),
        ("/ltm/memories/{memory_id}", 200),
        ("/mcp", 200),
    }
    assert sum(p.as_int for p in metrics["recollect.recalls"].sum.data_points) >= 1

    sent = b"".join(body for _, body in collector.received).decode(errors="replace").lower()
    assert "memory-of-tests" in sent
    assert [secret for secret in SECRETS if secret in sent] == []


def test_over_stdio_spans_and_figures_leave_before_the_server_does(
    settings: Settings, namespace: str, collector: Collector, tmp_path: Path
) -> None:
    variables = environment(namespace) | {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    with (tmp_path / "log").open("w") as log:
        parameters = StdioServerParameters(command=str(RECOLLECT), args=["mcp"], env=variables)
        with connected(stdio_client(parameters, log), namespace) as client:
            client.ok("store_raw_dialogue", session_id="quince", speaker="nougat", content="marzipan")
            client.read("memory://working-memory")
    assert {"tools/call store_raw_dialogue", "resources/read"} <= {span.name for span in collector.spans()}
    assert collector.metrics()["recollect.messages.stored"].sum.data_points[0].as_int == 1
    sent = b"".join(body for _, body in collector.received).decode(errors="replace").lower()
    assert [secret for secret in SECRETS if secret in sent] == []


@pytest.mark.parametrize("disabled", [False, True])
def test_nothing_leaves_unless_an_endpoint_is_set(
    settings: Settings, collector: Collector, monkeypatch: pytest.MonkeyPatch, disabled: bool
) -> None:
    """Whatever a server wanted to send, it would have to send through this proxy."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, collector.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://192.0.2.1:4318", "OTEL_SDK_DISABLED": "true"}
    environment = endpoint if disabled else {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}
    with serving(is_installed=False, **environment) as (url, process):
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
            assert client.get("/ready").status_code == 200
            assert client.get("/metrics").status_code == (501 if disabled else 200)
        process.terminate()
        process.communicate(timeout=30)
    assert collector.received == []


def test_prometheus_reads_the_figures_of_the_process(settings: Settings, namespace: str) -> None:
    with serving() as (url, _):
        use(url)
        answer = httpx.get(f"{url}/metrics", timeout=60)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain")
        families = {family.name: family for family in text_string_to_metric_families(answer.text)}
        durations = families["http_server_request_duration_seconds"]
        counts = {
            (s.labels["http_route"], s.labels["http_response_status_code"]): s.value
            for s in durations.samples
            if s.name.endswith("_count")
        }
        assert counts["/ltm/memories/search", "200"] == 1
        assert counts["", "404"] == 1
        assert families["recollect_recalls"].samples[0].value >= 1
        assert families["recollect_passages_waiting"].type == "gauge"
        assert [secret for secret in SECRETS if secret in answer.text.lower()] == []
        assert namespace not in answer.text
        created = recollect("keys", "create")
        assert created.returncode == 0, created.stderr
        # Within the two seconds for which a server believes that a namespace has no key.
        key = {"Authorization": f"Bearer {created.stdout.strip()}"}
        assert httpx.get(f"{url}/metrics", headers={"Authorization": "Bearer wrong"}, timeout=60).status_code == 401
        assert httpx.get(f"{url}/metrics", headers=key, timeout=60).status_code == 200


WITHOUT_THE_EXTRA = """
import sys
sys.modules["opentelemetry.sdk"] = None
from recollect.doors.cli.main import main
sys.argv = ["recollect", *sys.argv[1:]]
main()
"""


@contextmanager
def without_the_extra(*arguments: str, **variables: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", WITHOUT_THE_EXTRA, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | variables,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.parametrize("command", ["serve", "mcp"])
def test_an_endpoint_without_the_extra_is_a_sentence_with_the_command(settings: Settings, command: str) -> None:
    with without_the_extra(command, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1") as process:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "pip install 'recollect[telemetry]'" in errors
        assert "Traceback" not in errors


def test_another_protocol_of_otlp_is_a_sentence(settings: Settings) -> None:
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    result = subprocess.run(
        [RECOLLECT, "serve", "--port", "0"], capture_output=True, text=True, timeout=60, env=os.environ | variables
    )
    assert result.returncode == 1
    assert "only over http/protobuf" in result.stderr


def test_without_the_extra_a_server_serves_and_says_what_metrics_need(settings: Settings) -> None:
    with without_the_extra("serve", "--port", "0") as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        assert httpx.get(f"{url}/ready", timeout=60).status_code == 200
        answer = httpx.get(f"{url}/metrics", timeout=60)
        assert answer.status_code == 501
        assert "pip install 'recollect[telemetry]'" in answer.json()["detail"]
