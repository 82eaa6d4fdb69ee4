"""From a body to its handler, and from its end to an outcome."""

import asyncio
import math
import os
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
import trio

from disque_trio.worker import (
    App,
    Backoff,
    Cancel,
    Dead,
    Fixed,
    Job,
    Retry,
    Snooze,
    UnfitTypeError,
    current_job,
)
from disque_trio.worker.engine import records
from disque_trio.worker.engine.records import Done, Reason, Release
from disque_trio.worker.envelope import key_of
from disque_trio.worker.executors.frames import NotNamedError
from tests.worker.runs import ID, Driver, body, handler_of, outcome, outcomes, run_of

SECOND = 1_000_000
BACKENDS = pytest.mark.parametrize("backend", ["trio", "asyncio"])


def failing(error: BaseException, **options: Any) -> App[None]:
    """An app whose task `t` raises this."""
    app = App()
    options.setdefault("retry", Fixed([10, 20]))

    async def t() -> None:
        raise error

    app.task(name="t", **options)(t)
    return app


@BACKENDS
@pytest.mark.parametrize("executor", ["loop", "thread", "async"])
def test_a_handler_that_returns_is_done(backend: str, executor: Any) -> None:
    app, seen = App(), []

    if executor == "async":

        @app.task(name="send")
        async def send_soon(to: str, n: int = 1) -> None:
            seen.append((to, n, current_job().id))
    else:

        @app.task(name="send", executor=executor)
        def send(to: str, n: int = 1) -> None:
            seen.append((to, n, current_job().id))
            assert (threading.current_thread() is threading.main_thread()) == (executor == "loop")

    assert outcome(app, body("send", "ada", kwargs={"n": 2}), backend) == Done()
    assert seen == [("ada", 2, ID.decode())]


def test_a_def_runs_in_a_thread() -> None:
    app, threads = App(), []

    @app.task(name="t")
    def t() -> None:
        threads.append(threading.current_thread())

    outcome(app, body("t"))
    assert threads != [threading.main_thread()]


# Failures.


@BACKENDS
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("no"), records.Retry(10 * SECOND)),
        (Retry(after=2.5), records.Retry(2_500_000)),
        (Dead("card stolen"), records.Dead(b"card stolen")),
        (Cancel("obsolete"), Done()),
        (SystemExit(3), records.Retry(10 * SECOND)),
        (KeyboardInterrupt(), records.Retry(10 * SECOND)),
        (ExceptionGroup("children", [ValueError(), Dead("stolen")]), records.Dead(b"stolen")),
        (TimeoutError("of the handler's own"), records.Retry(10 * SECOND)),
    ],
)
def test_an_error_becomes_an_outcome(
    backend: str, error: BaseException, expected: records.Outcome
) -> None:
    assert outcome(failing(error), body("t"), backend) == expected


def test_failures_count_and_end_in_death() -> None:
    app = failing(ValueError("no"))

    assert outcome(app, body("t"), nacks=1) == records.Retry(20 * SECOND)
    dead = outcome(app, body("t"), nacks=2)
    assert isinstance(dead, records.Dead)
    assert dead.reason.startswith(b"failed 3 of 3 times: ValueError: no (worker/test_handler.py")


def test_attempts_of_an_earlier_life_count() -> None:
    app = failing(ValueError("no"))

    assert isinstance(outcome(app, body("t", headers={"tries": 2})), records.Dead)
    for strange in (-1, "2", 1 << 40, None):
        found = outcome(app, body("t", headers={"tries": strange}))
        assert found == records.Retry(10 * SECOND)


def test_a_policy_that_is_a_function_gets_the_job_and_the_error() -> None:
    def retry(job: Job[None], error: BaseException) -> float | None:
        return None if isinstance(error, LookupError) else job.attempt * 100.0

    assert outcome(failing(ValueError(), retry=retry), body("t"), nacks=2) == records.Retry(
        300 * SECOND
    )
    assert isinstance(outcome(failing(KeyError(), retry=retry), body("t")), records.Dead)


