"""Every route keeps to the OpenAPI document that it is served with, whatever it is asked; `make fuzz` asks far more."""

from pathlib import Path

from recollect.storage import embedded
from tests.fuzz import fuzz
from tests.mcp_servers import serving


def test_no_request_meets_a_server_error_or_an_undocumented_answer(
    server: embedded.Lease, namespace: str, tmp_path: Path
) -> None:
    with (tmp_path / "log").open("w") as log, serving(namespace, log) as url:
        outcome = fuzz(url.removesuffix("/mcp"), "-n", "10", "--generation-deterministic", "--no-shrink")
    assert outcome.passed, outcome.report
    assert outcome.cases >= 200
    assert "Traceback" not in (tmp_path / "log").read_text()
