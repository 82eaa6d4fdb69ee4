"""A node that is stopped in order: its queues come back, as of the last moment."""

from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.steering import Simulation
from disque_trio.statemachine.base import QUEUED
from tests.sim.runs import of

SECOND = 1_000_000
SOON = SECOND // 5
SLOW = 2 * SOON
"""How long a sync takes, so that a stop takes longer than `SOON`."""


def journaling(fsync: str = "everysec", *, sync: int = 5_000) -> Simulation:
    config = (
        ("appendonly", "yes"),
        ("appendfsync", fsync),
        ("aof-queues", "no"),
        ("cluster-node-timeout", "2000"),
    )
    return Simulation(Plan(scenario="", seed=1, nodes=1, config=config, sync=(sync, sync)))


def filled(sim: Simulation, count: int = 40) -> None:
    client = sim.client("n1")
    for number in range(count):
        client.addjob("q", f"job {number}", replicate=1, retry=60)
    sim.run(SECOND)


def queued(sim: Simulation) -> int:
    return sum(job.state == QUEUED for job in sim.state("n1").jobs.values())


def test_what_was_queued_is_queued_again() -> None:
    sim = journaling()
    filled(sim)

    down = sim.crash("n1", "stop")
    sim.run(SECOND)
    down.undo()
    sim.run(SOON)

    [crash] = of(sim.rows, "crash")
    assert (crash.cause, crash.detail) == ("stop", "queues")
    assert queued(sim) == 40


def test_it_serves_meanwhile_and_what_it_hands_out_is_not_queued_again() -> None:
    sim = journaling(sync=SLOW)
    filled(sim)

    down = sim.crash("n1", "stop")
    sim.run(SOON)
    taken = sim.client("n1").getjob("q", count=3)
    added = sim.client("n1").addjob("q", "late", replicate=1, retry=60)
    sim.run(5 * SECOND)
    down.undo()
    sim.run(5 * SECOND)

    assert isinstance(taken.reply, list)
    assert len(taken.reply) == 3
    assert added.is_done
    assert (queued(sim), len(sim.state("n1").jobs)) == (38, 41)


def test_with_appendfsync_always_nobody_is_left_without_an_answer() -> None:
    sim = journaling("always")
    filled(sim)

    sim.crash("n1", "stop")
    pending = [sim.client("n1").addjob("q", f"late {each}", retry=60) for each in range(5)]
    sim.run(SECOND)

    assert all(each.is_done for each in pending)


def test_a_kill_afterwards_finds_no_mark() -> None:
    sim = journaling()
    filled(sim)
    down = sim.crash("n1", "stop")
    sim.run(SECOND)
    down.undo()
    sim.run(SECOND)

    sim.restart("n1")
    sim.run(SOON)

    assert (queued(sim), len(sim.state("n1").jobs)) == (0, 40)


def test_a_kill_in_the_middle_leaves_none() -> None:
    sim = journaling(sync=SLOW)
    filled(sim)

    sim.crash("n1", "stop")
    sim.run(SOON)
    sim.restart("n1")
    sim.run(5 * SECOND)

    assert [row.cause for row in of(sim.rows, "crash")] == ["kill"]
    assert (queued(sim), len(sim.state("n1").jobs)) == (0, 40)


def test_a_disk_without_room_for_a_second_file_leaves_none() -> None:
    sim = journaling()
    filled(sim)

    sim.world.hosts[1].disk.is_full = True
    sim.crash("n1", "stop")
    sim.run(SECOND)

    [crash] = of(sim.rows, "crash")
    assert (crash.cause, crash.detail) == ("stop", "")


def test_without_a_journal_it_ends_at_once() -> None:
    sim = Simulation(nodes=1)

    sim.crash("n1", "stop")
    sim.run(1_000)

    [crash] = of(sim.rows, "crash")
    assert (crash.cause, crash.detail) == ("stop", "")
