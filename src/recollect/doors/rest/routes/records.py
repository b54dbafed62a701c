"""`POST /records/batch`: JSON values under a path and a key, read, written, searched and listed in one request."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from fastapi import Request, Response
from pydantic import BaseModel, Field

from recollect.checks import MAX_OWN_DIMENSIONS
from recollect.doors.rest import degraded
from recollect.doors.rest.bodies import Body
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routing import Route, Router
from recollect.flows.keyed import operations
from recollect.flows.keyed.records import Answer
from recollect.memory.keyed_records import StoredRecord

router = Router(tags=["records"], route_class=Route, responses=responses())

Label = Annotated[str, Field(min_length=1)]
Path = Annotated[
    list[Label], Field(max_length=operations.MAX_LABELS, description="Labels", examples=[["users", "anna"]])
]
FullPath = Annotated[Path, Field(min_length=1)]
Key = Annotated[str, Field(min_length=1, description="Names the record in its path", examples=["travel"])]
Vector = Annotated[list[float], Field(min_length=1, max_length=MAX_OWN_DIMENSIONS)]
Limit = Annotated[int, Field(ge=1, le=operations.MAX_LIMIT)]
Offset = Annotated[int, Field(ge=0, le=operations.MAX_OFFSET)]

REFRESH = "Whether being read lets a record with a time to live start it anew"
FILTER = (
    "Conditions on the fields of the values: a value that the field must have, or operators such as "
    f'{{"$gte": 3}}, which are {", ".join(operations.OPERATORS)}'
)


class GetOperation(Body):
    """Read one record."""

    op: Literal["get"]
    path: FullPath
    key: Key
    refresh: bool = Field(True, description=REFRESH)

    def asked(self) -> operations.Operation:
        return operations.GetRecord(tuple(self.path), self.key, self.refresh)


class PutOperation(Body):
    """Store a value, in place of an earlier one."""

    op: Literal["put"]
    path: FullPath
    key: Key
    value: Any = Field(description="Any JSON value; it comes back as it was sent", examples=[{"seat": "window"}])
    texts: list[str] | None = Field(
        None,
        max_length=operations.MAX_TEXTS,
        description="What the record is found by: everything that the value says if omitted, nothing if empty",
    )
    vectors: list[Vector] = Field(
        default_factory=list,
        max_length=operations.MAX_TEXTS,
        description="Vectors of your own model, for searches with `vector`",
    )
    ttl_minutes: float | None = Field(
        None,
        gt=0,
        le=operations.MAX_TTL_MINUTES,
        description="Minutes after which the record is gone; never if omitted",
    )

    def asked(self) -> operations.Operation:
        return operations.PutRecord(tuple(self.path), self.key, self.value, self.texts, self.vectors, self.ttl_minutes)


class DeleteOperation(Body):
    """Delete one record."""

    op: Literal["delete"]
    path: FullPath
    key: Key

    def asked(self) -> operations.Operation:
        return operations.DeleteRecord(tuple(self.path), self.key)


class SearchOperation(Body):
    """Search the records under a path; without a query or a vector, the last changed come first."""

    op: Literal["search"]
    path: Path = Field(default_factory=list)
    query: str | None = Field(
        None, description="A question, for keyword and semantic search combined", examples=["Where does she sit?"]
    )
    vector: Vector | None = Field(
        None, description="The query as a vector of your own model; records are ordered by theirs alone"
    )
    distance: Literal["cosine", "inner_product", "l2"] = Field("cosine", description="How to compare `vector`")
    filter: dict[str, Any] | None = Field(None, description=FILTER, examples=[{"seat": "window"}])
    limit: Limit = 10
    offset: Offset = 0
    refresh: bool = Field(True, description=REFRESH)

    def asked(self) -> operations.Operation:
        return operations.SearchRecords(
            tuple(self.path),
            self.query,
            self.vector,
            self.distance,
            self.filter,
            self.limit,
            self.offset,
            self.refresh,
        )


class PathPattern(Body):
    """How a path begins or ends; `*` stands for any label."""

    match: Literal["prefix", "suffix"]
    path: Path

    def asked(self) -> operations.Pattern:
        return operations.Pattern(self.match, tuple(self.path))


class PathsOperation(Body):
    """List the paths that have records."""

    op: Literal["paths"]
    patterns: list[PathPattern] = Field(
        default_factory=list, max_length=operations.MAX_PATTERNS, description="A path must match all of them"
    )
    max_depth: int | None = Field(
        None, ge=1, le=operations.MAX_LABELS, description="Cut paths to so many labels, and list each once"
    )
    limit: Limit = 100
    offset: Offset = 0

    def asked(self) -> operations.Operation:
        return operations.ListPaths(
            tuple(pattern.asked() for pattern in self.patterns), self.max_depth, self.limit, self.offset
        )


class RecordBatch(Body):
    """Operations on the records of one user, or of nobody."""

    user_id: str | None = Field(
        None, min_length=1, description="Whose records; they are forgotten with the user", examples=["user-42"]
    )
    operations: list[
        Annotated[
            GetOperation | PutOperation | DeleteOperation | SearchOperation | PathsOperation, Field(discriminator="op")
        ]
    ] = Field(min_length=1, max_length=operations.MAX_OPERATIONS)


class RecordAnswer(BaseModel):
    """A record; in the answer to a put, without its value."""

    id: str
    path: list[str]
    key: str
    value: Any = Field(None, exclude_if=lambda value: isinstance(value, _Left))
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    score: float | None = Field(None, description="How well it answers the query: from 0 to 1 if that is a text")

    @classmethod
    def of(cls, record: StoredRecord, *, with_value: bool = True) -> Self:
        return cls(
            id=str(record.id),
            path=record.path,
            key=record.key,
            value=record.value if with_value else _Left(),
            created_at=record.created_at,
            updated_at=record.updated_at,
            expires_at=record.expires_at,
            score=record.score,
        )


class _Left:
    """What stands for a value that is not sent back."""


class OperationAnswer(BaseModel):
    """What became of an operation; which of the fields is set depends on it."""

    record: RecordAnswer | None = Field(None, description="Of a get or a put; null if there is none")
    deleted: bool | None = Field(None, description="Of a delete: whether there was such a record")
    records: list[RecordAnswer] | None = Field(None, description="Of a search, the best first")
    paths: list[list[str]] | None = Field(None, description="Of `paths`, in order")

    @classmethod
    def of(cls, operation: Body, answer: Answer) -> Self:
        if isinstance(answer, StoredRecord):
            return cls(record=RecordAnswer.of(answer, with_value=not isinstance(operation, PutOperation)))
        if isinstance(answer, bool):
            return cls(deleted=answer)
        if answer is None:
            return cls()
        if isinstance(operation, PathsOperation):
            return cls(paths=[path for path in answer if isinstance(path, list)])
        return cls(records=[RecordAnswer.of(record) for record in answer if isinstance(record, StoredRecord)])


class BatchAnswer(BaseModel):
    """The answers, in the order of the operations."""

    answers: list[OperationAnswer]
    degraded: str | None = Field(None, description="Why a text was not embedded or only keyword search was used")


@router.post("/records/batch", responses={200: {"headers": degraded.DOCUMENTED}})
async def batch_records(request: Request, body: RecordBatch, response: Response) -> BatchAnswer:
    """Get, put, delete, search and list records, all or none; reads see what was there before the writes."""
    caller = calling(request)
    asked = [operation.asked() for operation in body.operations]
    batch = await caller.engine.record_store.batch(caller.namespace, asked, body.user_id)
    degraded.tell(response, batch.degraded)
    return BatchAnswer(
        answers=[OperationAnswer.of(*each) for each in zip(body.operations, batch.answers, strict=True)],
        degraded=batch.degraded,
    )
