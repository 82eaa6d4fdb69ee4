"""However a run ends, its policy decides when the job runs again and how often, and no other job is
concerned."""

import datetime
import fractions
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import anyio
import pytest

from disque_trio.worker import App, Fixed, current_job
from disque_trio.worker.driver import Worker
from tests.worker.failing import ERRORS, WAYS, OwnBaseError, fail
from tests.worker.played import PlayedNode, id_of, job
from tests.worker.playing import KINDS, play
from tests.worker.runs import body, handler_of

pytestmark = pytest.mark.parametrize("kind", KINDS)
POLICY: Final = Fixed([0.2, 0.3])
THRICE: Final = ["NACK 0.200", "NACK 0.300", "dead"]
BY_DEFAULT: Final = ["NACK 15.000", "NACK 30.000", "NACK 60.000"]
"""What the default policy says, without jitter."""
BAD: Final = id_of(1)


def ends(
    kind: str, app: App[Any], *, most: int = 3, headers: dict[str, Any] | None = None, **more: Any
) -> list[str]:
    """What a node is told of a job of `t`, which it delivers again at once, so often at most. The
    worker then runs another job, and has never ended meanwhile."""
    node, said = PlayedNode(), []

    async def story(worker: Worker) -> None:
        for count in range(most):
            what = body("t", headers=headers or {})
            node.give(job(1, body=what, nacks=count), job(2 + count, body=body("well")))
            said.append(await told_of(node, BAD))
            assert await told_of(node, id_of(2 + count)) == "done"
            if not said[-1].startswith("NACK"):
                break
        worker.stop()

    @app.task(name="well")
    async def well() -> None:
        await anyio.sleep(0)
        await anyio.sleep(0.001)

    assert play(kind, story, node, handler=handler_of(app), **more) == 0
    return said


async def told_of(node: PlayedNode, id: bytes) -> str:
    """What the node has been told of the job, once it has been."""
    while True:
        for request in node.requests:
            if request[0] in (b"ACKJOB", b"NACK", b"RELEASE") and any(
                word.startswith(id) for word in request
            ):
                node.requests.remove(request)
                if len(rest := [each for each in request if not each.startswith(id)]) > 1 and (
                    rest[0] == b"ACKJOB"
                ):
                    node.requests.append(rest)
                return shown(request)
        await anyio.sleep(0.001)


def shown(request: list[bytes]) -> str:
    match request:
        case [b"ACKJOB", *_]:
            return "done"
        case [word, _, b"DELAY", seconds]:
            return f"{word.decode()} {seconds.decode()}"
        case [b"NACK", _, b"DEAD", _]:
            return "dead"
    return b" ".join(request).decode()


# Errors.


@pytest.mark.sample(5)
@pytest.mark.parametrize("how", ["async", "loop", "thread"])
@pytest.mark.parametrize("what", ERRORS)
def test_whatever_a_handler_raises_is_a_failure(
    kind: str, what: str, how: Any, caplog: pytest.LogCaptureFixture
) -> None:
    app = App()
    if how == "async":

        @app.task(name="t", retry=POLICY)
        async def soon() -> None:
            fail(what)
    else:

        @app.task(name="t", retry=POLICY, executor=how)
        def now() -> None:
            fail(what)

    assert ends(kind, app) == THRICE
    said = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    # On a busy machine the loop may have been blocked meanwhile.
    assert len([each for each in said if "event loop was blocked" not in each]) == len(THRICE)
    assert not any("retry= of the task is broken" in each for each in said)


@pytest.mark.sample(11)
@pytest.mark.parametrize("what", [name for name in ERRORS if name != "huge text"])
def test_whatever_a_process_raises_is_a_failure(kind: str, what: str) -> None:
    app = App()
    app.task(name="t", retry=Fixed([]), executor="process")(FAILING[what])

    assert ends(kind, app) == ["dead"]


def _failing(what: str) -> Callable[[], None]:
    def function() -> None:
        fail(what)

    name = f"fails_with_{what.replace(' ', '_')}"
    function.__qualname__ = function.__name__ = name
    globals()[name] = function
    return function


FAILING: Final = {what: _failing(what) for what in ERRORS}