def test_a_delay_has_jitter_from_the_source_that_is_given() -> None:
    app = failing(ValueError(), retry=Backoff(base=100))

    async def held() -> records.Outcome:
        return await handler_of(app, draw=lambda: 0.25)(run_of(body("t")))

    assert anyio.run(held, backend="trio") == records.Retry(25 * SECOND)


@pytest.mark.parametrize(
    ("left", "is_dead"), [(101.0, False), (99.0, True), (math.inf, False)], ids=str
)
def test_a_job_that_would_not_live_until_its_next_attempt_is_dead(
    left: float, is_dead: bool
) -> None:
    # Only what the node has told of its life counts, not the age of its key.
    app = failing(ValueError("no"), retry=Fixed([100]), ttl=400)

    async def held() -> records.Outcome:
        ends = anyio.current_time() + left
        expires = records.NEVER if left == math.inf else round(ends * SECOND)
        return await handler_of(app)(run_of(body("t", key=key_of(0, 0)), expires=expires))

    found = anyio.run(held, backend="trio")
    if not is_dead:
        assert found == records.Retry(100 * SECOND)
    else:
        assert isinstance(found, records.Dead)
        text = b"its life ends before the next attempt, in 100 s: ValueError"
        assert found.reason.startswith(text)


def test_a_failure_is_logged_with_its_job(caplog: pytest.LogCaptureFixture) -> None:
    outcome(failing(ValueError("no"), retry=Fixed([1], expected=(OSError,))), body("t", key="k"))
    outcome(failing(OSError("no"), retry=Fixed([1], expected=(OSError,))), body("t"))

    first, second = caplog.records
    assert first.getMessage().startswith("failed, retry in 1.0 s: ValueError: no")
    assert first.exc_info is not None
    assert second.exc_info is None
    known: Any = first
    assert (known.job, known.task, known.key, known.attempt) == (ID.decode(), "t", "k", 1)


@pytest.mark.parametrize(
    ("backend", "sleep", "option"),
    [("asyncio", trio.sleep, "--loop trio"), ("trio", asyncio.sleep, "--loop asyncio")],
)
def test_a_handler_for_the_other_event_loop_is_logged_with_what_to_do(
    backend: str,
    sleep: Callable[[float], Awaitable[None]],
    option: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App()

    @app.task(name="t", retry=Fixed([1]))
    async def t() -> None:
        await sleep(1)

    outcome(app, body("t"), backend)

    assert option in caplog.text


# Bodies that cannot be run.


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (b"hello", b"unreadable: "),
        (b'{"task":7}', b"unreadable: "),
        (body("t", "x"), b"invalid arguments: too many positional arguments"),
        (body("send", 7), b"invalid arguments: $.args[0]: Expected `str`, got `int`"),
    ],
)
def test_a_body_that_cannot_be_run_is_dead_with_the_reason(what: bytes, reason: bytes) -> None:
    app = failing(ValueError())

    @app.task(name="send")
    async def send(to: str) -> None:
        raise AssertionError

    dead = outcome(app, what)
    assert isinstance(dead, records.Dead)
    assert dead.reason.startswith(reason)


@pytest.mark.parametrize("what", [body("newer"), body("t", v=2)])
def test_an_unknown_task_waits_for_a_newer_worker(what: bytes) -> None:
    app = failing(ValueError())

    assert outcome(app, what) == records.Retry(5 * SECOND)
    assert outcome(app, what, nacks=3) == records.Retry(40 * SECOND)
    assert isinstance(outcome(app, what, nacks=20), records.Dead)


def test_a_strict_handler_does_not_wait_for_one() -> None:
    async def held() -> records.Outcome:
        return await handler_of(App(), is_strict=True)(run_of(body("new.task")))

    assert anyio.run(held, backend="trio") == records.Dead(b"unknown task: new.task")


def test_a_job_that_kills_its_workers_is_not_run_again() -> None:
    app = failing(ValueError(), max_crashes=3)

    assert isinstance(outcome(app, body("t"), crashes=4), records.Retry)
    dead = outcome(app, body("t"), crashes=5)
    assert isinstance(dead, records.Dead)
    assert dead.reason.startswith(b"killed its worker 3 times while running alone")


