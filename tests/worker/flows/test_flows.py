"""Members of a flow run when those before them are done, and nothing of it is left
(docs/worker-flows.md)."""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest
import trio

from disque_trio.statemachine.base import ACKED
from disque_trio.testing.simulated.chaos import chaos
from disque_trio.testing.simulated.cluster import Cluster
from disque_trio.testing.simulated.kit import Sim
from disque_trio.worker import (
    App,
    Backoff,
    Cancel,
    Dead,
    EnqueuedFlow,
    FlowFailedError,
    FlowStatus,
    Snooze,
    current_job,
)

app = App[None]()
TWICE = Backoff(attempts=2, base=1)


@attrs.define(slots=False)
class Seen:
    """Which members have run, and which of them too early."""

    ran: list[str] = attrs.Factory(list)
    began: list[str] = attrs.Factory(list)
    early: list[str] = attrs.Factory(list)
    parents: dict[str, int] = attrs.Factory(dict)
    is_mended: bool = False


seen = Seen()


@app.task(name="work", queue="m", lease=30, retry=TWICE)
async def work(name: str, after: Sequence[str] = (), how: str = "", seconds: float = 1) -> str:
    seen.began.append(name)
    if not set(after) <= set(seen.ran):
        seen.early.append(name)
    seen.parents[name] = len(current_job().parents)
    await trio.sleep(seconds)
    match how:
        case "dead" if not seen.is_mended:
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
async def step(given: str, name: str) -> str:
    return await work(name, [given])


Graph = dict[str, tuple[Sequence[str], str]]
"""By name: the names of those before it, and how it behaves."""
DIAMOND: Graph = {"a": ("", ""), "b": ("a", ""), "c": ("a", ""), "d": ("bc", "")}
FAN: Graph = {
    "root": ((), ""),
    **{f"{n}": (("root",), "") for n in range(40)},
    "last": ([f"{n}" for n in range(40)], ""),
}


def with_(graph: Graph, **hows: str) -> Graph:
    """The same with other behaviour."""
    return graph | {name: (graph[name][0], how) for name, how in hows.items()}


async def enqueued(graph: Graph, seconds: float = 1, deadline: int = 3000) -> EnqueuedFlow:
    flow = app.flow(deadline=deadline)
    members: dict[str, Any] = {}
    for name, (after, how) in graph.items():
        call = work.call(name, list(after), how, seconds)
        members[name] = flow.add(call, after=[members[each] for each in after])
    return await flow.enqueue()


def left(cluster: Cluster) -> list[str]:
    """Jobs that live in queues of flows, at any node."""
    return [
        f"{host.name} {job.id.decode()} {job.body!r}"
        for host in cluster.world.hosts.values()
        for job in (host.machine.state.jobs.values() if host.machine else ())
        if job.queue and job.queue.startswith(b"disque-trio.batch.") and job.state != ACKED
    ]


def states(status: FlowStatus) -> dict[int, str]:
    """Of the members that are not done."""
    return {each.place: each.state for each in status.members if each.state != "done"}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("graph", "limit"),
    [
        ({"a": ("", "")}, 4),
        ({"a": ("", ""), "b": ("", "")}, 4),
        (DIAMOND, 8),
        (with_(DIAMOND, b="again"), 14),
        (with_(DIAMOND, a="snooze"), 30),
        ({name: ("" if name == "a" else chr(ord(name) - 1), "") for name in "abcdefghij"}, 20),
        (FAN, 15),
    ],
)
def test_each_member_runs_after_all_that_are_before_it(
    disque_sim: Sim, graph: Graph, limit: float
) -> None:
    async def story(cluster: Cluster) -> None:
        flow = await enqueued(graph)
        found = await flow.wait(200)
        assert cluster.time < limit
        assert (found.state, states(found)) == ("done", {})
        assert sorted(seen.ran) == sorted(graph)
        assert seen.early == []
        await cluster.drained()
        assert left(cluster) == []
        assert await flow.status() == found

    disque_sim.run(story, app, state=seen, seeds=2)


