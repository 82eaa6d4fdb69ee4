"""What may be a task, and what its function may do to its worker."""

import asyncio
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


class Method:
    async def soon(self) -> None:
        await anyio.sleep(0)


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (numbers, "is a generator"),
        (numbers_soon, "is a generator"),
        (functools.partial(soon), "is no function"),
        (Called(), "is no function"),
        ("soon", "is no function"),
    ],
)
def test_what_nobody_would_run_is_refused_when_it_is_declared(fn: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"task t:? .*{why}"):
        App().task(name="t")(fn)
    with pytest.raises(ValueError, match=why):
        App().consumer("q")(fn)


@pytest.mark.parametrize("name", ["\ud800", "", "x" * 201])
def test_a_name_that_no_body_can_hold_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="the name"):
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
