"""A job by its id: its status and its end, for another process than the one that added it."""

import functools
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import anyio
import attrs
import pytest

from disque_trio.client import NoNodeError, commands
from disque_trio.client.records import JobResult
from disque_trio.client.refusals import UnknownJobError
from disque_trio.testing.server.kit import Server
from disque_trio.worker import (
    App,
    BlockingJobHandle,
    Dead,
    Enqueued,
    Fixed,
    JobHandle,
    JobStatus,
    NotOpenError,
    Snooze,
    Task,
)
from disque_trio.worker.codec import write
from disque_trio.worker.operating.notes import WORKERS, Note
from disque_trio.worker.reporting import Report, RunningJob

KINDS: Final = ("trio", "asyncio", "blocking")

pytestmark = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def disque_nodes() -> int:
    """Of this module."""
    return 3


async def work(what: str) -> None:
    if what == "dead":
        raise Dead("no address")
    if what == "snooze":
        raise Snooze(600)
    if what == "wait":
        await anyio.sleep_forever()
    if what != "done":
        raise ValueError(what)


@attrs.frozen
class Processes:
    """Two apps with the same task: one adds jobs, the other one asks, in the way of a kind."""

    server: Server
    adds: App[None]
    asks: App[None]
    kind: str

    @property
    def task(self) -> Task[..., Any]:
        return self.adds.tasks["work"]

    async def status(self, id: str) -> JobStatus:
        if self.kind == "blocking":
            return self.asks.blocking.job(id).status()
        return await self.asks.job(id).status()

    async def own_status(self, job: Enqueued[Any]) -> JobStatus:
        """As the process is told that has added it."""
        return job.blocking.status() if self.kind == "blocking" else await job.status()

    async def cancel(self, id: str) -> bool:
        if self.kind == "blocking":
            return self.asks.blocking.job(id).cancel()
        return await self.asks.job(id).cancel()

    async def find(self, unique: str) -> JobHandle | BlockingJobHandle | None:
        task = self.asks.tasks["work"]
        return task.blocking.find(unique) if self.kind == "blocking" else await task.find(unique)

    async def becomes(self, id: str, state: str) -> JobStatus:
        while (found := await self.status(id)).state != state:
            await anyio.sleep(0.01)
        return found


Story = Callable[[Processes], Awaitable[None]]


def told(kind: str, server: Server, story: Story) -> None:
    def app() -> App[None]:
        made: App[None] = App(server.url)
        made.task(name="work", queue="jobs", retry=Fixed([300, 300]), result_ttl=60)(work)
        return made

    async def held() -> None:
        adds, asks = app(), app()
        with anyio.fail_after(120):
            async with adds, asks:
                await story(Processes(server, adds, asks, kind))
                if kind == "blocking":
                    asks.blocking.client.close()
                    adds.blocking.client.close()

    anyio.run(held, backend="asyncio" if kind == "asyncio" else "trio")


def story_of(story: Story) -> Callable[[str, Server], None]:
    """A test that tells it."""

    @functools.wraps(story)
    def test(kind: str, disque_server: Server) -> None:
        told(kind, disque_server, story)

    del test.__wrapped__  # pytest looks at its arguments
    return test


@story_of
async def test_a_job_waits_and_is_done_in_the_end(two: Processes) -> None:
    job = await two.task.enqueue("done")

    found = await two.status(job.id)
    assert (found.id, found.state, found.task, found.queue) == (job.id, "waiting", "work", "jobs")
    assert (found.failures, found.is_over, found.due_in, found.unreached) == (0, False, None, {})
    assert found.added_at is not None
    assert abs(found.added_at - datetime.now(UTC).timestamp()) < 60
    assert await job.status() == found

    async with two.server.worker(two.adds):
        await job.result(60)
        while not (ended := await two.status(job.id)).outcome:
            assert ended.state in ("leased", "done")
            await anyio.sleep(0.01)
    assert (ended.state, ended.outcome, ended.task) == ("done", "acknowledged", "work")
    assert (ended.has_result, found.has_result) == (True, False)
    assert ended.ended_at is not None
    assert ended.ended_at >= found.added_at


@story_of
async def test_a_job_that_is_deleted_has_ended_but_is_not_done(two: Processes) -> None:
    job = await two.task.enqueue("done")
    for seed in two.server.cluster.seeds:
        await two.adds.client.ask(seed, [commands.deljob(job.id)])

    ended = await two.status(job.id)
    assert (ended.state, ended.outcome, ended.is_over) == ("ended", "deleted", True)


@story_of
async def test_a_delayed_job_says_when_it_is_due(two: Processes) -> None:
    late = await two.task.using(delay=600).enqueue("done")
    at = datetime.now(UTC) + timedelta(hours=1)
    later = await two.task.using(at=at).enqueue("done")

    for job, seconds in ((late, 600), (later, 3600)):
        found = await two.status(job.id)
        assert found.state == "delayed"
        assert found.due_in is not None
        assert seconds - 60 < found.due_in <= seconds + 1


@story_of
async def test_a_job_backs_off_or_is_dead_with_the_reason(two: Processes) -> None:
    failing, snoozing, dying = [await two.task.enqueue(what) for what in ("fail", "snooze", "dead")]

    async with two.server.worker(two.adds):
        failed = await two.becomes(failing.id, "backing-off")
        snoozed = await two.becomes(snoozing.id, "backing-off")
        dead = await two.becomes(dying.id, "dead")

    assert (failed.failures, snoozed.failures) == (1, 0)
    assert failed.error is not None
    assert (failed.error.kind, failed.error.message, snoozed.error) == ("ValueError", "fail", None)
    assert failed.due_in is not None
    assert 200 < failed.due_in <= 300
    assert (dead.reason, dead.is_over) == ("no address", True)


