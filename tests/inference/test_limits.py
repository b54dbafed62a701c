"""Limiter, retry and breaker by a clock of their own: nothing here sleeps."""

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import Misconfigured, Unavailable
from recollect.inference import breaker, retry
from recollect.inference.breaker import Breaker
from recollect.inference.failures import Transient
from recollect.inference.limits import PERIOD_SECONDS, Limiter
from recollect.inference.retry import Retry
from tests.llm_servers import QuickClock

arrivals = st.lists(st.floats(0, 2.5, allow_nan=False), max_size=40)


async def granted(per_second: int, pauses: list[float], at_once: int) -> list[float]:
    """When callers are let through who come in groups, each some time after the last."""
    clock = QuickClock()
    limiter = Limiter(per_second, clock)
    times: list[float] = []

    async def caller() -> None:
        await limiter.wait()
        times.append(clock.now())

    for pause in pauses:
        clock.time += pause
        await asyncio.gather(*(caller() for _ in range(at_once)))
    return times


@given(per_second=st.integers(1, 5), pauses=arrivals, at_once=st.integers(1, 7))
def test_no_window_of_one_second_holds_more_than_the_rate(per_second: int, pauses: list[float], at_once: int) -> None:
    times = asyncio.run(granted(per_second, pauses, at_once))
    assert len(times) == len(pauses) * at_once
    for earlier, later in zip(times, times[per_second:], strict=False):
        assert later - earlier >= PERIOD_SECONDS


@given(per_second=st.integers(1, 5), callers=st.integers(1, 30))
def test_nobody_waits_longer_than_the_rate_asks(per_second: int, callers: int) -> None:
    times = asyncio.run(granted(per_second, [0.0], callers))
    assert times[-1] - times[0] <= (callers - 1) // per_second * (PERIOD_SECONDS + 0.01)


async def test_callers_go_in_the_order_they_came_and_one_who_leaves_holds_nobody_up() -> None:
    limiter, order = Limiter(1, QuickClock()), []

    async def caller(number: int) -> None:
        await limiter.wait()
        order.append(number)

    tasks = [asyncio.create_task(caller(number)) for number in range(6)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [0, 1, 3, 4, 5]


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
        asyncio.run(Retry(clock, chance=lambda: chance).run(flaky))
    assert flaky.asked == retry.ATTEMPTS
    longest = [retry.FIRST_PAUSE_SECONDS * 2**n for n in range(retry.ATTEMPTS - 1)]
    assert len(clock.waits) == len(longest)
    for pause, most in zip(clock.waits, longest, strict=True):
        assert most / 2 <= pause <= most


async def test_a_pause_is_never_shorter_than_the_provider_asks_for() -> None:
    clock, flaky = QuickClock(), Flaky(Transient("slow down", retry_after=7.0))
    assert await Retry(clock).run(flaky) == "done"
    assert 7.0 <= clock.waits[0] <= 7.0 + retry.FIRST_PAUSE_SECONDS


async def test_a_provider_that_asks_for_a_long_pause_is_left_to_the_caller() -> None:
    clock, flaky = QuickClock(), Flaky(Transient("tomorrow", retry_after=3600.0))
    with pytest.raises(Transient, match="tomorrow"):
        await Retry(clock).run(flaky)
    assert clock.waits == []


async def test_what_does_not_pass_is_not_tried_again() -> None:
    flaky = Flaky(Misconfigured("wrong key"))
    with pytest.raises(Misconfigured):
        await Retry(QuickClock()).run(flaky)
    assert flaky.asked == 1


def state(circuit: Breaker) -> str:
    return circuit.state


def fail(circuit: Breaker, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(Transient), circuit.attempt():
            raise Transient("down")


def test_a_breaker_opens_half_opens_and_closes() -> None:
    clock = QuickClock()
    circuit = Breaker("the model", clock)
    fail(circuit, breaker.FAILURES_TO_OPEN - 1)
    assert state(circuit) == "closed"
    fail(circuit)
    assert state(circuit) == "open"
    with pytest.raises(Unavailable, match=r"the model .* left alone for now. Try again in 30 s"), circuit.attempt():
        raise AssertionError("nobody is let through")
    clock.time += breaker.OPEN_SECONDS
    assert state(circuit) == "half-open"
    with circuit.attempt(), pytest.raises(Unavailable), circuit.attempt():
        raise AssertionError("only one tries")
    assert state(circuit) == "closed"
    fail(circuit)
    assert state(circuit) == "closed"


def test_a_breaker_whose_trial_fails_opens_again() -> None:
    clock = QuickClock()
    circuit = Breaker("the model", clock)
    fail(circuit, breaker.FAILURES_TO_OPEN)
    for _ in range(3):
        clock.time += breaker.OPEN_SECONDS
        fail(circuit)
        assert state(circuit) == "open"
    clock.time += breaker.OPEN_SECONDS
    with pytest.raises(Misconfigured), circuit.attempt():
        raise Misconfigured("says nothing about the circuit")
    assert state(circuit) == "half-open"
    with circuit.attempt():
        pass
    assert state(circuit) == "closed"


def test_only_failures_in_a_row_open_a_breaker() -> None:
    circuit = Breaker("the model", QuickClock())
    for _ in itertools.repeat(None, 5):
        fail(circuit, breaker.FAILURES_TO_OPEN - 1)
        with circuit.attempt():
            pass
    assert state(circuit) == "closed"
