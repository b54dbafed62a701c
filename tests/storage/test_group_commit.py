"""Group commit: callers at the same time share a batch, and each hears only of its own item."""

import asyncio
from collections.abc import Sequence

import pytest

from recollect.errors import Conflict, Invalid, RecollectError, Unavailable
from recollect.storage.group_commit import MAX_BYTES, MAX_ITEMS, GroupCommit

POISON = -1


class Writer:
    """Commits batches of numbers and keeps what was committed; the first batch waits until it is let go."""

    def __init__(self, failure: type[BaseException] = Conflict) -> None:
        self.batches: list[list[int]] = []
        self.gate = asyncio.Event()
        self._failure = failure

    async def write(self, namespace: str, items: Sequence[int]) -> Sequence[str | RecollectError]:
        await self.gate.wait()
        if POISON in items:
            raise self._failure("poisoned batch")
        self.batches.append(list(items))
        return [Invalid(f"odd {item}") if item % 2 else f"{namespace}:{item}" for item in items]


async def test_items_that_wait_share_the_next_batch_in_order() -> None:
    writer = Writer()
    commits = GroupCommit(writer.write)
    tasks = [asyncio.create_task(commits.submit("n", item, 1)) for item in range(0, 20, 2)]
    writer.gate.set()
    assert await asyncio.gather(*tasks) == [f"n:{item}" for item in range(0, 20, 2)]
    assert [item for batch in writer.batches for item in batch] == list(range(0, 20, 2))
    assert len(writer.batches) <= 2


async def test_an_items_own_error_reaches_its_caller_alone() -> None:
    writer = Writer()
    writer.gate.set()
    commits = GroupCommit(writer.write)
    results = await asyncio.gather(*(commits.submit("n", item, 1) for item in (2, 3, 4)), return_exceptions=True)
    assert results[0] == "n:2"
    assert isinstance(results[1], Invalid)
    assert results[2] == "n:4"


async def test_a_row_that_spoils_its_batch_fails_alone() -> None:
    writer = Writer()
    writer.gate.set()
    commits = GroupCommit(writer.write)
    results = await asyncio.gather(*(commits.submit("n", i, 1) for i in (2, POISON, 4)), return_exceptions=True)
    assert results[0] == "n:2"
    assert isinstance(results[1], Conflict)
    assert results[2] == "n:4"


@pytest.mark.parametrize("failure", [Unavailable, RuntimeError])
async def test_a_failure_of_the_database_or_of_ours_reaches_every_caller_and_is_not_retried(
    failure: type[BaseException], recwarn: pytest.WarningsRecorder
) -> None:
    writer = Writer(failure)
    writer.gate.set()
    commits = GroupCommit(writer.write)
    results = await asyncio.gather(*(commits.submit("n", i, 1) for i in (2, POISON, 4)), return_exceptions=True)
    assert all(isinstance(result, failure) for result in results)
    assert writer.batches == []
    assert await commits.submit("n", 6, 1) == "n:6"


async def test_a_caller_that_gave_up_before_the_commit_is_left_out() -> None:
    writer = Writer()
    commits = GroupCommit(writer.write)
    first = asyncio.create_task(commits.submit("n", 2, 1))
    await asyncio.sleep(0)
    second = asyncio.create_task(commits.submit("n", 4, 1))
    third = asyncio.create_task(commits.submit("n", 6, 1))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    writer.gate.set()
    assert await first == "n:2"
    assert await third == "n:6"
    assert 4 not in [item for batch in writer.batches for item in batch]


async def test_batches_are_bounded_in_rows_and_bytes() -> None:
    writer = Writer()
    commits = GroupCommit(writer.write)
    many = [asyncio.create_task(commits.submit("rows", 2, 1)) for _ in range(2 * MAX_ITEMS + 1)]
    large = [asyncio.create_task(commits.submit("bytes", 4, MAX_BYTES)) for _ in range(3)]
    writer.gate.set()
    await asyncio.gather(*many, *large)
    assert max(len(batch) for batch in writer.batches if batch[0] == 2) <= MAX_ITEMS
    assert [len(batch) for batch in writer.batches if batch[0] == 4] == [1, 1, 1]


async def test_namespaces_do_not_wait_for_each_other_and_do_not_mix() -> None:
    writer = Writer()
    writer.gate.set()
    commits = GroupCommit(writer.write)
    results = await asyncio.gather(*(commits.submit(f"n{item % 4}", item, 1) for item in range(0, 16, 2)))
    assert results == [f"n{item % 4}:{item}" for item in range(0, 16, 2)]


async def test_closing_finishes_what_was_accepted_and_refuses_the_rest() -> None:
    writer = Writer()
    commits = GroupCommit(writer.write)
    accepted = asyncio.create_task(commits.submit("n", 2, 1))
    await asyncio.sleep(0)
    closing = asyncio.create_task(commits.close())
    await asyncio.sleep(0)
    writer.gate.set()
    await closing
    assert await accepted == "n:2"
    with pytest.raises(Unavailable, match="closed"):
        await commits.submit("n", 4, 1)


async def test_closing_does_not_wait_for_a_database_that_hangs() -> None:
    writer = Writer()
    commits = GroupCommit(writer.write)
    writing = [asyncio.create_task(commits.submit("n", item, 1)) for item in range(100)]
    await asyncio.sleep(0)
    await commits.close()
    answers = await asyncio.gather(*writing, return_exceptions=True)
    assert {type(answer) for answer in answers} == {Unavailable}
    assert writer.batches == []


async def test_closing_answers_those_who_wait_behind_a_bad_item() -> None:
    """The batch was rolled back and is tried item by item; the first of them hangs."""

    class Hanging(Writer):
        async def write(self, namespace: str, items: Sequence[int]) -> Sequence[str | RecollectError]:
            if len(items) == 1:
                await asyncio.Event().wait()
            return await super().write(namespace, items)

    writer = Hanging()
    writer.gate.set()
    commits = GroupCommit(writer.write)
    writing = [asyncio.create_task(commits.submit("n", item, 1)) for item in (2, POISON, 4, 6)]
    await asyncio.sleep(0)
    await commits.close()
    answers = await asyncio.wait_for(asyncio.gather(*writing, return_exceptions=True), 30)
    assert {type(answer) for answer in answers} == {Unavailable}
