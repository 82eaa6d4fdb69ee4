"""Executors that an app has in addition to the loop, threads and processes."""

import threading
from typing import Any

import anyio
import pytest

from disque_trio.testing.inline.kit import Inline
from disque_trio.worker import App, current_job
from disque_trio.worker.engine import records
from tests.worker.runs import body, handler_of, outcome, run_of


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_a_number_is_that_of_threads(backend: str) -> None:
    app, together, most = App(executors={"gpu": 2}), [0], [0]
    lock, names = threading.Lock(), set[str]()

    @app.task(name="t", executor="gpu")
    def t() -> None:
        with lock:
            together[0] += 1
            most[0] = max(most[0], together[0])
            names.add(threading.current_thread().name)
        assert current_job().task == "t"
        threading.Event().wait(0.02)
        with lock:
            together[0] -= 1

    async def held() -> None:
        async with handler_of(app) as handler, anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(handler, run_of(body("t")))

    anyio.run(held, backend=backend)

    assert most[0] == len(names) == 2


class Own:
    """An executor that is entered with the worker."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def __aenter__(self) -> "Own":
        self.log.append("begins")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.log.append("ends")

    async def run(self, fn: Any, args: Any, kwargs: Any, run: Any) -> object:
        self.log.append(f"{run.task} {args}")
        found: object = fn(*args, **kwargs)
        return found


def test_an_executor_of_users_is_entered_and_runs_functions() -> None:
    own = Own()
    app = App(executors={"own": own})
    app.task(name="t", executor="own")(print)
    app.consumer("raw", executor="own")(print)

    assert outcome(app, body("t", 7)) == records.Done()
    assert own.log == ["begins", "t [7]", "ends"]
    assert outcome(app, b"x", queue=b"raw") == records.Done()


def test_it_has_no_place_in_virtual_time(disque_inline: Inline) -> None:
    app = App(executors={"own": Own()})
    app.task(name="t", executor="own")(lambda: None)
    handler = app.handler(is_inline=True)

    assert handler.executors["own"] is handler.executors["thread"]


@pytest.mark.parametrize(
    "given", [{"loop": 1}, {"a": 0}, {"a": "x"}, {5: 1}, [1], {"a": object()}, {"a": True}]
)
def test_what_is_no_executor_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="executors="):
        App(executors=given)


def test_an_executor_that_the_app_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="executor='gpu' must be one of 'loop', 'thread'"):
        App().task(name="t", executor="gpu")(lambda: None)
    with pytest.raises(ValueError, match="executor='gpu' must be one of"):
        App().consumer("raw", executor="gpu")(print)
