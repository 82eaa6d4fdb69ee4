"""Coroutines of a node: what they wait for, in which order they go on, and how they are ended."""

from collections.abc import Callable
from typing import Any

import pytest
from outcome import Error, Outcome, Value

from disque_trio.statemachine.base import FOREVER
from disque_trio.storage.tasks import Event, Lock, Tasks


class Held:
    """A thread whose work ends when the test says so."""

    def __init__(self) -> None:
        self.wake: Callable[[], None] = lambda: None
        self.pending = 0
        self.told: list[Callable[[Outcome[Any]], None]] = []

    def beside(
        self,
        act: Callable[..., object],  # noqa: ARG002
        args: tuple[Any, ...],  # noqa: ARG002
        then: Callable[[Outcome[Any]], None],
        *,
        sync: Callable[[], object] | None = None,  # noqa: ARG002
    ) -> None:
        self.told.append(then)

    def start(self, *_: object, sync: object = None, wait_s: float = 0.0) -> None:  # noqa: ARG002
        raise AssertionError("not in order")

    def collect(self) -> None: ...

    def abandon(self) -> None: ...


@pytest.fixture
def tasks() -> Tasks:
    return Tasks()


@pytest.fixture
def said() -> list[object]:
    return []


def test_a_task_begins_in_the_next_batch_and_a_batch_is_asked_for(
    tasks: Tasks, said: list[object]
) -> None:
    async def speak() -> None:
        said.append("here")

    tasks.awaken = lambda: said.append("asked")
    tasks.start(speak())

    assert said == ["asked"]
    assert tasks.due == 0
    tasks.run(7)
    assert said == ["asked", "here"]
    assert tasks.due == FOREVER


def test_sleepers_go_on_in_order_of_time_and_then_of_their_coming(
    tasks: Tasks, said: list[object]
) -> None:
    async def sleep(name: str, seconds: float) -> None:
        await tasks.sleep(seconds)
        said.append(name)

    for name, seconds in ("b", 0.2), ("c", 0.2), ("a", 0.1):
        tasks.start(sleep(name, seconds))
    tasks.run(1000)
    assert tasks.due == 1100

    tasks.run(1099)
    assert said == []
    tasks.run(1200)
    assert said == ["a", "b", "c"]


def test_what_a_thread_has_done_or_met_reaches_the_task(tasks: Tasks, said: list[object]) -> None:
    thread = Held()

    async def work() -> None:
        said.append(await tasks.on(thread, len, "four"))
        try:
            await tasks.on(thread, len, "again")
        except OSError as error:
            said.append(error.strerror)

    tasks.start(work())
    tasks.run(0)
    thread.told.pop()(Value(4))
    tasks.run(1)
    thread.told.pop()(Error(OSError(28, "no room")))
    tasks.run(2)

    assert said == [4, "no room"]


def test_a_scope_ends_the_wait_when_its_time_is_up_and_nothing_outside_of_it(
    tasks: Tasks, said: list[object]
) -> None:
    thread = Held()

    async def work() -> None:
        with tasks.move_on_after(5) as outer:
            with tasks.move_on_after(1) as inner:
                await tasks.on(thread, len, "never")
            said.append((inner.was_cut, outer.was_cut))
            await tasks.sleep(1)
        said.append(outer.was_cut)

    tasks.start(work())
    tasks.run(0)
    assert tasks.due == 1000
    tasks.run(1000)
    assert said == [(True, False)]
    thread.told.pop()(Value(5))  # Late: nobody waits any more.
    tasks.run(2000)

    assert said == [(True, False), False]


def test_a_scope_that_was_cancelled_before_is_left_at_the_first_wait(
    tasks: Tasks, said: list[object]
) -> None:
    scope = tasks.scope()

    async def work() -> None:
        with scope:
            said.append("within")
            await tasks.checkpoint()
            said.append("beyond")

    scope.cancel()
    tasks.start(work())
    tasks.run(0)

    assert said == ["within"]
    assert scope.was_cut


def test_a_checkpoint_is_passed_in_the_next_batch_which_is_due_at_once(
    tasks: Tasks, said: list[object]
) -> None:
    async def count() -> None:
        for number in range(2):
            await tasks.checkpoint()
            said.append(number)

    tasks.start(count())
    tasks.run(5)
    assert tasks.due == 5
    tasks.run(5)
    assert said == [0]
    tasks.run(5)
    assert said == [0, 1]


def test_who_waits_for_an_event_is_woken_and_a_later_wait_is_none(
    tasks: Tasks, said: list[object]
) -> None:
    event = Event(tasks)

    async def wait(name: str) -> None:
        await event.wait()
        said.append(name)

    tasks.start(wait("a"))
    tasks.start(wait("b"))
    tasks.run(0)
    event.set()
    tasks.start(wait("late"))
    tasks.run(1)

    assert said == ["a", "b", "late"]


def test_a_lock_has_one_holder_and_skips_those_who_have_given_up(
    tasks: Tasks, said: list[object]
) -> None:
    lock = Lock(tasks, lambda: said.append("free"))

    async def hold(name: str, patience: float) -> None:
        with tasks.move_on_after(patience):
            async with lock:
                said.append(name)
                await tasks.sleep(1)

    for name, patience in ("a", 9), ("b", 0.5), ("c", 9):
        tasks.start(hold(name, patience))
    for now in (0, 500, 1000):
        tasks.run(now)
        assert lock.locked()
    assert said == ["a", "c"]
    tasks.run(2000)

    assert said == ["a", "c", "free"]
    assert not lock.locked()


def test_the_end_closes_every_task_where_it_waits(tasks: Tasks, said: list[object]) -> None:
    async def wait() -> None:
        try:
            await tasks.sleep(1)
        finally:
            said.append("closed")

    tasks.start(wait())
    tasks.run(0)
    tasks.end()

    assert said == ["closed"]
    assert tasks.due == FOREVER
    tasks.run(5000)
    assert said == ["closed"]
