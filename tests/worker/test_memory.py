"""What a failed run has held is free at once: no cycle waits for the garbage collector, which comes
late in a worker."""

import gc
import io
import logging
from collections.abc import Iterator
from typing import Any
from unittest import mock

import anyio
import pytest

from disque_trio.worker import App, Dead, Fixed, Snooze
from disque_trio.worker.context import logger
from disque_trio.worker.engine.records import Reason
from tests.worker.playing import KINDS
from tests.worker.runs import Driver, body, handler_of, run_of

pytestmark = pytest.mark.parametrize("kind", KINDS)


class Large:
    """What a handler holds."""

    alive = 0

    def __init__(self) -> None:
        Large.alive += 1

    def __del__(self) -> None:
        Large.alive -= 1


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.collect()
    Large.alive = 0
    gc.disable()
    yield
    gc.enable()


class OwnError(Exception):
    """It holds what it is about."""

    def __init__(self, what: Large) -> None:
        super().__init__("no")
        self.what = what


def broken(*_: object) -> float:
    raise LookupError("broken")


def fails() -> None:
    large = Large()
    raise OwnError(large)


def fails_in_a_group() -> None:
    large = Large()
    try:
        raise OwnError(large)
    except OwnError as error:
        raise ExceptionGroup("group", [error]) from error


def is_dead() -> None:
    large = Large()
    raise Dead(f"{large}")


def snoozes() -> None:
    large = Large()
    raise Snooze(len(str(large)))


@pytest.mark.sample(23)
@pytest.mark.parametrize("how", ["async", "loop", "thread"])
@pytest.mark.parametrize("timeout", [None, 3600])
@pytest.mark.parametrize("policy", [Fixed([1]), broken], ids=["fixed", "broken"])
@pytest.mark.parametrize("what", [fails, fails_in_a_group, is_dead, snoozes])
def test_a_failed_run_leaves_nothing(
    kind: str, how: str, timeout: Any, policy: Any, what: Any
) -> None:
    app = App("disque://127.0.0.1:1")
    options: Any = {"retry": policy, "timeout": timeout, "name": "t"}
    if how == "async":

        async def soon() -> None:
            what()

        app.task(**options)(soon)
    else:
        app.task(**{**options, "executor": how})(what)

    assert alive_after(kind, app) == 0


def test_a_run_that_was_cancelled_leaves_nothing(kind: str) -> None:
    app = App("disque://127.0.0.1:1")

    @app.task(name="t", retry=Fixed([1]), timeout=3600)
    async def t() -> None:
        large = Large()
        await anyio.sleep_forever()
        del large

    assert alive_after(kind, app, Reason.TOO_LONG) == 0


def alive_after(kind: str, app: App[Any], why: Reason | None = None) -> int:
    """How many live when jobs have failed."""

    async def held() -> int:
        driver = Driver(features=frozenset((b"release-delay",)))
        async with handler_of(app) as handler:
            for _ in range(5):
                run = run_of(body("t"), driver=driver)
                async with anyio.create_task_group() as group:
                    if why is not None:
                        group.start_soon(cancel_soon, run, why)
                    await handler(run)
                del run
            for _ in range(20):  # a thread may still hold its last call
                if not Large.alive:
                    break
                await anyio.sleep(0.005)
            return Large.alive

    # What pytest captures lives on.
    with mock.patch.multiple(
        logger, handlers=[logging.StreamHandler(io.StringIO())], propagate=False
    ):
        return anyio.run(held, backend=kind)


async def cancel_soon(run: Any, why: Reason) -> None:
    """When it has begun."""
    while run.scope is None:
        await anyio.sleep(0)
    run.why = why
    run.scope.cancel()
