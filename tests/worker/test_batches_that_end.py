"""What follows a batch runs once, after all members have ended, however they do, and nothing of the
batch is left (docs/worker-results.md, "Batches")."""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
import trio

from disque_trio.statemachine.base import ACKED
from disque_trio.testing.simulated.chaos import chaos
from disque_trio.testing.simulated.cluster import Cluster
from disque_trio.testing.simulated.kit import Sim
from disque_trio.worker import App, Backoff, Batch, BatchEnds, Cancel, Dead, Snooze, current_job
from disque_trio.worker.enqueue import Call
from disque_trio.worker.exceptions import JobFailedError

app = App[None]()
TWICE = Backoff(attempts=2, base=1)


@attrs.define(slots=False)
class Seen:
    """What has run, and how batches ended."""

    ran: list[str] = attrs.Factory(list)
    ends: list[BatchEnds] = attrs.Factory(list)
    albums: list[str] = attrs.Factory(list)
    running: int = 0
    is_early: bool = False
    """Has what follows run while a member did?"""


seen = Seen()


@app.task(name="member", queue="m", lease=30, retry=TWICE)
async def member(name: str, how: str = "") -> str:
    seen.running += 1
    try:
        await trio.sleep(2)
    finally:
        seen.running -= 1
    match how:
        case "dead":
            raise Dead("no such page")
        case "cancel":
            raise Cancel("not needed")
        case "fail":
            raise ValueError(name)
        case "again" if current_job().attempt == 1:
            raise ValueError(name)
        case "snooze" if current_job().snoozes < 2:
            raise Snooze(3)
    seen.ran.append(name)
    return name


@app.task(name="step", queue="m", lease=30, retry=TWICE)
async def step(given: str, how: str = "") -> str:
    return await member(f"{given}+", how)


@app.task(name="publish", queue="p", lease=30, result_ttl=600, retry=TWICE)
async def publish(ends: BatchEnds, album: str) -> str:
    seen.ends.append(ends)
    seen.albums.append(album)
    seen.is_early = seen.is_early or seen.running > 0
    return album


@app.task(name="close", queue="p", lease=30, retry=TWICE)
async def close(album: str) -> None:
    seen.ran.append(album)


def left(cluster: Cluster) -> list[str]:
    """Jobs that live in queues of batches, at any node."""
    return [
        f"{host.name} {job.id.decode()} {job.body!r}"
        for host in cluster.world.hosts.values()
        for job in (host.machine.state.jobs.values() if host.machine else ())
        if job.queue and job.queue.startswith(b"disque-trio.batch.") and job.state != ACKED
    ]


async def ended(cluster: Cluster, batch: Batch[Any], limit: float = 60) -> BatchEnds:
    """How the batch has ended, once, without anything left behind."""
    assert batch.then is not None
    assert await batch.then.result(limit) == "album"
    await cluster.drained()
    [ends] = seen.ends
    assert (left(cluster), seen.is_early) == ([], False)
    return ends


def states(ends: BatchEnds) -> dict[int, str]:
    """Of the members that are not done."""
    return {each.place: each.state for each in ends.others}


Calls = Callable[[], list[Call[Any]]]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (list, {}),
        (lambda: [member.call("a")], {}),
        (lambda: [member.call("a", "again"), member.call("b")], {}),
        (lambda: [member.call("a", "snooze"), member.call("b")], {}),
        (lambda: [member.call("a") | step.partial(), member.call("b")], {}),
        (lambda: [member.call("a", "cancel"), member.call("b")], {0: "cancelled"}),
        (lambda: [member.call("a", "dead"), member.call("b")], {0: "dead"}),
        (lambda: [member.call("a"), member.call("b", "fail")], {1: "dead"}),
        (lambda: [member.call("a", "dead") | step.partial()], {0: "dead"}),
        (lambda: [member.call("a") | step.partial("cancel")], {0: "cancelled"}),
        (lambda: [member.using(unique="k").call("a")] * 2, {}),
        (lambda: [member.call("a")] * 3, {}),
        (lambda: [member.using(key="one").call("a"), member.using(key="one").call("b")], {}),
        (lambda: [member.call("a"), member.using(maxlen=0).call("b")], {1: "refused"}),
        (lambda: [member.using(queue="nobody", lease=3, ttl=6).call("a")], {0: "expired"}),
    ],
)
def test_a_batch_ends_when_all_members_have(
    disque_sim: Sim, calls: Calls, expected: dict[int, str]
) -> None:
    async def story(cluster: Cluster) -> None:
        made = calls()
        batch = await app.batch(made, publish.partial("album"), deadline=300)
        ends = await ended(cluster, batch)
        assert (ends.size, states(ends)) == (len(made), expected)
        assert sum(ends.counts.values()) == len(made)

    disque_sim.run(story, app, state=seen, seeds=2)


