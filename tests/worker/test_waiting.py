"""Who waits for a result is told within a second of the end of the job, in calm."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from disque_trio.testing.simulated.chaos import chaos
from disque_trio.testing.simulated.cluster import Cluster
from disque_trio.testing.simulated.kit import Sim
from disque_trio.worker import App, Backoff, Cancel, Dead, Snooze
from disque_trio.worker.enqueue import Call
from disque_trio.worker.enqueued import Enqueued
from disque_trio.worker.exceptions import JobFailedError, NoResultError

app = App[None]()
ONE = Backoff(attempts=1)


@app.task(name="work", queue="w", lease=30, result_ttl=600, retry=ONE)
async def work(how: str = "") -> str:
    match how:
        case "dead":
            raise Dead("no such page")
        case "cancel":
            raise Cancel("not needed")
        case "fail":
            raise ValueError("x")
    await trio.sleep(5)
    return "worked"


@app.task(name="later", queue="w", lease=30, result_ttl=600, retry=ONE)
async def later(worked: str) -> str:
    await trio.sleep(3)
    return f"{worked} later"


@app.task(name="wrong", queue="w", lease=30, result_ttl=600, retry=ONE)
async def wrong() -> int:
    return "no number"  # type: ignore[return-value]


@app.task(name="slow", queue="w", lease=30, timeout=2, result_ttl=600, retry=ONE)
async def slow() -> None:
    await trio.sleep(60)


@app.task(name="again", queue="w", lease=30, result_ttl=600, retry=ONE)
async def again() -> str:
    raise Snooze(3, most=2)


Ending = Callable[[Cluster, str], Awaitable[object]]


async def by_operator(cluster: Cluster, job: str) -> None:
    assert await app.admin.jobs.cancel(job)


async def by_deljob(cluster: Cluster, job: str) -> None:
    for node in ("n1", "n2", "n3"):
        cluster.command(node, "DELJOB", job)


async def by_death(cluster: Cluster, job: str) -> None:
    cluster.command("n1", "NACK", job, "DEAD", "an operator's reason")


async def told(cluster: Cluster, job: Enqueued[Any], since: float, timeout: float = 100) -> Any:
    """What `result` raises, within a second of this time."""
    with pytest.raises((JobFailedError, NoResultError)) as raised:
        await job.result(timeout)
    assert cluster.time - since < 1.0
    return raised.value


@pytest.mark.parametrize(
    ("end", "expected"), [(by_operator, "acked"), (by_deljob, None), (by_death, "dead")]
)
def test_an_end_that_no_worker_sees_is_told_within_a_second(
    disque_sim: Sim, end: Ending, expected: str | None
) -> None:
    async def story(cluster: Cluster) -> None:
        waits = await work.using(delay=50).enqueue()
        runs = await work.enqueue()
        ends = cluster.time + 2.3

        async def ending(job: str) -> None:
            await trio.sleep(2.3)
            await end(cluster, job)

        async with trio.open_nursery() as tasks:
            tasks.start_soon(ending, waits.id)
            error = await told(cluster, waits, ends)
        assert isinstance(error, NoResultError)
        assert error.end == expected
        if end is by_death:
            assert "an operator's reason" in str(error)
        assert await runs.result(100) == "worked"

    disque_sim.run(story, app, seeds=4)


def test_a_life_that_ends_is_told(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        job = await work.using(queue="nobody", lease=3, ttl=5).enqueue()
        await told(cluster, job, 6.0)  # other holders keep it up to a second longer

    disque_sim.run(story, app, seeds=3)


@pytest.mark.parametrize("how", ["dead", "cancel", "fail"])
def test_an_end_that_a_worker_sees_is_told_at_once(disque_sim: Sim, how: str) -> None:
    async def story(cluster: Cluster) -> None:
        assert isinstance(await told(cluster, await work.enqueue(how), 0), JobFailedError)

    disque_sim.run(story, app, seeds=2)


def test_a_run_that_is_too_long_is_told(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        error = await told(cluster, await slow.enqueue(), 2.0)
        assert (type(error), error.kind) == (JobFailedError, "JobTimeoutError")

    disque_sim.run(story, app, seeds=2)


def test_a_result_of_another_type_than_declared_is_a_failure(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        error = await told(cluster, await wrong.enqueue(), 0)
        assert isinstance(error, JobFailedError)
        assert "has another type" in error.text

    disque_sim.run(story, app, seeds=1)


@pytest.mark.parametrize("at", [1.0, 6.0])
def test_whoever_waits_for_a_chain_is_told_when_any_step_is_cancelled(
    disque_sim: Sim, at: float
) -> None:
    async def story(cluster: Cluster) -> None:
        job = await (work.call() | later.partial() | later.partial()).enqueue()
        times: list[float] = []

        async def cancel() -> None:
            await trio.sleep(at)
            [running] = cluster.jobs()
            assert await app.admin.jobs.cancel(running)
            times.append(cluster.time)

        async with trio.open_nursery() as tasks:
            tasks.start_soon(cancel)
            error = await told(cluster, job, at)
        assert isinstance(error, NoResultError)

    disque_sim.run(story, app, seeds=4)


def test_steps_that_follow_and_snoozes_are_no_ends(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        job = await (work.call() | later.partial() | later.partial()).enqueue()
        snoozes = await again.enqueue()
        assert isinstance(await told(cluster, snoozes, 6.0), JobFailedError)
        assert await job.result(100) == "worked later later"

    disque_sim.run(story, app, seeds=4)


def test_a_merged_job_has_the_result_of_the_other_one(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        one = await work.using(unique="k").enqueue()
        other = await work.using(unique="k").enqueue()
        assert one.id == other.id
        assert await other.result(10) == "worked"
        assert await one.result(10) == "worked"

    disque_sim.run(story, app, seeds=2)


def test_a_job_merged_with_one_that_is_over_has_its_result_though_a_node_has_started_anew(
    disque_sim: Sim,
) -> None:
    async def story(cluster: Cluster) -> None:
        one = await work.using(unique="k", unique_for=500).enqueue()
        assert await one.result(10) == "worked"
        with cluster.crash("n2"):
            await trio.sleep(5)
        await trio.sleep(5)
        other = await work.using(unique="k", unique_for=500).enqueue()
        assert one.id == other.id
        since = cluster.time
        assert await other.result(10) == "worked"
        assert cluster.time - since < 1.0

    disque_sim.run(story, app, seeds=4)


def test_jobs_with_the_same_key_have_results_of_their_own(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        bad = await work.using(key="order-1").enqueue("fail")
        good = await work.using(key="order-1").enqueue()
        chains = [
            await (work.call() | later.using(key="order-1").partial()).enqueue() for _ in range(2)
        ]
        await told(cluster, bad, 0)
        assert await good.result(100) == "worked"
        assert [await job.result(100) for job in chains] == ["worked later"] * 2

    disque_sim.run(story, app, seeds=2)


@pytest.mark.slow
def test_through_faults_whoever_waits_is_told_what_has_become_of_the_job(disque_sim: Sim) -> None:
    calls = [
        (work.call(), "worked"),
        (work.using(delay=15).call(), "worked"),
        (work.call() | later.partial() | later.partial(), "worked later later"),
        (work.call("cancel"), "Cancel"),
        (work.call("fail"), "ValueError"),
    ]

    async def story(cluster: Cluster) -> None:
        async def wait(call: Call[str], expected: str) -> None:
            job = await call.enqueue()
            try:
                found = await job.result(600)
            except JobFailedError as error:
                found = error.kind
            except NoResultError as error:  # no node took the failure in time
                found = expected if error.end == "dead" else "nothing"
            assert found == expected

        async with trio.open_nursery() as tasks:
            for call, expected in calls:
                tasks.start_soon(wait, call, expected)
            await trio.sleep(0.1)
            await chaos(cluster, 40)

    disque_sim.run(story, app, seeds=12)


def test_in_a_partition_nobody_is_told_that_a_job_has_ended_which_has_not(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        jobs = [await work.using(delay=3).enqueue() for _ in range(5)]
        results: list[str] = []

        async def wait(job: Enqueued[str]) -> None:
            results.append(await job.result(300))

        async with trio.open_nursery() as tasks:
            for job in jobs:
                tasks.start_soon(wait, job)
            with cluster.partition(["n1", "story"], ["n2", "n3", "w1", "w2"]):
                await cluster.sleep(20)
        assert results == ["worked"] * 5

    disque_sim.run(story, app, seeds=5)