def test_what_a_coroutine_returns_after_its_time_limit_is_dropped(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = App()

    @app.task(name="t", retry=POLICY, timeout=0.05)
    async def t() -> str:
        try:
            await anyio.sleep(60)
        except anyio.get_cancelled_exc_class():
            return "half"
        return "all"

    assert ends(kind, app) == THRICE
    assert "JobTimeoutError: ran longer than 0.05 s" in caplog.text


@pytest.mark.parametrize("how", ["async", "loop", "thread"])
def test_a_process_that_a_handler_forks_is_no_second_worker(kind: str, how: Any) -> None:
    app, statuses = App(), []

    def forks() -> None:
        pid = os.fork()
        if not pid:
            sys.exit(7)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    async def forks_soon() -> None:
        forks()
        await anyio.sleep(0)

    if how == "async":
        app.task(name="t")(forks_soon)
    else:
        app.task(name="t", executor=how)(forks)

    assert ends(kind, app) == ["done"]
    assert statuses == [7]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_whatever_a_coroutine_does_is_a_failure(kind: str, way: Any) -> None:
    app = App()
    app.task(name="t", retry=POLICY)(way)

    assert ends(kind, app, concurrency=1) == THRICE


@pytest.mark.parametrize("what", ["own BaseException", "text raises", "CancelledError"])
def test_so_is_what_middleware_raises(kind: str, what: str) -> None:
    app = App()

    @app.middleware
    async def failing(job: Any, run: Any) -> object:
        return await run() if job.task == "well" else fail(what)

    @app.task(name="t", retry=POLICY)
    async def t() -> None: ...

    assert ends(kind, app) == THRICE


# Policies.


def raises(error: BaseException) -> Any:
    def policy(*_: Any) -> float:
        raise error

    return policy


def returns(value: object) -> Any:
    return lambda *_: value


class Odd(Fixed):
    """A policy of a user."""

    def wait(self, *_: Any) -> Any:
        """In words."""
        return "soon"


class NoNumber(float):
    """Odd."""

    def __lt__(self, _: object) -> bool:
        raise OwnBaseError

    __gt__ = __ge__ = __le__ = __lt__


NO_WAITS: Final[list[Any]] = [
    -5, math.nan, math.inf, -math.inf, True, "5", datetime.timedelta(1), [], 1j,
]  # fmt: skip
BROKEN: Final[dict[str, Any]] = {
    "raises": raises(ZeroDivisionError()),
    "leaves": raises(SystemExit(1)),
    "own BaseException": raises(OwnBaseError()),
    **{repr(value): returns(value) for value in NO_WAITS},
    "no number": lambda *_: NoNumber(3),
    "a class": Odd([1, 2, 3]),
}


@pytest.mark.parametrize("timeout", [None, 0.02])
@pytest.mark.parametrize("policy", BROKEN)
def test_a_broken_policy_gives_way_to_the_default_one_and_is_reported_once(
    kind: str, policy: str, timeout: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    app = App()

    async def t() -> None:
        if timeout is None:
            raise ValueError("no")
        await anyio.sleep_forever()

    options: Any = {"retry": BROKEN[policy], "timeout": timeout}
    app.task(name="t", **options)(t)
    assert ends(kind, app) == BY_DEFAULT
    texts = [each.getMessage() for each in caplog.records]
    assert sum("retry= of the task is broken" in each for each in texts) == 1


@pytest.mark.parametrize("wait", [2, 1.5, fractions.Fraction(3, 2), 1e12, None])
def test_a_function_chooses_any_number(kind: str, wait: Any) -> None:
    app = App()

    @app.task(name="t", retry=lambda *_: wait)
    async def t() -> None:
        raise ValueError("no")

    expected = "dead" if wait is None else f"NACK {min(float(wait), 2_147_483):.3f}"
    assert ends(kind, app, most=1) == [expected]


# Time limits.


@pytest.mark.parametrize("how", ["async", "thread", "process", "shielded", "raises", "def"])
def test_a_run_that_takes_too_long_has_failed(kind: str, how: str) -> None:
    app, seen = App(), []

    @app.middleware
    async def see(job: Any, run: Any) -> object:
        try:
            return await run()
        except BaseException as error:
            seen.append((job.task, type(error).__name__))
            await anyio.sleep(0)  # it is not cancelled itself
            raise

    executor: Any = {"thread": "thread", "process": "process", "def": "thread"}.get(how)
    options: Any = {"executor": executor} if executor else {}
    app.task(name="t", retry=POLICY, timeout=0.02, **options)(LONG[how])

    assert ends(kind, app) == THRICE
    kind_of_error = {"raises": "KeyError", "def": "LookupError"}.get(how, "JobTimeoutError")
    assert seen == [("t", kind_of_error)] * 3


async def _sleeps() -> None:
    await anyio.sleep_forever()


async def _raises() -> None:
    try:
        await anyio.sleep_forever()
    finally:
        raise KeyError("its own")


async def _shields() -> None:
    with anyio.CancelScope(shield=True):
        await anyio.sleep(0.03)
    await anyio.sleep_forever()


def _checks() -> None:
    while True:
        time.sleep(0.001)
        current_job().check()


def _fails_late() -> None:
    time.sleep(0.03)
    raise LookupError("its own")


def sleeps_in_a_process() -> None:
    """It must be found by its name."""
    time.sleep(60)


LONG: Final[dict[str, Any]] = {
    "async": _sleeps,
    "thread": _checks,
    "process": sleeps_in_a_process,
    "shielded": _shields,
    "raises": _raises,
    "def": _fails_late,
}


def test_middleware_that_does_not_end_has_failed(kind: str) -> None:
    app = App()

    @app.middleware
    async def slow(job: Any, run: Any) -> object:
        if job.task == "t":
            await anyio.sleep_forever()
        return await run()

    @app.task(name="t", retry=POLICY, timeout=0.02)
    async def t() -> None: ...

    assert ends(kind, app) == THRICE


def test_what_a_thread_returns_late_is_dropped(kind: str) -> None:
    app, gate = App(), threading.Event()

    @app.task(name="t", retry=POLICY, timeout=0.02)
    def t() -> None:
        gate.wait(0.1)

    assert ends(kind, app) == THRICE
