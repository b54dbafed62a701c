"""The conformance suite of LangGraph's checkpointers, with ours in the place of the one in memory."""

from typing import Any

import pytest
from langgraph.checkpoint.conformance import checkpointer_test
from langgraph.checkpoint.conformance.report import CapabilityReport
from recollect_stores import own_connection, replace_names

from recollect.adapters.langgraph import RecollectSaver


@checkpointer_test(name="RecollectSaver")
async def saver() -> Any:
    with RecollectSaver(connection=own_connection()) as made:
        yield made


def passed_everything(report: CapabilityReport) -> bool:
    """The makers ask for what every checkpointer must have; ours has all that they know."""
    return all(result.passed is True for result in report.results.values())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    replace_names(items, {"memory_checkpointer": saver})
    CapabilityReport.passed_all_base = passed_everything
