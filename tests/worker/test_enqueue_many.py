"""`enqueue_many` answers each call, and has told everything if it raises."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from disque_trio.client import NoNodeError
from disque_trio.client.settings import WINDOW
from disque_trio.worker import (
    Adding,
    Enqueued,
    EnqueueManyError,
    EnqueueUnknownError,
    NotEncodableError,
    NotEnqueuedError,
)
from tests.client.fakenode import Answer, FakeNode, fake_node
from tests.client.running import KINDS
from tests.worker.test_enqueue import ADDED, HELLO, Adder, app_with, node_that_adds, talk

kinds = pytest.mark.parametrize("kind", KINDS)


class UnsayableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Odd:
    def __getattr__(self, name: str) -> Any:
        raise UnsayableError


def added(node: FakeNode) -> int:
    return sum(each[0] == b"ADDJOB" for each in node.requests)


def at_once(task: Any) -> Any:
    return task.using(at=datetime.now(UTC) + timedelta(days=30), ttl=3600).call("late")


@kinds
@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (at_once, NotEnqueuedError),
        (lambda task: task.call(Odd()), NotEncodableError),
        (lambda task: task.call(2**70), NotEncodableError),
        (lambda task: task.partial(), NotEnqueuedError),
        (lambda _: None, NotEnqueuedError),
    ],
)
def test_a_call_that_cannot_be_added_has_its_error_and_the_others_are_added(
    kind: str, bad: Callable[[Any], Any], expected: type[Exception]
) -> None:
    async def conversation(adder: Adder) -> None:
        calls = [task.call(n) for n in range(2 * WINDOW)]
        calls[WINDOW + 7] = bad(task)
        results = await adder.add_many(calls)

        assert [n for n, each in enumerate(results) if not isinstance(each, Enqueued)] == [
            WINDOW + 7
        ]
        error = results[WINDOW + 7]
        assert type(error) is expected
        assert error.__cause__ is not None
        assert added(node) == 2 * WINDOW - 1

    with node_that_adds() as node:
        app, _ = app_with(node, form="msgpack")

        @app.task(name="any")
        def task(value: Any) -> None: ...

        talk(kind, app, conversation)


def test_what_is_no_call_is_named() -> None:
    with node_that_adds() as node:
        app, task = app_with(node)
        wrong: Any = "x"
        [error] = app.blocking.enqueue_many([wrong])

        assert "'x' is not a call: write task.call(…)" in str(error)
        with pytest.raises(ValueError, match="'x' is not a call"):
            task.call("a") | "x"


@kinds
@pytest.mark.parametrize("raised", [RuntimeError("no"), UnsayableError()])
def test_a_hook_that_raises_costs_its_job_only(kind: str, raised: Exception) -> None:
    def hook(adding: Adding) -> None:
        if adding.headers.get("bad"):
            raise raised

    async def conversation(adder: Adder) -> None:
        calls = [task.call("a"), task.using(headers={"bad": 1}).call("b"), task.call("c")]
        one, two, three = await adder.add_many(calls)

        assert isinstance(two, NotEnqueuedError)
        assert two.__cause__ is raised
        assert "mail.send was not added: " in str(two)
        assert isinstance(one, Enqueued)
        assert isinstance(three, Enqueued)

    with node_that_adds() as node:
        app, task = app_with(node)
        app.on_enqueue(hook)
        talk(kind, app, conversation)


@kinds
def test_an_iterator_that_raises_is_told_with_the_results_so_far(kind: str) -> None:
    def calls() -> Iterator[Any]:
        for n in range(WINDOW + 50):
            yield task.call(n if n == 3 else "a")
        raise LookupError("no more rows")

    async def conversation(adder: Adder) -> None:
        with pytest.raises(EnqueueManyError, match=f"{WINDOW} calls.*LookupError: no more") as told:
            await adder.add_many(calls())

        assert isinstance(told.value.__cause__, LookupError)
        results = told.value.results
        assert len(results) == WINDOW
        assert [n for n, each in enumerate(results) if not isinstance(each, Enqueued)] == [3]
        assert added(node) == WINDOW - 1  # those behind the results were not sent

    with node_that_adds() as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


@kinds
def test_a_node_that_goes_meanwhile_is_an_error_of_each_later_call(kind: str) -> None:
    left = [ADDED] * WINDOW

    def answer() -> Answer:
        return left.pop() if left else None

    async def conversation(adder: Adder) -> None:
        results = await adder.add_many(
            task.using(repeat=False).call("a") for _ in range(3 * WINDOW)
        )

        assert [type(each) for each in results[:WINDOW]] == [Enqueued] * WINDOW
        assert {*map(type, results[WINDOW:])} <= {EnqueueUnknownError, NoNodeError}
        assert len(results) == 3 * WINDOW

    with fake_node({b"HELLO": HELLO, b"ADDJOB": answer}) as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


@pytest.mark.parametrize("kind", ["trio", "asyncio"])
def test_a_cancellation_has_the_results_so_far(kind: str) -> None:
    left = [ADDED] * WINDOW

    def answer() -> Answer:
        return left.pop() if left else b""

    async def cancel(scope: anyio.CancelScope) -> None:
        with anyio.fail_after(60):
            while added(node) < 2 * WINDOW:  # the second window is sent once the first is answered
                await anyio.sleep(0.01)
        scope.cancel()

    async def conversation(adder: Adder) -> None:
        found: list[Any] = []
        async with anyio.create_task_group() as group:
            group.start_soon(cancel, group.cancel_scope)
            try:
                await adder.add_many(task.call("a") for _ in range(3 * WINDOW))
            except BaseException as cancelled:
                found = getattr(cancelled, "results")  # noqa: B009  # no type has it
                raise

        assert [type(each) for each in found[:WINDOW]] == [Enqueued] * WINDOW
        assert [type(each) for each in found[WINDOW:]] == [EnqueueUnknownError] * WINDOW
        assert added(node) == 2 * WINDOW

    with fake_node({b"HELLO": HELLO, b"ADDJOB": answer}) as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


@kinds
def test_what_is_no_list_of_calls_is_told_before_anything_is_added(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        calls: Any = 5
        with pytest.raises(TypeError):
            await adder.add_many(calls)

    with node_that_adds() as node:
        app, _ = app_with(node)
        talk(kind, app, conversation)
