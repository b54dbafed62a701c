"""Recollect's own tools for the golden set, which measures hybrid search and which judgements can extend."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from recollect.doors.caller import Caller
from recollect.doors.mcp.errors import as_object
from recollect.doors.mcp.schema import WHOLE
from recollect.doors.mcp.tool import DELETES, MERGES, READS, Tools
from recollect.flows.cognitive.golden_test import Entry
from recollect.language.lengths import length_of

TOOLS = Tools(as_object)

QueryId = Annotated[int, Field(ge=1, description="Id of a golden query"), WHOLE]


class AddedGoldenQuery(BaseModel):
    """A golden query, and what adding it changed."""

    query_id: int
    expected_ids: list[int]
    change: Literal["added", "changed", "unchanged"]
    expected_before: list[int] | None


class GoldenQuery(BaseModel):
    """A golden query; one without expected insights is there to be judged."""

    query_id: int
    query: str
    expected_ids: list[int]
    query_type: Literal["short", "medium", "long"]


class RemovedGoldenQuery(BaseModel):
    """The query that was removed."""

    query_id: int
    removed: Literal[True] = True


class AcceptedJudgements(BaseModel):
    """The expected insights of a golden query now, and the outcome for each judged document."""

    query_id: int
    expected_ids: list[int]
    added: list[int]
    already_expected: list[int]
    irrelevant: list[int]
    disputed: list[int]
    unknown: list[int]


@TOOLS.tool("Add golden query", MERGES)
async def add_golden_query(
    caller: Caller,
    query: Annotated[str, Field(min_length=1, description="Search query")],
    expected_ids: Annotated[
        Annotated[list[Annotated[int, WHOLE]], Field(fail_fast=True)] | None,
        Field(description="Ids of the insights it should find; if omitted, an existing query keeps its current ids"),
    ] = None,
) -> AddedGoldenQuery:
    """Add a query to the golden set, or change its expected insights. Returns the previous ones."""
    (put,) = await caller.engine.golden_test.add(caller.namespace, [Entry(query, expected_ids)])
    return AddedGoldenQuery(
        query_id=put.id, expected_ids=put.expected_ids, change=put.change, expected_before=put.expected_before
    )


@TOOLS.tool("List golden queries", READS)
async def list_golden_queries(caller: Caller) -> list[GoldenQuery]:
    """List the queries of the golden set with their expected insights."""
    return [
        GoldenQuery(
            query_id=each.id, query=each.query, expected_ids=each.expected_ids, query_type=length_of(each.query)
        )
        for each in await caller.engine.golden_test.queries(caller.namespace)
    ]


@TOOLS.tool("Remove golden query", DELETES)
async def remove_golden_query(caller: Caller, query_id: QueryId) -> RemovedGoldenQuery:
    """Remove a query and its judgements from the golden set."""
    await caller.engine.golden_test.remove(caller.namespace, query_id)
    return RemovedGoldenQuery(query_id=query_id)


@TOOLS.tool("Accept judgements", MERGES)
async def accept_judgements(caller: Caller, query_id: QueryId) -> AcceptedJudgements:
    """Add the insights that both judges of store_dual_judge_scores found relevant (above 0.5) to a golden query.
    Insights it already expects are kept."""
    accepted = await caller.engine.ground_truth.accept(caller.namespace, query_id)
    return AcceptedJudgements(
        query_id=query_id,
        expected_ids=accepted.query.expected_ids,
        added=accepted.added,
        already_expected=accepted.already_expected,
        irrelevant=accepted.irrelevant,
        disputed=accepted.disputed,
        unknown=accepted.unknown,
    )
