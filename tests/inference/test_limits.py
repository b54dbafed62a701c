"""Queue, retry and breaker by a clock of their own: nothing here sleeps."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import Misconfigured, Unavailable
from recollect.inference.failures import Silent, Throttled, Transient, Unreachable
from recollect.inference.requests import breaker, retry
from recollect.inference.requests.breaker import Breaker
from recollect.inference.requests.fair_queue import FairQueue
from recollect.inference.requests.limits import Limits, Pace, Turn
from recollect.inference.requests.retry import Retry
from tests.llm_servers import QuickClock


async def served(*waiting: tuple[str, int], leaving: int | None = None) -> list[tuple[str, int]]:
    """In which order callers come to the front, who all came while somebody was there."""
    queue, order = FairQueue(), []

    async def caller(namespace: str, arrival: int) -> None:
        async with queue.front(namespace, arrival):
            order.append((namespace, arrival))

    async with queue.front("first", 0):
        tasks = [asyncio.create_task(caller(*each)) for each in waiting]
        await asyncio.sleep(0)
        if leaving is not None:
            tasks[leaving].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return order


async def test_namespaces_take_turns_and_in_each_the_first_goes_first() -> None:
    waiting = [("busy", 2), ("busy", 1), ("busy", 3), ("quiet", 9), ("other", 8)]
    assert await served(*waiting) == [("busy", 1), ("quiet", 9), ("other", 8), ("busy", 2), ("busy", 3)]


async def test_one_who_leaves_the_queue_holds_nobody_up() -> None:
    waiting = [("one", 1), ("one", 2), ("two", 3)]
    for leaving, gone in enumerate(waiting):
        order = await served(*waiting, leaving=leaving)
        assert sorted(order) == [each for each in waiting if each != gone]


async def test_one_who_leaves_when_called_passes_the_call_on() -> None:
    queue, order = FairQueue(), []

    async def caller(arrival: int) -> None:
        async with queue.front("one", arrival):
            order.append(arrival)

    async with queue.front("one", 0):
        tasks = [asyncio.create_task(caller(arrival)) for arrival in (1, 2)]
        await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [2]


PLENTY = 3600.0


class Flaky:
    """A request that fails so many times before it succeeds."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.asked = 0

    async def __call__(self) -> str:
        self.asked += 1
        if self.failures:
            raise self.failures.pop(0)
        return "done"


@given(chance=st.floats(0, 1, exclude_max=True))
def test_pauses_double_within_chance_and_attempts_are_bounded(chance: float) -> None:
    clock, flaky = QuickClock(), Flaky(*(Transient("down") for _ in range(20)))
    with pytest.raises(Transient):
        asyncio.run(Retry(clock, chance=lambda: chance).run(flaky, PLENTY))
    assert flaky.asked == retry.ATTEMPTS
    longest = [retry.FIRST_PAUSE_SECONDS * 2**n for n in range(retry.ATTEMPTS - 1)]
    assert len(clock.waits) == len(longest)
    for pause, most in zip(clock.waits, longest, strict=True):
        assert most / 2 <= pause <= most


async def test_a_pause_is_never_shorter_than_the_provider_asks_for() -> None:
    clock, flaky = QuickClock(), Flaky(Transient("slow down", retry_after=7.0))
    assert await Retry(clock).run(flaky, PLENTY) == "done"
    assert 7.0 <= clock.waits[0] <= 7.0 + retry.FIRST_PAUSE_SECONDS


async def test_a_provider_that_asks_for_a_long_pause_is_left_to_the_caller() -> None:
    clock, flaky = QuickClock(), Flaky(Throttled("tomorrow", retry_after=20.0))
    with pytest.raises(Transient, match="tomorrow"):
        await Retry(clock).run(flaky, 20.0)
    assert clock.waits == []


async def test_being_asked_to_wait_is_obeyed_as_often_as_there_is_time() -> None:
    clock, flaky = QuickClock(), Flaky(*(Throttled("slow down", retry_after=4.0) for _ in range(8)))
    assert await Retry(clock).run(flaky, 50.0) == "done"
    assert flaky.asked == 9
    clock, flaky = QuickClock(), Flaky(*(Throttled("slow down") for _ in range(99)))
    with pytest.raises(Throttled):
        await Retry(clock).run(flaky, 50.0)
    assert sum(clock.waits) < 50.0
    assert flaky.asked > retry.ATTEMPTS


async def test_what_does_not_pass_is_not_tried_again() -> None:
    flaky = Flaky(Misconfigured("wrong key"))
    with pytest.raises(Misconfigured):
        await Retry(QuickClock()).run(flaky, PLENTY)
    assert flaky.asked == 1


