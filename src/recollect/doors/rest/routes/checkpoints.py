"""`/checkpoints`: the state of an agent's threads, kept for the framework that runs them; bytes travel as base64."""

from base64 import b64encode
from binascii import Error, a2b_base64
from typing import Annotated, Any, Literal, Self

from fastapi import Path as InPath
from fastapi import Request
from pydantic import BaseModel, Field

from recollect import checks
from recollect.doors.rest.bodies import Body
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routing import Route, Router
from recollect.errors import Invalid
from recollect.flows.keyed import checkpoints
from recollect.memory.checkpoints import (
    NewCheckpoint,
    Packed,
    Place,
    StoredCheckpoint,
    TaskWrites,
    Which,
)

router = Router(tags=["checkpoints"], route_class=Route, responses=responses())

Name = Annotated[str, Field(max_length=checkpoints.MAX_NAME_BYTES)]
Id = Annotated[Name, Field(min_length=1)]
Ids = Annotated[list[Id], Field(max_length=checkpoints.MAX_THREADS)]
ThreadId = Annotated[str, InPath(description="The thread, by the id that the framework gives it")]
GRAPH = "The graph inside the graph, as the framework names it; empty for the whole"


class PackedValue(Body):
    """A value as the framework packed it."""

    type: Name = Field(description="How it is packed", examples=["msgpack"])
    body: str = Field(description="Its bytes, in base64", examples=["gaFhAQ=="])

    def unpacked(self) -> Packed:
        try:
            return Packed(self.type, a2b_base64(self.body, strict_mode=True))
        except (Error, ValueError) as problem:
            raise Invalid(f"body is not base64: {problem}") from problem

    @classmethod
    def of(cls, value: Packed) -> Self:
        return cls(type=value.type, body=b64encode(value.body).decode())


class PutCheckpoint(Body):
    """A checkpoint, with those values that are new in it."""

    checkpoint_ns: Name = Field("", description=GRAPH)
    checkpoint_id: Id
    parent_id: Id | None = None
    user_id: Id | None = Field(None, description="Whose thread it is; it is forgotten with the user")
    checkpoint: PackedValue
    versions: dict[str, str] = Field(default_factory=dict, description="The version of each channel")
    values: dict[str, PackedValue] = Field(default_factory=dict, description="New values, by channel")
    metadata: dict[str, Any] = Field(default_factory=dict, description="What lists can be filtered by")


class Write(Body):
    """What a task wrote to a channel."""

    idx: int = Field(ge=-(2**31), lt=2**31, description="Its place among the writes of the task")
    channel: Name
    value: PackedValue


class PutWrites(Body):
    """What a task wrote to a checkpoint."""

    checkpoint_ns: Name = Field("", description=GRAPH)
    checkpoint_id: Id
    task_id: Id
    task_path: Name = ""
    writes: list[Write] = Field(max_length=checkpoints.MAX_CHANNELS)
    replace: bool = Field(False, description="Whether they take the place of what the task wrote before")


class Behind(Body):
    """The last checkpoint of the page before."""

    thread_id: Id
    checkpoint_ns: Name
    checkpoint_id: Id


class ListCheckpoints(Body):
    """Which checkpoints to list; omitted fields match everything."""

    thread_id: Id | None = None
    checkpoint_ns: Name | None = Field(None, description=GRAPH)
    checkpoint_id: Id | None = None
    before: Id | None = Field(None, description="Only checkpoints with a smaller id")
    filter: dict[str, Any] | None = Field(None, description="Only checkpoints whose metadata contains this")
    behind: Behind | None = Field(None, description="For the next page: the last checkpoint of this one")
    limit: int = Field(checkpoints.MAX_PAGE, ge=1, le=checkpoints.MAX_PAGE)


class StoredTaskWrite(BaseModel):
    """What a task wrote to a channel."""

    task_id: str
    channel: str
    value: PackedValue


