"""What a handler may ask while its job runs."""

import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from disque_trio.worker import App, Job, NoJobError, current_job
from disque_trio.worker.engine.records import Done
from tests.worker.runs import ID, Driver, body, outcome

BACKENDS = pytest.mark.parametrize("backend", ["trio", "asyncio"])


@pytest.mark.parametrize("executor", ["loop", "thread"])
def test_a_job_says_what_is_known_of_it(executor: Any) -> None:
    app = App()
    seen: list[object] = []

    @app.task(name="t", executor=executor)
    def t() -> None:
        job = current_job()
        seen.append((job.id, job.task, job.queue, job.node, job.key, job.headers["a"]))
        seen.append((job.attempt, job.delivery, job.interrupted, job.snoozes, job.stopping))

    headers = {"a": 1, "tries": 2, "snoozes": 4}
    driver = Driver(is_stopping=True)
    outcome(app, body("t", key="k", headers=headers), queue=b"q", nacks=3, crashes=1, driver=driver)

    assert seen == [(ID.decode(), "t", "q", "n1:7711", "k", 1), (6, 5, 1, 4, True)]


def test_a_deadline_is_the_end_of_the_lease_or_of_the_time_limit() -> None:
    app = App()
    seen: list[object] = []

    @app.task(name="t", timeout=40)
    async def t() -> None:
        seen.append(current_job().deadline)

    outcome(app, body("t"), driver=Driver(end=-5.0))
    assert seen == [-5.0]


def test_outside_of_a_handler_there_is_no_job() -> None:
    with pytest.raises(NoJobError, match="call it inside a handler"):
        current_job()


def test_a_bound_task_may_be_called_from_another_one() -> None:
    app = App()

    @app.task(bind=True, name="inner")
    async def inner(job: Job[None], n: int) -> str:
        return f"{job.task} {n}"

    @app.task(name="outer")
    async def outer() -> None:
        assert await inner(3) == "outer 3"

    assert outcome(app, body("outer")) == Done()


@BACKENDS
def test_what_the_lifespan_yields_is_the_state_of_each_job(backend: str) -> None:
    seen: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan() -> AsyncIterator[list[str]]:
        seen.append("begins")
        yield seen
        seen.append("ends")

    app = App(lifespan=lifespan)

    @app.task(bind=True, name="t")
    def t(job: Job[list[str]]) -> None:
        job.state.append("runs")

    assert outcome(app, body("t"), backend) == Done()
    assert seen == ["begins", "runs", "ends"]


def test_a_lifespan_that_fails_closes_what_is_open() -> None:
    @contextlib.asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        connect()
        yield

    def connect() -> None:
        raise OSError("no database")

    app = App(lifespan=lifespan)
    with pytest.raises(OSError, match="no database"):
        outcome(app, body("t"))
    with pytest.raises(LookupError):
        _ = current_job()


def test_a_logger_of_the_job_keeps_what_is_added(caplog: pytest.LogCaptureFixture) -> None:
    app = App()

    @app.task(name="t")
    async def t() -> None:
        current_job().log.info("page %d", 4, extra={"page": 4})

    with caplog.at_level(logging.INFO):
        outcome(app, body("t"), nacks=1)

    record: Any = caplog.records[0]
    assert (record.getMessage(), record.page, record.task, record.attempt) == ("page 4", 4, "t", 2)
