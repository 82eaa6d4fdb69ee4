"""Runs of a job alone, in simulated clusters: which of them are said to have killed the worker."""

from typing import Any

import anyio
import pytest

from disque_trio.statemachine.base import ACKED, QUEUED
from disque_trio.testing.simulated.cluster import Cluster
from disque_trio.testing.simulated.kit import Sim
from disque_trio.worker import App, Snooze, codec, current_job
from disque_trio.worker.engine.records import Start
from disque_trio.worker.options import NOTES
from disque_trio.worker.trials import Trial, trial_of

app = App("disque://127.0.0.1:1")
RUNS: list[int] = []
"""Of each run, how many deliveries before it brought no answer."""
SNOOZES: list[int] = []
"""Runs that snooze, by their number."""
LEASE = 5


@pytest.fixture(autouse=True)
def _anew() -> None:
    RUNS.clear()
    SNOOZES.clear()


@app.task(name="quick", lease=LEASE)
async def quick() -> None:
    RUNS.append(current_job().interrupted)


@app.task(name="long", lease=LEASE)
async def long() -> None:
    RUNS.append(current_job().interrupted)
    if len(RUNS) in SNOOZES:
        raise Snooze(1)
    await anyio.sleep(60)


def having_it_queued(cluster: Cluster) -> str | None:
    """A node that has a job queued."""
    for host in cluster.world.hosts.values():
        jobs: Any = host.machine.state.jobs.values() if host.machine else ()
        if any(job.state == QUEUED for job in jobs):
            return host.name
    return None


async def hang(cluster: Cluster) -> None:
    """The node that has the job queued stands still until another one has queued it as well."""
    await cluster.until(lambda: having_it_queued(cluster))
    node = having_it_queued(cluster)
    assert node is not None
    with cluster.pause(node):
        await cluster.sleep(3 * LEASE)
    await cluster.sleep(2)


def notes(cluster: Cluster) -> list[bytes]:
    """What nodes still keep of trials."""
    return [
        job.id
        for host in cluster.world.hosts.values()
        for job in (host.machine.state.jobs.values() if host.machine else ())
        if job.queue == NOTES.encode() and job.state != ACKED
    ]


async def kill(cluster: Cluster) -> None:
    """The worker dies once it runs the job."""
    before = len(RUNS)
    await cluster.until(lambda: len(RUNS) > before and cluster.running())
    [name] = cluster.running()
    with cluster.crash(name):
        await cluster.sleep(1)


def test_a_job_that_no_worker_has_had_is_run_however_often_nodes_have_queued_it_again(
    disque_sim: Sim,
) -> None:
    async def story(cluster: Cluster) -> None:
        RUNS.clear()
        cluster.stop("w1")
        await cluster.sleep(1)
        await quick.enqueue()
        for _ in range(6):
            await hang(cluster)
        await cluster.start_worker("w2")
        await cluster.drained()

        assert (cluster.dead(), notes(cluster)) == ([], [])
        [deliveries] = RUNS
        assert deliveries >= 5, "nodes have counted deliveries that were none"

    disque_sim.run(story, app, workers=1, seeds=2)


def test_a_job_that_kills_its_worker_in_each_trial_is_dead_after_three(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        RUNS.clear()
        await long.enqueue()
        for _ in range(5):
            await kill(cluster)
        await cluster.drained()

        assert (len(cluster.dead()), notes(cluster)) == (1, [])
        assert RUNS == [0, 1, 2, 3, 4]

    disque_sim.run(story, app, workers=1, seeds=2)


def test_a_trial_that_was_answered_is_none_that_killed_the_worker(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        RUNS.clear()
        SNOOZES.append(3)
        await long.enqueue()
        for _ in range(2):
            await kill(cluster)
        await cluster.until(lambda: len(RUNS) == 3)
        for _ in range(3):
            await kill(cluster)
        await cluster.drained()

        assert (len(cluster.dead()), notes(cluster)) == (1, [])
        assert RUNS == [0, 1, 2, 2, 3, 4]

    disque_sim.run(story, app, workers=1, seeds=1)


def start(deliveries: int, nacks: int = 0, snoozes: int = 0) -> Start:
    return Start(b"D-id", b"q", b"", nacks, deliveries, snoozes=snoozes)


@pytest.mark.parametrize(
    ("again", "crashes"),
    [
        (start(3), 2),
        (start(4), 2),
        (start(2), 1),
        (start(3, nacks=1), 1),
        (start(3, snoozes=1), 1),
        (start(1), 1),
    ],
)
def test_a_trial_brought_no_answer_if_the_job_comes_again_with_one_more_delivery_alone(
    again: Start, crashes: int
) -> None:
    noted = codec.write(Trial(1, 2, 0), "json")

    assert trial_of(noted, again).crashes == crashes


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"crashes": "1"}', b"\xff", b"null"])
def test_after_a_note_of_something_else_the_count_begins_anew(note: bytes) -> None:
    assert trial_of(note, start(4)) == trial_of(None, start(4)) == Trial(0, 4, 0)