async def test_who_is_hurried_does_not_wait_for_a_server_that_is_not_there() -> None:
    clock, flaky = QuickClock(), Flaky(Unreachable("refused"))
    with pytest.raises(Unreachable):
        await Retry(clock).run(flaky, PLENTY, hurried=True)
    assert (flaky.asked, clock.waits) == (1, [])
    assert await Retry(clock).run(Flaky(Transient("hiccup")), PLENTY, hurried=True) == "done"
    assert await Retry(clock).run(Flaky(Unreachable("refused")), PLENTY) == "done"


class NoRoom:
    """As many requests of other processes are under way as may be, for ever."""

    async def take(self, model: str, limits: Limits, within: float) -> Turn | None:
        return None

    async def end(self, turn: Turn) -> None:
        raise AssertionError("there was no turn")

    async def postpone(self, model: str, seconds: float) -> None:
        raise AssertionError("nobody asked for a pause")


async def test_whoever_finds_no_room_in_its_time_is_told_so_and_leaves_the_queue() -> None:
    clock = QuickClock()
    pace = Pace("the model", Limits(per_second=1, at_once=1), NoRoom(), clock)
    for _ in range(2):
        with pytest.raises(Unavailable, match="the model has reached its limit of concurrent requests"):
            async with asyncio.timeout(60), pace.turn("one", pace.arrive(), within=3.0):
                raise AssertionError("nobody is let through")
    assert sum(clock.waits) < 6.0


def state(circuit: Breaker) -> str:
    return circuit.state


@contextmanager
def attempted(circuit: Breaker) -> Iterator[None]:
    """One request of one attempt."""
    with circuit.request() as trying, circuit.attempt(trying):
        yield


def fail(circuit: Breaker, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(Transient), attempted(circuit):
            raise Transient("down")


def test_a_breaker_opens_half_opens_and_closes() -> None:
    clock = QuickClock()
    circuit = Breaker("the model", clock)
    fail(circuit, breaker.FAILURES_TO_OPEN - 1)
    assert state(circuit) == "closed"
    fail(circuit)
    assert state(circuit) == "open"
    with pytest.raises(Unavailable, match=r"the model .* skipped for now. Try again in 30 s"), attempted(circuit):
        raise AssertionError("nobody is let through")
    clock.time += breaker.OPEN_SECONDS
    assert state(circuit) == "half-open"
    with attempted(circuit), pytest.raises(Unavailable), attempted(circuit):
        raise AssertionError("only one tries")
    assert state(circuit) == "closed"
    fail(circuit)
    assert state(circuit) == "closed"


def test_a_breaker_may_open_after_less_of_silence() -> None:
    circuit = Breaker("the model", QuickClock(), silences_to_open=2)
    for _ in range(3):
        with pytest.raises(Silent), attempted(circuit):
            raise Silent("nothing came")
        assert state(circuit) == "closed"
        fail(circuit)
        with attempted(circuit):
            pass
    for _ in range(2):
        with pytest.raises(Silent), attempted(circuit):
            raise Silent("nothing came")
    assert state(circuit) == "open"


def test_a_breaker_whose_trial_fails_opens_again() -> None:
    clock = QuickClock()
    circuit = Breaker("the model", clock)
    fail(circuit, breaker.FAILURES_TO_OPEN)
    for _ in range(3):
        clock.time += breaker.OPEN_SECONDS
        fail(circuit)
        assert state(circuit) == "open"
    clock.time += breaker.OPEN_SECONDS
    with pytest.raises(Misconfigured), attempted(circuit):
        raise Misconfigured("says nothing about the circuit")
    assert state(circuit) == "half-open"
    with attempted(circuit):
        pass
    assert state(circuit) == "closed"


def test_only_failures_in_a_row_open_a_breaker() -> None:
    circuit = Breaker("the model", QuickClock())
    for _ in itertools.repeat(None, 5):
        fail(circuit, breaker.FAILURES_TO_OPEN - 1)
        with attempted(circuit):
            pass
    assert state(circuit) == "closed"


def test_being_asked_to_wait_opens_no_breaker_and_closes_none() -> None:
    circuit = Breaker("the model", QuickClock())
    fail(circuit, breaker.FAILURES_TO_OPEN - 1)
    for _ in range(20):
        with pytest.raises(Throttled), attempted(circuit):
            raise Throttled("slow down", retry_after=4.0)
    assert state(circuit) == "closed"
    fail(circuit)
    assert state(circuit) == "open"


def test_a_request_that_was_let_in_keeps_its_attempts_and_its_success_closes_the_circuit() -> None:
    clock = QuickClock()
    circuit = Breaker("the model", clock)
    with circuit.request() as trying:
        with circuit.attempt(trying):
            fail(circuit, breaker.FAILURES_TO_OPEN)
        assert state(circuit) == "open"
        clock.time += 0.5
        with circuit.attempt(trying):
            pass
        assert state(circuit) == "closed"