def test_a_member_of_two_batches_by_its_key_counts_in_both(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        def shared() -> Call[str]:
            return member.using(unique="k").call("a")

        one = await app.batch([shared(), member.call("b")], publish.partial("album"))
        other = await app.batch([shared(), member.call("c")], publish.partial("album"))
        assert one.then is not None
        assert other.then is not None
        await one.then.result(60)
        await other.then.result(60)
        await cluster.drained()
        assert sorted(seen.ran) == ["a", "b", "c"]
        assert sorted(str(states(ends)) for ends in seen.ends) == ["{0: 'merged'}", "{}"]
        assert left(cluster) == []

    disque_sim.run(story, app, state=seen, seeds=2)


Act = Callable[[Cluster, str], Awaitable[object]]


async def cancel(cluster: Cluster, job: str) -> None:
    assert await app.admin.jobs.cancel(job)


async def bury(cluster: Cluster, job: str) -> None:
    cluster.command("n1", "NACK", job, "DEAD", "x")


@pytest.mark.parametrize(("act", "state"), [(cancel, "cancelled"), (bury, "dead")])
def test_members_whose_end_no_worker_sees_are_found(disque_sim: Sim, act: Act, state: str) -> None:
    async def story(cluster: Cluster) -> None:
        calls = [member.using(delay=20).call("a"), member.call("b")]
        batch = await app.batch(calls, publish.partial("album"), deadline=300)
        await trio.sleep(1)
        [waits, _] = batch.jobs
        assert not isinstance(waits, Exception)
        await act(cluster, waits.id)
        assert states(await ended(cluster, batch)) == {0: state}
        assert cluster.time < 60

    disque_sim.run(story, app, state=seen, seeds=2)


def test_without_partial_what_follows_runs_all_the_same(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        await app.batch([member.call("a", "dead")], close.call("album"))
        await cluster.drained()
        assert (seen.ran, left(cluster)) == (["album"], [])

    disque_sim.run(story, app, state=seen, seeds=2)


@pytest.mark.parametrize(("how", "runs"), [("", 1), ("cancel", 1), ("dead", 0)])
def test_what_follows_may_be_skipped_if_members_have_failed(
    disque_sim: Sim, how: str, runs: int
) -> None:
    async def story(cluster: Cluster) -> None:
        calls = [member.call("a", how), member.call("b")]
        batch = await app.batch(calls, publish.partial("album"), if_failed="skip")
        assert batch.then is not None
        if runs:
            await batch.then.result(60)
        else:
            with pytest.raises(JobFailedError, match=r"1 of 2 members failed: 0 \(dead: no s"):
                await batch.then.result(60)
        await cluster.drained()
        assert (len(seen.ends), left(cluster)) == (runs, [])

    disque_sim.run(story, app, state=seen, seeds=2)


def test_what_has_not_ended_at_the_deadline_is_late_and_leaves_nothing_later(
    disque_sim: Sim,
) -> None:
    async def story(cluster: Cluster) -> None:
        calls = [member.using(delay=90).call("a"), member.call("b")]
        batch = await app.batch(calls, publish.partial("album"), deadline=30)
        assert batch.then is not None
        await batch.then.result(60)
        assert states(seen.ends[0]) == {0: "late"}
        await cluster.drained()
        assert sorted(seen.ran) == ["a", "b"]
        assert left(cluster) == []

    disque_sim.run(story, app, state=seen, seeds=2)


def test_a_dead_member_that_is_redriven_counts_as_it_ends_then(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        calls = [member.call("a", "dead"), member.using(delay=20).call("b")]
        batch = await app.batch(calls, publish.partial("album"), deadline=300)
        for _ in range(2):
            await cluster.until(cluster.dead)
            cluster.command("n1", "REDRIVE", "m")
            await cluster.until(cluster.dead)
            await ended(cluster, batch)
        await cluster.sleep(5)
        assert (states(seen.ends[0]), left(cluster)) == ({0: "dead"}, [])

    disque_sim.run(story, app, state=seen, seeds=2)


# Crashes and cuts.


@pytest.mark.slow
def test_through_faults_every_member_is_told_as_it_ended_and_nothing_is_left(
    disque_sim: Sim,
) -> None:
    calls = [
        member.call("a"),
        member.call("b", "cancel"),
        member.call("c", "dead"),
        member.call("d", "snooze") | step.partial(),
        member.call("e", "again") | step.partial("cancel"),
        *[member.using(unique="k").call("f")] * 2,
    ]

    async def story(cluster: Cluster) -> None:
        batch = await app.batch(calls, publish.partial("album"), deadline=3000)
        await chaos(cluster, 40)
        assert batch.then is not None
        await batch.then.result(2000)
        await cluster.drained()
        expected = {1: "cancelled", 2: "dead", 4: "cancelled"}
        assert [states(each) for each in seen.ends] == [expected] * len(seen.ends)
        assert left(cluster) == []

    disque_sim.run(story, app, state=seen, seeds=12)


@pytest.mark.sample(7)
@pytest.mark.parametrize("at", [0.001, 0.004, 0.008, 0.02, 0.5, 2.01, 2.02, 2.05, 3.03, 4.5])
@pytest.mark.parametrize("victim", ["w1", "n1", "n2"])
def test_a_crash_at_any_moment_doubles_and_loses_nothing_that_follows(
    disque_sim: Sim, at: float, victim: str
) -> None:
    async def story(cluster: Cluster) -> None:
        calls = [member.call("a"), member.call("b", "cancel"), member.call("c") | step.partial()]
        cluster.later(at, lambda: cluster.restart(victim))
        batch = await app.batch(calls, publish.partial("album"), deadline=3000)
        assert batch.then is not None
        assert await batch.then.result(2000) == "album"
        await cluster.drained()
        assert len({str(states(ends)) for ends in seen.ends}) == 1
        assert left(cluster) == []

    disque_sim.run(story, app, state=seen, seeds=1)


def test_tokens_of_a_collector_whose_worker_dies_come_again_within_seconds(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        calls = [member.call("a"), member.using(delay=5).call("b")]
        batch = await app.batch(calls, publish.partial("album"), deadline=3000)
        await cluster.until(lambda: seen.ran)
        await cluster.sleep(1)  # the collector has the token of "a"
        cluster.restart("w1")
        assert batch.then is not None
        assert await batch.then.result(30) == "album"

    disque_sim.run(story, app, state=seen, seeds=2, workers=1)


@pytest.mark.sample(4)
@pytest.mark.parametrize("dies_at", [0.003, 0.006, 0.009, 0.1])
def test_a_producer_that_dies_leaves_a_whole_batch_or_none(disque_sim: Sim, dies_at: float) -> None:
    async def story(cluster: Cluster) -> None:
        calls = [member.call(str(n)) for n in range(140)]
        with trio.move_on_after(dies_at):
            await app.batch(calls, publish.partial("album"), deadline=60)
        await cluster.drained()
        assert [each.counts for each in seen.ends] in ([], [{"done": 140}])
        assert left(cluster) == []

    disque_sim.run(story, app, state=seen, seeds=1, concurrency=200)


def test_many_members_that_nobody_reports_are_found(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        calls = [member.using(queue="nobody", delay=900).call(str(n)) for n in range(300)]
        batch = await app.batch(calls, publish.partial("album"), deadline=3000)
        for job in batch.jobs:
            assert not isinstance(job, Exception)
            cluster.command("n1", "ACKJOB", job.id)
        assert (await ended(cluster, batch, 600)).counts == {"cancelled": 300}

    disque_sim.run(story, app, state=seen, seeds=1)