class CheckpointAnswer(BaseModel):
    """A checkpoint, with the values of its channels and what tasks have written since."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    parent_id: str | None
    checkpoint: PackedValue
    metadata: dict[str, Any]
    values: dict[str, PackedValue]
    writes: list[StoredTaskWrite]

    @classmethod
    def of(cls, stored: StoredCheckpoint) -> Self:
        return cls(
            **stored.place._asdict(),
            parent_id=stored.parent_id,
            checkpoint=PackedValue.of(stored.body),
            metadata=dict(stored.metadata),
            values={channel: PackedValue.of(value) for channel, value in stored.values.items()},
            writes=[
                StoredTaskWrite(task_id=each.task_id, channel=each.channel, value=PackedValue.of(each.value))
                for each in stored.writes
            ],
        )


class CheckpointList(BaseModel):
    """Checkpoints, the newest first."""

    checkpoints: list[CheckpointAnswer]


class CheckpointsStored(BaseModel):
    """The checkpoint or what was written to it is stored."""

    stored: Literal[True] = True


class CheckpointsDeleted(BaseModel):
    """How many checkpoints are gone, with all that belonged to them alone."""

    deleted: int


class CheckpointsCopied(BaseModel):
    """How many checkpoints were copied; those that the target had already stay as they are."""

    copied: int


class CopyThread(Body):
    """The thread to copy to."""

    target_thread_id: Id


class PruneThreads(Body):
    """Threads of which little or nothing is to be kept."""

    thread_ids: Ids
    strategy: Literal["keep_latest", "delete"] = "keep_latest"


class DeleteRuns(Body):
    """Runs whose checkpoints are to go, by `run_id` in their metadata."""

    run_ids: Ids


@router.post("/checkpoints/list")
async def list_checkpoints(request: Request, body: ListCheckpoints) -> CheckpointList:
    """List checkpoints with all that belongs to them, the newest first, page by page."""
    caller = calling(request)
    behind = None if body.behind is None else Place(**dict(body.behind))
    which = Which(
        body.thread_id,
        body.checkpoint_ns,
        body.checkpoint_id,
        body.before,
        checks.metadata_filter(body.filter, "filter"),
        behind,
    )
    found = await caller.engine.checkpoint_store.newest(caller.namespace, which, body.limit)
    return CheckpointList(checkpoints=list(map(CheckpointAnswer.of, found)))


@router.post("/checkpoints/prune", responses=responses(409))
async def prune_threads(request: Request, body: PruneThreads) -> CheckpointsDeleted:
    """Keep only the newest checkpoint of each graph in some threads, or none."""
    caller = calling(request)
    return CheckpointsDeleted(
        deleted=await caller.engine.checkpoint_store.prune(caller.namespace, body.thread_ids, body.strategy)
    )


@router.post("/checkpoints/delete-runs")
async def delete_runs(request: Request, body: DeleteRuns) -> CheckpointsDeleted:
    """Delete the checkpoints that some runs made."""
    caller = calling(request)
    return CheckpointsDeleted(deleted=await caller.engine.checkpoint_store.delete_runs(caller.namespace, body.run_ids))


@router.put("/checkpoints/{thread_id}")
async def put_checkpoint(request: Request, thread_id: ThreadId, body: PutCheckpoint) -> CheckpointsStored:
    """Store a checkpoint of a thread, in place of an earlier one of its id."""
    caller = calling(request)
    checkpoint = NewCheckpoint(
        Place(thread_id, body.checkpoint_ns, body.checkpoint_id),
        body.parent_id,
        body.checkpoint.unpacked(),
        body.versions,
        body.metadata,
        {channel: value.unpacked() for channel, value in body.values.items()},
        body.user_id or "",
    )
    await caller.engine.checkpoint_store.put(caller.namespace, checkpoint)
    return CheckpointsStored()


@router.post("/checkpoints/{thread_id}/writes")
async def put_writes(request: Request, thread_id: ThreadId, body: PutWrites) -> CheckpointsStored:
    """Store what a task wrote to a checkpoint."""
    caller = calling(request)
    written = TaskWrites(
        Place(thread_id, body.checkpoint_ns, body.checkpoint_id),
        body.task_id,
        body.task_path,
        [(each.idx, each.channel, each.value.unpacked()) for each in body.writes],
    )
    await caller.engine.checkpoint_store.put_writes(caller.namespace, written, replace=body.replace)
    return CheckpointsStored()


@router.post("/checkpoints/{thread_id}/copy")
async def copy_thread(request: Request, thread_id: ThreadId, body: CopyThread) -> CheckpointsCopied:
    """Copy everything of a thread to another one."""
    caller = calling(request)
    return CheckpointsCopied(
        copied=await caller.engine.checkpoint_store.copy(caller.namespace, thread_id, body.target_thread_id)
    )


@router.delete("/checkpoints/{thread_id}")
async def delete_thread(request: Request, thread_id: ThreadId) -> CheckpointsDeleted:
    """Delete every checkpoint of a thread."""
    caller = calling(request)
    return CheckpointsDeleted(deleted=await caller.engine.checkpoint_store.delete(caller.namespace, [thread_id]))