def test_a_task_is_found_by_its_earlier_name() -> None:
    assert outcome(failing(Cancel(), aliases=["old.t"]), body("old.t")) == Done()


def test_what_cannot_work_is_said_when_the_worker_starts() -> None:
    def t(x: "Later") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(UnfitTypeError, match="'Later' is not defined"):
        declared(t).handler()
    with pytest.raises(ValueError, match="executor thread: `async def` runs in the loop"):
        failing(ValueError(), executor="thread").handler()
    with pytest.raises(ValueError, match="bind is impossible there; omit bind"):
        declared(math.sqrt, executor="process", bind=True).handler()
    with pytest.raises(NotNamedError, match="must be a function of a module"):
        declared(lambda: None, executor="process").handler()


def declared(fn: Any, **options: Any) -> App[None]:
    app = App()
    app.task(name="t", **options)(fn)
    return app


@BACKENDS
def test_a_def_may_run_in_a_process(backend: str) -> None:
    app = declared(roots_of, executor="process", retry=Fixed([10]))

    found = outcomes(app, [run_of(body("t", each, os.getpid())) for each in (4, -1)], backend)

    assert found[0] == Done()
    assert found[1] == records.Retry(10 * SECOND)


def roots_of(number: int, worker: int) -> None:
    assert os.getpid() != worker
    math.sqrt(number)


# Cancellation and time limits.


@BACKENDS
def test_a_cancelled_handler_has_nothing_to_say(backend: str) -> None:
    app = App()

    @app.task(name="t")
    async def t() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
            try:
                await anyio.sleep_forever()
            finally:
                raise ValueError("while it ends")

    said: list[records.Outcome] = []

    async def held() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            said.append(await handler_of(app)(run_of(body("t"), why=Reason.SHUTDOWN)))

    anyio.run(held, backend=backend)
    # In a group of Trio the cancellation is beside the error.
    assert said == ([] if backend == "trio" else [Release()])


def test_a_handler_that_fails_because_it_is_ended_is_given_back() -> None:
    app = failing(ValueError("connection closed"))

    assert outcome(app, body("t"), why=Reason.SHUTDOWN) == Release()
    assert outcome(app, body("t"), why=Reason.LEASE_OVER) == Release()
    assert outcome(failing(Dead("x")), body("t"), why=Reason.SHUTDOWN) == records.Dead(b"x")
    assert outcome(failing(Dead("x")), body("t"), why=Reason.LOST) == Release()
    assert outcome(failing(Cancel("x")), body("t"), why=Reason.LOST) == Done()


def test_a_time_limit_is_told_to_the_driver() -> None:
    driver, deadlines = Driver(end=1e18), []
    app = App()

    @app.task(name="t", timeout=40)
    async def t() -> None:
        deadlines.append(current_job().deadline - anyio.current_time())

    outcome(app, body("t"), driver=driver)
    assert driver.limits == [40]
    assert deadlines == pytest.approx([40], abs=5)


def test_a_thread_learns_by_asking_that_its_run_is_over() -> None:
    app = App()

    @app.task(name="t", retry=Fixed([10]))
    def t() -> None:
        current_job().check()

    assert outcome(app, body("t")) == Done()
    assert outcome(app, body("t"), why=Reason.LOST) == Release()
    assert outcome(app, body("t"), why=Reason.TOO_LONG) == records.Retry(10 * SECOND)


# Consumers.


@BACKENDS
def test_a_consumer_gets_every_body_of_its_queue(backend: str) -> None:
    app, seen = App(), []

    @app.consumer("raw", bind=True, retry=Fixed([10]), max_crashes=2)
    async def take(job: Job[None], what: bytes) -> None:
        seen.append((job.queue, what, job.key))
        if what == b"later":
            raise Snooze(30)

    bodies = [b"\x00\x01", b'{"task":"t"}', b"later"]
    found = outcomes(app, [run_of(each, queue=b"raw") for each in bodies], backend)

    assert seen == [("raw", each, None) for each in bodies]
    assert found == [Done(), Done(), records.Retry(30 * SECOND)]
    assert isinstance(outcome(app, b"x", queue=b"raw", crashes=4), records.Dead)
