"""What type checkers are to make of both clients; never run (`test_typed`).

Mypy reads it with the other tests, and so does pyright, where it is installed: they must agree. A
`type: ignore` that is not needed is an error.
"""

from typing import assert_type

from disque_trio.client import (
    BlockingClient,
    Client,
    Command,
    DisqueError,
    Job,
    JobDetails,
    JobResult,
    KeyHolder,
    Meta,
    QueueInfo,
    QueueStats,
    RefusedError,
    commands,
)
from disque_trio.client.records import End, Scanned
from disque_trio.client.refusals import DuplicateJobError


async def asynchronous(client: Client, job: Job) -> None:
    async with client as same:
        assert_type(same, Client)
    assert_type(await client.addjob("q", b"body", retry=5, unique="k"), str)
    assert_type(await client.getjob("a", b"b", count=2, with_meta=True), list[Job])
    assert_type(await client.ackjob(job, job.id), int)
    assert_type(await client.working(job), int)
    assert_type(await client.working_all(job), list[int | RefusedError])
    assert_type(await client.nack(job, delay=0.5), int)
    assert_type(await client.waitjob(job), End | None)
    assert_type(await client.waitresult(job), JobResult | None)
    assert_type(await client.ackjob(job, result=b"done", keep=60), int)
    assert_type(await client.show(job), JobDetails | None)
    assert_type(await client.show_key("q", "k"), KeyHolder | None)
    assert_type(await client.qstat("q"), QueueStats | None)
    assert_type(await client.queue_info("q"), QueueInfo)
    assert_type(await client.qscan(), Scanned[str])
    assert_type(await client.jscan(), Scanned[JobDetails])
    assert_type(await client.info(), dict[str, str])
    assert_type(await client.run(commands.qlen("q")), int)
    assert_type(await client.run_all([commands.ping()]), list[str | DisqueError])
    await client.addjob("q", "body", unique="k", if_exists="replace")
    await client.addjob("q")  # type: ignore[call-arg]
    await client.addjob("q", 7)  # type: ignore[arg-type]
    await client.addjob("q", "body", retries=5)  # type: ignore[call-arg]
    await client.addjob("q", "body", if_exists="refuse")  # type: ignore[arg-type]
    await client.ackjob(7)  # type: ignore[arg-type]


def blocking(client: BlockingClient, job: Job) -> None:
    with client as same:
        assert_type(same, BlockingClient)
    assert_type(client.addjob("q", b"body", retry=5, unique="k"), str)
    assert_type(client.getjob("a", b"b", count=2, with_meta=True), list[Job])
    assert_type(client.ackjob(job, job.id), int)
    assert_type(client.working(job), int)
    assert_type(client.working_all(job), list[int | RefusedError])
    assert_type(client.nack(job, delay=0.5), int)
    assert_type(client.waitjob(job), End | None)
    assert_type(client.waitresult(job), JobResult | None)
    assert_type(client.show(job), JobDetails | None)
    assert_type(client.show_key("q", "k"), KeyHolder | None)
    assert_type(client.qstat("q"), QueueStats | None)
    assert_type(client.queue_info("q"), QueueInfo)
    assert_type(client.qscan(), Scanned[str])
    assert_type(client.jscan(), Scanned[JobDetails])
    assert_type(client.info(), dict[str, str])
    assert_type(client.run(commands.qlen("q")), int)
    assert_type(client.run_all([commands.ping()]), list[str | DisqueError])
    client.addjob("q")  # type: ignore[call-arg]
    client.addjob("q", 7)  # type: ignore[arg-type]
    client.addjob("q", "body", retries=5)  # type: ignore[call-arg]
    client.addjob("q", "body", if_exists="refuse")  # type: ignore[arg-type]
    client.ackjob(7)  # type: ignore[arg-type]


def opened() -> None:
    assert_type(Client("disque://a", discover=False, patience_s=1.0), Client)
    assert_type(BlockingClient(connect_timeout_s=2.0), BlockingClient)
    BlockingClient("disque://a", False)  # type: ignore[call-arg]
    Client(timeout=2.0)  # type: ignore[call-arg]


def records(job: Job, shown: JobDetails, error: DuplicateJobError) -> None:
    assert_type(job.id, str)
    assert_type(job.body, bytes)
    assert_type(job.meta, Meta | None)
    assert_type(shown.queue, str | None)
    assert_type(error.job_id, str)
    assert_type(commands.getjob("q"), Command[list[Job]])
    assert_type(commands.getjob("q").result(None), list[Job])
    job.nacks = 3  # type: ignore[misc]
