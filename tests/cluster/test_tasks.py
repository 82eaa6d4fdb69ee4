"""Tasks with a real node and a worker: failures, snoozes, time limits, dead jobs, priorities."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from disque_trio.client.url import parse_url
from disque_trio.worker import App, Dead, Fixed, Job, Snooze, current_job
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import Queue, Settings
from tests.cluster.processes import Server
from tests.cluster.test_python_clients import url

pytestmark = pytest.mark.parametrize("backend", ["trio", "asyncio"])


def worked(
    app: App[None], backend: str, story: Callable[[], Awaitable[None]], concurrency: int = 4
) -> None:
    """A worker of the app runs from the beginning of the story to its end."""

    async def held() -> None:
        cluster = parse_url(str(app._enqueuer.url))
        settings = Settings(
            nodes=tuple(map(str, cluster.seeds)),
            queues=tuple(Queue(name=name.encode()) for name in app.queues),
            concurrency=concurrency,
        )
        with anyio.fail_after(120):
            async with app.handler() as handler, anyio.create_task_group() as tasks:
                worker = Worker(settings=settings, handler=handler, cluster=cluster)
                await tasks.start(worker.run)
                await story()
                worker.stop()

    anyio.run(held, backend=backend)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await anyio.sleep(0.01)


def test_a_failed_job_is_tried_again_and_dead_in_the_end(backend: str, server: Server) -> None:
    app, seen = App(url(server)), list[int]()

    @app.task(name="t", queue=f"fail-{backend}", retry=Fixed([0, 0.1]))
    async def t() -> None:
        seen.append(current_job().attempt)
        raise ValueError("no")

    async def story() -> None:
        job = await t.enqueue()
        assert await app.client.waitjob(job.id, timeout=60) == "dead"
        shown = await app.client.show(job.id)
        assert shown is not None
        reason = shown.more["reason"]
        assert isinstance(reason, bytes)
        assert reason.startswith(b"failed 3 of 3 times: ValueError: no (cluster/test_tasks.py:")
        assert seen == [1, 2, 3]
        assert await app.client.redrive(job.id) == 1
        await until(lambda: seen == [1, 2, 3, 1, 2, 3])

    worked(app, backend, story)


@pytest.mark.parametrize("unique", [None, "today"])
def test_a_snoozed_job_comes_again_without_a_failure(
    backend: str, unique: Any, server: Server
) -> None:
    app, seen = App(url(server)), list[tuple[int, int, str | None]]()

    @app.task(bind=True, name="t", queue=f"snooze-{backend}-{unique}", retry=Fixed([0]))
    async def t(job: Job[None], n: int) -> None:
        seen.append((job.attempt, job.snoozes, job.key))
        if len(seen) == 1:
            raise ValueError
        if len(seen) < 4:
            raise Snooze(0.2)
        assert n == 7

    async def story() -> None:
        job = await t.using(unique=unique).enqueue(7)
        await until(lambda: len(seen) == 4)
        assert seen == [(1, 0, job.key), (2, 0, job.key), (2, 1, job.key), (2, 2, job.key)]

    worked(app, backend, story)


def test_a_job_that_takes_too_long_is_a_failure(backend: str, server: Server) -> None:
    app, seen = App(url(server)), list[int]()

    @app.task(name="t", queue=f"long-{backend}", timeout=0.1, retry=Fixed([0]))
    async def t() -> None:
        seen.append(current_job().attempt)
        await anyio.sleep_forever()

    async def story() -> None:
        job = await t.enqueue()
        assert await app.client.waitjob(job.id, timeout=60) == "dead"
        shown = await app.client.show(job.id)
        assert shown is not None
        assert shown.more["reason"] == (
            b"failed 2 of 2 times: JobTimeoutError: ran longer than 0.1 s"
        )
        assert seen == [1, 2]

    worked(app, backend, story)


def test_jobs_come_by_their_priorities(backend: str, server: Server) -> None:
    app, seen = App(url(server)), list[int]()

    @app.task(name="t", queue=f"first-{backend}", priority=1)
    async def t(n: int) -> None:
        seen.append(n)

    async def add() -> None:
        async with app:
            await app.enqueue_many(t.using(priority=n).call(n) for n in (-5, 0, 5))
            await t.enqueue(1)

    async def story() -> None:
        await until(lambda: len(seen) == 4)
        assert seen == [5, 1, 0, -5]

    anyio.run(add, backend=backend)
    worked(app, backend, story, concurrency=1)


def test_what_cannot_be_run_is_dead_and_its_body_is_kept(backend: str, server: Server) -> None:
    app, queue = App(url(server)), f"odd-{backend}"

    @app.task(name="t", queue=queue)
    async def t() -> None:
        raise Dead("no address")

    async def story() -> None:
        told = {}
        for body in (b"hello", b'{"task":"t","args":[1]}', b'{"task":"t"}'):
            id = await app.client.addjob(queue, body)
            assert await app.client.waitjob(id, timeout=60) == "dead"
            shown = await app.client.show(id)
            assert shown is not None
            assert shown.body == body
            told[body] = shown.more["reason"]
        assert list(told.values()) == [
            b"unreadable: the body is neither a JSON object nor a msgpack map",
            b"invalid arguments: too many positional arguments",
            b"no address",
        ]

    worked(app, backend, story)