@pytest.mark.sample(3)
@story_of
async def test_a_running_job_is_leased_and_ends_when_it_is_cancelled(two: Processes) -> None:
    job = await two.task.using(lease=3).enqueue("wait")

    async with two.server.worker(two.adds):
        await two.becomes(job.id, "leased")
        assert await two.cancel(job.id)
        while not (await two.status(job.id)).is_over:
            await anyio.sleep(0.01)
        assert not await two.cancel(job.id)


@pytest.mark.sample(3)
@story_of
async def test_a_running_job_says_which_worker_runs_it_and_since_when(two: Processes) -> None:
    began = datetime.now(UTC).timestamp()
    job = await two.task.enqueue("wait")
    report = Report(
        name="shop-1", host="h", pid=7, version="1", app="shop:app", state="running",
        healthy=True, why="", node="", queues=["jobs"], slots=1, busy=1, held=0, unsettled=0,
        stuck=0, ended=0, answered_s=0, lag_s=0, rss_bytes=0, up_s=9, tasks=[],
        jobs=[RunningJob(id=job.id, task="work", queue="jobs", age_s=2, lease_s=9)],
    )  # fmt: skip
    note = write(Note(control="c", report=report, schedules=[], attempts={}), "json")

    async with two.server.worker(two.adds):
        assert (await two.becomes(job.id, "leased")).worker == "", "none has reported it"
        await two.adds.client.addjob(WORKERS, note, ttl=60)
        while not (found := await two.status(job.id)).worker:
            await anyio.sleep(0.01)
        await two.cancel(job.id)

    assert (found.state, found.worker) == ("leased", "shop-1")
    assert found.since is not None
    assert began - 3 < found.since <= datetime.now(UTC).timestamp() - 1.9


@story_of
async def test_a_waiting_job_that_is_cancelled_never_runs(two: Processes) -> None:
    job = await two.task.enqueue("dead")

    assert await (job.cancel() if two.kind != "blocking" else two.cancel(job.id))
    assert (await two.status(job.id)).is_over
    assert await two.adds.client.qlen("jobs") == 0


@story_of
async def test_what_no_node_knows_is_unknown(two: Processes) -> None:
    for id in ("D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a1", "no id", "", "D-\n"):
        assert await two.status(id) == JobStatus(id=id, state="unknown")
        assert not await two.cancel(id)


@story_of
async def test_a_job_is_found_by_its_unique_key(two: Processes) -> None:
    job = await two.task.using(unique="today", delay=60).enqueue("done")

    found = await two.find("today")

    assert found is not None
    assert (found.id, await two.find("tomorrow")) == (job.id, None)
    assert (await two.status(found.id)).state == "delayed"


@story_of
async def test_a_key_that_is_kept_tells_that_its_job_is_done(two: Processes) -> None:
    job = await two.task.using(unique="today", unique_for=600).enqueue("done")
    async with two.server.worker(two.adds):
        await job.result(60)
        while not (await two.status(job.id)).is_over:
            await anyio.sleep(0.01)

    found = await two.find("today")
    assert found is not None
    status = found.status() if isinstance(found, BlockingJobHandle) else await found.status()
    assert (status.id, status.state) == (job.id, "done")


@story_of
async def test_jobs_for_other_systems_have_a_status_too(two: Processes) -> None:
    job = await two.adds.producer("sidekiq").using(queue="ruby").enqueue("HardJob", 5)

    assert (await job.status()).state == "waiting"
    assert await two.cancel(job.id)


def test_without_a_node_or_a_client_it_is_an_error(kind: str) -> None:
    job = App("disque://127.0.0.1:1").job("D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a1")

    async def ask() -> None:
        if kind == "blocking":
            with pytest.raises(NoNodeError):
                job.blocking.status()
        else:
            with pytest.raises(NotOpenError):
                await job.status()

    anyio.run(ask, backend="asyncio" if kind == "asyncio" else "trio")


@story_of
async def test_the_status_of_a_chain_is_that_of_the_step_under_way(two: Processes) -> None:
    task = two.task
    chain = task.call("done") | task.using(delay=600).call("done")

    job = await chain.enqueue()
    assert (await two.own_status(job)).state == "waiting"
    async with two.server.worker(two.adds):
        while (found := await two.own_status(job)).state != "delayed":
            await anyio.sleep(0.01)

    assert found.id != job.id
    assert await (job.cancel() if two.kind != "blocking" else two.cancel(found.id))
    assert (await two.own_status(job)).state == "done"


@story_of
async def test_a_job_with_sync_has_its_copies_in_the_end(two: Processes) -> None:
    job = await two.task.using(replicate=3, sync=2).enqueue("done")

    while len((await two.adds.admin.jobs.find(job.id)).items) < 3:
        await anyio.sleep(0.01)
    assert {copy.job.repl for copy in (await two.adds.admin.jobs.find(job.id)).items} == {3}


@story_of
async def test_the_result_outlives_whoever_waits_for_it(two: Processes) -> None:
    job = await two.task.enqueue("done")
    async with two.server.worker(two.adds):
        await two.becomes(job.id, "done")

    for seed in two.server.cluster.seeds:
        [found] = await two.asks.client.ask(seed, [commands.waitresult(job.id, timeout=0)])
        assert isinstance(found, JobResult | UnknownJobError), found
        if isinstance(found, JobResult) and found.result is not None:
            break
    else:
        raise AssertionError("no node has it")
    assert json.loads(found.result) == {"key": job.key, "task": "work", "value": None}
