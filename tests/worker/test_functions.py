"""What may be a task, and what its function may do to its worker."""

import asyncio
import concurrent.futures
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import pytest
import sniffio

from disque_trio.worker import App
from tests.worker.playing import KINDS
from tests.worker.test_ends import POLICY, THRICE, ends


async def soon() -> None: ...


def numbers() -> Iterator[int]:
    yield 1


async def numbers_soon() -> AsyncIterator[int]:
    yield 1


class Called:
    async def __call__(self) -> None: ...


def _task() -> asyncio.Task[None]:
    return asyncio.ensure_future(asyncio.sleep(60))


def _future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


def _future_of_a_thread() -> concurrent.futures.Future[int]:
    return concurrent.futures.Future()


def _future_of_another_loop() -> asyncio.Future[None]:
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    future.add_done_callback(print)
    loop.close()
    return future


class Method:
    async def soon(self) -> None:
        await anyio.sleep(0)


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (numbers, "is a generator"),
        (functools.partial(soon), "is not a function"),
        (Called(), "is not a function"),
        ("soon", "is not a function"),
    ],
)
def test_what_nobody_would_run_is_refused_when_it_is_declared(fn: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"task t:? .*{why}"):
        App().task(name="t")(fn)
    with pytest.raises(ValueError, match=why):
        App().consumer("q")(fn)


def test_a_consumer_yields_no_checkpoints() -> None:
    with pytest.raises(ValueError, match="is a generator"):
        App().consumer("q")(numbers_soon)


@pytest.mark.parametrize("name", ["\ud800", "", "x" * 201])
def test_a_name_that_no_body_can_hold_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        App().task(name=name)(soon)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("executor", [None, "loop"])
@pytest.mark.parametrize("make", [soon, numbers, numbers_soon])
def test_a_def_that_returns_what_nobody_runs_has_failed(
    kind: str, executor: Any, make: Callable[[], object], caplog: pytest.LogCaptureFixture
) -> None:
    app = App()

    @app.task(name="t", retry=POLICY, executor=executor)
    def returns() -> object:
        return make()

    assert ends(kind, app) == THRICE
    assert "so it has not run" in caplog.text


@pytest.mark.parametrize("make", [_task, _future, _future_of_a_thread, _future_of_another_loop])
def test_so_has_a_function_that_returns_what_goes_on_without_it(
    make: Callable[[], object], caplog: pytest.LogCaptureFixture
) -> None:
    app = App()

    @app.task(name="t", retry=POLICY)
    async def returns() -> object:
        return make()

    assert ends("asyncio", app) == THRICE
    assert "so it has not run" in caplog.text


def test_a_future_that_has_ended_is_a_value() -> None:
    app = App()

    @app.task(name="t", retry=POLICY)
    async def returns() -> object:
        found = _future_of_a_thread()
        found.set_result(5)
        return found

    assert ends("asyncio", app) == ["done"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_async_def_behind_a_decorator_that_does_not_await_it_has_failed(kind: str) -> None:
    app = App()

    @app.task(name="t", retry=POLICY)
    @functools.wraps(soon)
    def wrapped() -> object:
        return soon()

    assert ends(kind, app) == THRICE


@pytest.mark.parametrize("kind", KINDS)
def test_a_bound_method_is_a_task(kind: str) -> None:
    app = App()
    app.task(name="t")(Method().soon)

    assert ends(kind, app) == ["done"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_that_stops_the_event_loop_stops_no_worker(kind: str) -> None:
    app = App()

    @app.task(name="t")
    async def stops() -> None:
        if sniffio.current_async_library() == "asyncio":
            asyncio.get_running_loop().stop()
        await anyio.sleep(0.01)

    assert ends(kind, app) == ["done"]
