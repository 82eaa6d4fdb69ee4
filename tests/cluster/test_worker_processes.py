"""Real workers on a real cluster: killed, stopped, told to end, and without a node."""

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_trio.worker.statuses import CLEAN, INTERRUPTED
from disque_trio.worker.stopping import SAME_S
from tests.cluster.processes import SOON_S, Cluster, Fleet, eventually
from tests.cluster.workers.crew import Crew, stands

SLACK_S = 15.0
"""On a machine that is busy with other tests."""


@pytest.fixture(scope="module")
def cluster(shared_fleet: Fleet) -> Cluster:
    """Three nodes."""
    return shared_fleet.cluster(3)


@pytest.fixture
def crew(cluster: Cluster, tmp_path: Path) -> Iterator[Crew]:
    """Workers of a test, with a queue of their own."""
    with Crew(tmp_path, tmp_path.name, cluster.servers) as crew:
        yield crew


def add(crew: Crew, body: str, retry: int = 60) -> str:
    """Add a job, at whichever node does it; its id."""

    def added() -> bytes:
        server = next(each for each in crew.servers if each.is_running())
        return server.client.add(crew.queue, body, "REPLICATE", 2, "RETRY", retry, timeout=2000)

    return eventually(added, SOON_S, f"{body!r} is added").decode()


@pytest.mark.parametrize("loop", ["trio", "asyncio"])
def test_a_job_whose_worker_is_killed_runs_again_within_its_lease(
    cluster: Cluster, crew: Crew, loop: str
) -> None:
    victim = crew.start("one", loop)
    add(crew, "sleep 600 x", retry=3)
    crew.has_said("one begin sleep 600 x")
    crew.start("other", loop)
    add(crew, "sleep 0 ready")
    crew.has_said("other end sleep 0 ready")

    victim.kill()
    killed = time.monotonic()
    crew.has_said("other begin sleep 600 x")

    assert time.monotonic() - killed < 3 + 1 + SLACK_S


@pytest.mark.slow
def test_a_worker_goes_on_at_once_when_its_only_node_has_been_killed_and_is_back(
    fleet: Fleet, tmp_path: Path
) -> None:
    """Its jobs have a RETRY of ten minutes."""
    server = fleet.server("--appendonly", "yes")
    with Crew(tmp_path, tmp_path.name, [server]) as crew:
        crew.start("one")
        bodies = [f"sleep 0.1 {each}" for each in range(60)]
        for body in bodies:
            server.client.add(crew.queue, body, "RETRY", 600)
        crew.has_said(f"one end {bodies[4]}")

        server.kill()
        server.start().wait()

        eventually(lambda: crew.done() == set(bodies), SOON_S, "all jobs are done")


def test_what_a_worker_says_after_its_lease_is_not_said(cluster: Cluster, crew: Crew) -> None:
    late = crew.start("late")
    add(crew, "late 1 x", retry=2)
    crew.has_said("late begin late 1 x")
    stands(late)
    crew.start("other")
    crew.has_said("other begin late 1 x")

    late.send_signal(signal.SIGCONT)
    crew.has_said("late fail late 1 x")

    assert crew.stop(late) == CLEAN
    assert crew.runs("late 1 x") == {"late": 1, "other": 1}


@pytest.mark.sample(2)
@pytest.mark.parametrize("body", ["sleep 1.5 x", "block 1.5 x"])
def test_a_worker_that_is_told_to_end_lets_its_jobs_end(
    cluster: Cluster, crew: Crew, body: str
) -> None:
    worker = crew.start("one")
    add(crew, body)
    crew.has_said(f"one begin {body}")

    assert crew.stop(worker) == CLEAN
    assert crew.lines() == [f"one begin {body}", f"one end {body}"]


@pytest.mark.slow
def test_the_second_order_interrupts_jobs_and_another_worker_gets_them(
    cluster: Cluster, crew: Crew
) -> None:
    worker = crew.start("one")
    add(crew, "sleep 5 x", retry=600)
    crew.has_said("one begin sleep 5 x")
    worker.send_signal(signal.SIGINT)
    eventually(lambda: "no more jobs" in crew.output(), SOON_S, "it drains")
    time.sleep(SAME_S)  # until then a second signal is the same order

    assert crew.stop(worker) == INTERRUPTED
    crew.start("other")
    crew.has_said("other end sleep 5 x")


@pytest.mark.slow
def test_a_thread_that_does_not_end_keeps_no_worker_from_ending(
    cluster: Cluster, crew: Crew
) -> None:
    worker = crew.start("one")
    add(crew, "block 600 x")
    crew.has_said("one begin block 600 x")
    worker.send_signal(signal.SIGTERM)
    eventually(lambda: "no more jobs" in crew.output(), SOON_S, "it drains")

    assert crew.stop(worker) == INTERRUPTED


def test_no_job_is_lost_when_a_node_is_killed_and_started_again(
    cluster: Cluster, crew: Crew
) -> None:
    crew.start("trio")
    crew.start("asyncio", "asyncio")
    bodies = [f"sleep 0.01 {number}" for number in range(240)]
    for body in bodies[:80]:
        add(crew, body, retry=3)
    eventually(lambda: len(crew.done()) > 20, SOON_S, "some are done")

    cluster[0].kill()
    for body in bodies[80:160]:
        add(crew, body, retry=3)
    cluster[0].start().wait()
    for body in bodies[160:]:
        add(crew, body, retry=3)

    eventually(lambda: not set(bodies) - crew.done(), SOON_S, "all are done")
    cluster.wait()


@pytest.fixture
def durable_crew(fleet: Fleet, tmp_path: Path) -> Iterator[Crew]:
    """Workers on nodes that keep their jobs when they are killed."""
    cluster = fleet.cluster(3, "--appendonly", "yes")
    with Crew(tmp_path, "soak", cluster.servers) as crew:
        yield crew


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_rounds_of_everything_at_once(durable_crew: Crew) -> None:
    crew = durable_crew
    rng = random.Random(20)
    bodies = [f"{rng.choice(['sleep', 'block'])} 0.02 {number}" for number in range(20 * 60)]
    for number in range(3):
        crew.start(f"w{number}", rng.choice(["trio", "asyncio"]))
    for number in range(20):
        for body in bodies[60 * number : 60 * (number + 1)]:
            add(crew, body, retry=3)
        _trouble(crew, rng)
    eventually(lambda: not set(bodies) - crew.done(), SOON_S, "all are done")
    for worker in crew.workers[-3:]:
        assert crew.stop(worker) == CLEAN


def _trouble(crew: Crew, rng: random.Random) -> None:
    """The oldest worker is killed, stopped or ended, a node is killed, and a worker comes."""
    worker = crew.workers[-3]
    match rng.choice(["kill", "stand", "end"]):
        case "stand":
            stands(worker)
        case "kill":
            worker.kill()
        case "end":
            assert crew.stop(worker) == CLEAN
    server = rng.choice(crew.servers)
    server.kill()
    time.sleep(rng.uniform(0, 4))
    server.start().wait()
    Cluster(list(crew.servers)).wait()
    worker.send_signal(signal.SIGCONT)
    if worker.poll() is None:
        assert crew.stop(worker) == CLEAN
    crew.start(f"w{len(crew.workers)}", rng.choice(["trio", "asyncio"]))
