"""What type checkers are to make of tasks; never run (`test_typed`).

Mypy reads it with the other tests, and so does pyright, where it is installed: they must agree. A
`type: ignore` that is not needed is an error.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, assert_type

from disque_trio import worker
from disque_trio.client import BlockingClient, Client, DisqueError
from disque_trio.worker import (
    Adding,
    App,
    Backoff,
    BatchEnds,
    Call,
    Enqueued,
    Fixed,
    Job,
    Polynomial,
    Task,
    current_job,
)
from disque_trio.worker.handler import JobHandler
from disque_trio.worker.task import SyncTask


class Receipt: ...


class Pool: ...


@asynccontextmanager
async def lifespan() -> AsyncGenerator[Pool]:
    yield Pool()


worker.Bakcoff  # type: ignore[attr-defined]  # noqa: B018

plain = App("disque://a")
app = App("disque://a", lifespan=lifespan)
assert_type(plain, App[None])
assert_type(app, App[Pool])


@app.task(queue="mail", lease=60, timeout=300, retry=Backoff(attempts=10, never=(OSError,)))
async def send(to: str, n: int = 1) -> Receipt:
    return Receipt()


@app.task(name="video.cut", executor="thread", retry=Fixed([1, 2.5]), aliases=["cut"])
def cut(path: str, *, speed: float = 1.0) -> int:
    return 0


@app.task(bind=True, retry=Polynomial(power=3))
async def bound(job: Job[Pool], page: int) -> str:
    assert_type(job.state, Pool)
    assert_type(job.attempt, int)
    assert_type(job.key, str | None)
    assert_type(job.deadline, float)
    return ""


@app.task
async def bare(to: str) -> Receipt:
    return Receipt()


@app.task
def bare_def(n: int) -> int:
    return n


@app.task(bind=True)
def bound_def(job: Job[Pool], page: int) -> None: ...


@app.consumer("raw", timeout=3)
def take(body: bytes) -> None: ...


@app.middleware
async def timed(job: Job[Any], run: Callable[[], Awaitable[object]]) -> object:
    return await run()


@app.on_enqueue
def trace(adding: Adding) -> None:
    adding.headers["traceparent"] = "00"


@app.on(worker.JobDead, worker.JobRetried)
async def failed(event: worker.JobDead | worker.JobRetried) -> None:
    assert_type(event.duration, float)


def by_function(job: Job[Pool], error: BaseException) -> float | None:
    return 3.0


app.task(name="odd", retry=by_function)


async def declared() -> None:
    assert_type(await send("ada"), Receipt)
    assert_type(cut("a", speed=2.0), int)
    assert_type(await bound(3), str)
    assert_type(bound_def(3), None)
    assert_type(await bare("ada"), Receipt)
    assert_type(bare_def(3), int)
    tasks: list[Task[..., Any]] = [send, cut, bound, bound_def]
    one: Task[..., Receipt] = send
    two: SyncTask[..., int] = cut
    del tasks, one, two
    take(b"body")


async def asynchronous() -> None:
    async with app as same:
        assert_type(same, App[Pool])
    assert_type(await send.enqueue("ada", n=2), Enqueued[Receipt])
    assert_type(await cut.using(delay=600, priority=5).enqueue("a", speed=2.0), Enqueued[int])
    assert_type(await bound.enqueue(page=3), Enqueued[str])
    assert_type(send.call("ada"), Call[Receipt])
    assert_type(bound.call(3) | cut.partial(speed=2.0), Call[int])
    assert_type(await (await cut.enqueue("a")).result(timeout=10), int)
    found = await app.enqueue_many(send.call(each) for each in ["a", "b"])
    assert_type(found, list[Enqueued[Receipt] | DisqueError])
    assert_type(app.client, Client)
    assert_type((await send.enqueue("ada")).id, str)
    await send.enqueue()  # type: ignore[call-arg]
    await send.enqueue(7)  # type: ignore[arg-type]
    await send.enqueue("ada", m=2)  # type: ignore[call-arg]
    await bound.enqueue("x")  # type: ignore[arg-type]
    await send.using(unique=True, unique_for=60, on_conflict="return").enqueue("ada")
    send.using(priorty=3)  # type: ignore[call-arg]
    send.using(on_conflict="refuse")  # type: ignore[arg-type]


def blocking() -> None:
    assert_type(send.blocking.enqueue("ada"), Enqueued[Receipt])
    assert_type(app.blocking.client, BlockingClient)
    assert_type(
        app.blocking.enqueue_many([cut.call("a")]),
        list[Enqueued[int] | DisqueError],
    )
    send.blocking.enqueue(7)  # type: ignore[arg-type]


async def running() -> None:
    assert_type(app.handler(), JobHandler)
    assert_type(current_job(), Job[Any])
    async with app.handler(is_strict=True) as handler:
        assert_type(handler, JobHandler)


async def a_task_that_yields_returns_nothing(app: App[int]) -> None:
    @app.task
    async def walk(steps: int) -> AsyncIterator[int]:
        yield steps

    @app.task(bind=True)
    async def stroll(job: Job[int], steps: int) -> AsyncGenerator[str, None]:
        yield "a"

    assert_type(await walk.enqueue(3), Enqueued[None])
    assert_type(await stroll.enqueue(3), Enqueued[None])
    await walk.enqueue("a")  # type: ignore[arg-type]
    await walk(3)


@app.task
async def fetch(url: str) -> bytes:
    return b""


@app.task
async def count(data: bytes, *, by: int = 1) -> int:
    return by


@app.task
def note(figure: float, text: str = "") -> None: ...


@app.task
def summed(ends: BatchEnds) -> int:
    return ends.size


@app.task
def clean() -> None: ...


async def joints_of_chains() -> None:
    assert_type(fetch.call("a") | count.partial(), Call[int])
    assert_type(fetch.call("a") | count.partial(by=2) | note.partial("x"), Call[None])
    assert_type(fetch.call("a") | count.using(priority=1).partial() | clean.call(), Call[None])
    fetch.call("a") | note.partial()  # type: ignore[operator]
    note.call(1) | count.partial()  # type: ignore[operator]
    fetch.call("a") | clean.partial()  # type: ignore[operator]
    await app.batch([fetch.call("a")], summed.partial() | note.partial())
    await app.batch([fetch.call("a")], clean.call())
    await app.batch([fetch.call("a")], count.partial())  # type: ignore[arg-type]
    await count.partial().enqueue()  # type: ignore[attr-defined]