def test_a_member_may_be_a_chain(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        flow = app.flow()
        first = flow.add(work.call("a") | step.partial("b"))
        flow.add(work.call("c", ["a", "b"]), after=[first])
        assert (await (await flow.enqueue()).wait(60)).counts == {"done": 2}
        assert (seen.ran, seen.early) == (["a", "b", "c"], [])
        await cluster.drained()
        assert left(cluster) == []

    disque_sim.run(story, app, state=seen, seeds=2)


def test_a_member_finds_the_jobs_before_it_if_it_asks_for_them(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        flow = app.flow()
        first = [flow.add(work.call(name)) for name in "ab"]
        flow.add(work.call("c"), after=first, parents=True)
        flow.add(work.call("d"), after=first)
        await (await flow.enqueue()).wait(60)
        assert seen.parents == {"a": 0, "b": 0, "c": 2, "d": 0}

    disque_sim.run(story, app, state=seen, seeds=1)


# Failures.


@pytest.mark.parametrize("how", ["dead", "fail"])
def test_a_dead_member_stops_what_follows_it_and_nothing_else(disque_sim: Sim, how: str) -> None:
    async def story(cluster: Cluster) -> None:
        flow = await enqueued(with_(DIAMOND, b=how) | {"e": ("c", "")})
        with pytest.raises(FlowFailedError, match="is failed: 3 done, 1 dead, 1 pending") as failed:
            await flow.wait(100)
        assert states(failed.value.status) == {1: "dead", 3: "pending"}
        assert sorted(seen.ran) == ["a", "c", "e"]
        assert (await flow.status()).state == "failed"

    disque_sim.run(story, app, state=seen, seeds=2)


@pytest.mark.slow
def test_a_flow_goes_on_where_it_failed(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        flow = await enqueued(with_(DIAMOND, b="dead", c="dead"))
        for is_mended in (False, True):
            with pytest.raises(FlowFailedError):
                await flow.wait(100)
            await trio.sleep(100)
            seen.is_mended = is_mended
            assert await flow.retry() == 2
        assert states(await flow.wait(60)) == {}
        assert sorted(seen.ran) == list("abcd")
        assert seen.began.count("a") == seen.began.count("d") == 1
        assert await flow.retry() == 0
        await cluster.drained()
        assert left(cluster) == []

    disque_sim.run(story, app, state=seen, seeds=2)


Act = Callable[[Cluster, str], Any]


async def cancel_it(cluster: Cluster, job: str) -> None:
    assert await app.admin.jobs.cancel(job)


@pytest.mark.parametrize("how", ["cancel", "dead"])
def test_what_follows_a_cancelled_member_is_skipped(disque_sim: Sim, how: str) -> None:
    async def story(cluster: Cluster) -> None:
        flow = await enqueued(with_(DIAMOND, b=how) | {"e": ("d", "")})
        if how == "dead":  # an operator takes it away
            await cluster.until(cluster.dead)
            [dead] = (await flow.status()).dead
            await cancel_it(cluster, dead.id)
        with pytest.raises(FlowFailedError) as failed:
            await flow.wait(100)
        ends = {1: "cancelled", 3: "skipped", 4: "skipped"}
        assert states(failed.value.status) == ends
        await cluster.drained()
        assert left(cluster) == []
        status = await flow.status()
        assert (status.state, states(status)) == ("failed", ends)

    disque_sim.run(story, app, state=seen, seeds=2)


def test_a_member_waits_while_its_queue_takes_no_jobs(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        for node in cluster.world.hosts.values():
            cluster.command(node.name, "PAUSE", "later", "in")
        flow = app.flow()
        first = flow.add(work.call("a"))
        flow.add(work.using(queue="later").call("b", ["a"]), after=[first])
        found = await flow.enqueue()
        await trio.sleep(60)
        assert (await found.status()).counts == {"done": 1, "pending": 1}
        for node in cluster.world.hosts.values():
            cluster.command(node.name, "PAUSE", "later", "none")
        await trio.sleep(5)
        assert (await found.status()).counts == {"done": 1, "waiting": 1}

    disque_sim.run(story, app, state=seen, seeds=1)


def test_after_the_deadline_no_member_is_added(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        flow = await enqueued(with_(DIAMOND, b="dead"), deadline=30)
        await cluster.until(cluster.dead)
        await trio.sleep(60)
        seen.is_mended = True
        await flow.retry()
        await cluster.drained()
        assert sorted(seen.ran) == ["a", "b", "c"]
        assert left(cluster) == []
        assert (await flow.status()).state == "failed"

    disque_sim.run(story, app, state=seen, seeds=2)


# Cancelling.


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("at", "seconds"), [(0.0, 8), (0.5, 8), (1.5, 8), (5.0, 8), (12.0, 8), (0.5, 1), (1.5, 1)]
)
def test_members_of_a_cancelled_flow_are_not_added(
    disque_sim: Sim, at: float, seconds: float
) -> None:
    async def story(cluster: Cluster) -> None:
        flow = await enqueued(DIAMOND, seconds=seconds)
        await trio.sleep(at)
        assert await flow.cancel()
        assert (await flow.status()).state == "cancelled"
        await trio.sleep(15)
        began = list(seen.began)
        await cluster.drained()
        assert (seen.began, "d" in began) == (began, False)
        assert left(cluster) == []
        assert not await flow.cancel()
        with pytest.raises(FlowFailedError, match="is cancelled"):
            await flow.wait(10)

    disque_sim.run(story, app, state=seen, seeds=2)


def test_members_that_wait_or_run_are_cancelled_with_their_flow(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        flow = app.flow()
        flow.add(work.using(delay=300).call("a"))
        flow.add(work.call("b", seconds=300))
        flow.add(work.call("c", seconds=300) | step.partial("d"))
        found = await flow.enqueue()
        await trio.sleep(5)
        await found.cancel()
        await cluster.drained(60)
        assert seen.ran == []
        assert left(cluster) == []
        assert (await found.status()).counts == {"cancelled": 3}

    disque_sim.run(story, app, state=seen, seeds=2)


# Other processes.


def test_a_flow_is_found_by_its_id(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        flow = await enqueued(with_(DIAMOND, b="dead"))
        await cluster.until(cluster.dead)
        await trio.sleep(5)
        found = await app.find_flow(flow.id)
        assert found is not None
        assert await found.status() == await flow.status()
        seen.is_mended = True
        assert await found.retry() == 1
        assert (await found.wait(60)).state == "done"
        await cluster.drained()
        assert await app.find_flow(flow.id) is None

    disque_sim.run(story, app, state=seen, seeds=1)


def test_another_job_is_no_flow(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        job = await work.enqueue("a")
        assert await app.find_flow(job.id) is None

    disque_sim.run(story, app, state=seen, seeds=1)


def test_a_body_of_another_program_is_no_flow(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        id = await app.client.addjob("raw", b"\xff of another program")
        assert await app.find_flow(id) is None

    disque_sim.run(story, app, state=seen, seeds=1)


# Crashes and cuts.


def test_waiting_goes_on_while_no_node_answers(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        flow = await enqueued(DIAMOND)
        trouble = cluster.isolate("story")
        cluster.later(20, trouble.undo)
        assert (await flow.wait(60)).state == "done"

    disque_sim.run(story, app, state=seen, seeds=1)


@pytest.mark.slow
def test_through_faults_each_member_runs_after_all_that_are_before_it(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        flows = [await enqueued(graph) for graph in (with_(DIAMOND, b="again", c="snooze"), FAN)]
        await chaos(cluster, 40)
        for flow in flows:
            await flow.wait(2000)
        await cluster.drained()
        assert set(seen.ran) == {*DIAMOND, *FAN}
        assert seen.early == []
        assert left(cluster) == []

    disque_sim.run(story, app, state=seen, seeds=12)


@pytest.mark.sample(8)
@pytest.mark.parametrize("at", [0.001, 0.004, 0.008, 0.02, 0.5, 1.01, 1.02, 1.05, 2.03, 2.1, 3.1])
@pytest.mark.parametrize("victim", ["w1", "n1", "n2"])
def test_a_crash_at_any_moment_loses_nothing(disque_sim: Sim, at: float, victim: str) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.later(at, lambda: cluster.restart(victim))
        flow = await enqueued(DIAMOND)
        await flow.wait(2000)
        await cluster.drained()
        assert set(seen.ran) == set("abcd")
        assert seen.early == []
        assert left(cluster) == []

    disque_sim.run(story, app, state=seen, seeds=1)
