import pytest

from disque_trio.sim.scenarios.plan import LinkPlan
from disque_trio.sim.steering import LimitError, Simulation
from disque_trio.statemachine.base import ACTIVE, NULL_ARRAY, QUEUED, Failure, JobId, Status
from tests.sim.runs import of, plan

SECOND = 1_000_000


def added(sim: Simulation, node: str = "n1", replicate: int = 3, retry: int = 1) -> JobId:
    """A job that has its copies."""
    pending = sim.client(node).addjob("q", "body", replicate=replicate, retry=retry)
    sim.run_until(lambda: pending.is_done)
    assert isinstance(pending.reply, Status)
    return pending.reply.text


def holders(sim: Simulation, job: JobId) -> list[str]:
    return [name for name in sim.names() if job in sim.state(name).jobs]


def queues(sim: Simulation, job: JobId) -> list[str]:
    return [name for name in holders(sim, job) if sim.state(name).jobs[job].state == QUEUED]


def test_a_simulation_begins_with_a_cluster_at_time_zero() -> None:
    sim = Simulation(nodes=4, seed=7)

    assert sim.now == 0
    assert sim.names() == ["n1", "n2", "n3", "n4"]
    assert all(len(sim.state(name).cluster.reachable) == 3 for name in sim.names())


def test_a_client_adds_gets_and_acks() -> None:
    sim = Simulation()
    job = added(sim)
    client = sim.client("n1")

    got = client.getjob("q")
    sim.run(1_000)
    acked = client.ackjob(job)
    sim.run(SECOND)

    counters = [b"nacks", 0, b"additional-deliveries", 0]
    assert got.reply == [[b"q", job, b"body", *counters]]
    assert acked.reply == 1
    assert holders(sim, job) == []


def test_requests_of_one_client_are_answered_in_order() -> None:
    sim = Simulation()
    client = sim.client("n1")

    first, second = client.getjob("q", timeout_ms=500), client.ask("PING")
    sim.run(400_000)
    assert not second.is_done
    sim.run(200_000)

    assert first.reply is NULL_ARRAY
    assert second.reply == Status(b"PONG")


def test_options_are_spelled() -> None:
    sim = Simulation()

    pending = sim.client("n1").addjob("q", "body", is_async=True, delay=5, ttl=60)
    sim.run(1_000)

    assert isinstance(pending.reply, Status)
    assert sim.state("n1").jobs[pending.reply.text].delay == 5_000


def test_a_closed_client_gets_no_reply() -> None:
    sim = Simulation()
    client = sim.client("n1")
    pending = client.getjob("q", timeout_ms=5_000)
    sim.run(1_000)

    client.close()
    sim.run(1_000)

    assert pending.is_lost
    assert not sim.state("n1").clients


def test_anybody_may_be_asked_without_a_client_of_ones_own() -> None:
    sim = Simulation()

    pending = sim.request(2, "CLUSTER", "MYID")
    sim.run(1_000)

    assert pending.reply == sim.state("n2").cluster.myself.id


def test_time_passes_only_as_told() -> None:
    sim = Simulation()

    sim.run(123)

    assert sim.now == 123


def test_what_does_not_come_true_in_time_is_an_error() -> None:
    sim = Simulation()

    with pytest.raises(LimitError, match="not within 1000000 us"):
        sim.run_until(lambda: False, SECOND)


def test_a_partition_lasts_as_long_as_its_block() -> None:
    sim = Simulation()
    job = added(sim, retry=1)

    with sim.partition(["n1"], ["n2", "n3"]):
        sim.run(3 * SECOND)
        assert len(queues(sim, job)) == 2
    sim.run(5 * SECOND)

    assert len(queues(sim, job)) == 1
    assert len(of(sim.rows, "heal")) == 4


def test_an_isolated_node_adds_alone_what_one_copy_suffices_for() -> None:
    sim = Simulation()
    sim.isolate("n2")
    client = sim.client("n2")

    one, three = (
        client.addjob("q", "a", replicate=1),
        sim.client("n2").addjob("q", "b", replicate=3),
    )
    sim.run(2 * SECOND)

    assert isinstance(one.reply, Status)
    assert isinstance(three.reply, Failure)


def test_a_cut_has_a_direction() -> None:
    sim = Simulation()

    with sim.cut("n1", "n2"):
        job = sim.client("n2").addjob("q", "x", replicate=3)
        sim.run(500_000)
        assert not job.is_done
    sim.run(2 * SECOND)

    assert of(sim.rows, "hold", node="n1", cause="repljob")


def test_what_is_held_comes_when_it_is_released() -> None:
    sim = Simulation()
    active = sim.hold("n1", "n2")
    job = sim.client("n1").addjob("q", "x", replicate=3, timeout_ms=0)
    sim.run(SECOND // 2)
    assert not of(sim.rows, "hold", node="n2")

    active.release()
    sim.run(2 * SECOND)

    assert job.is_done
    assert of(sim.rows, "hold", node="n2")
    assert not of(sim.rows, "lost")


def test_a_delay_is_added() -> None:
    sim = Simulation(link=LinkPlan())

    with sim.delay("n1", "n2", 300_000):
        pending = sim.client("n1").addjob("q", "x", replicate=3)
        sim.run(250_000)
        assert not pending.is_done
        sim.run(200_000)

    assert isinstance(pending.reply, Status)


def test_single_messages_can_be_dropped() -> None:
    sim = Simulation()
    job = added(sim, retry=60)

    with sim.drop("n1", "n2", only="setack", count=1):
        sim.request("n1", "ACKJOB", job)
        sim.run(500_000)
        assert holders(sim, job) == ["n1", "n2", "n3"]
    sim.run(10 * SECOND)

    assert holders(sim, job) == []
    assert [(row.cause, row.detail) for row in of(sim.rows, "lost")] == [("setack", "dropped")]


def test_a_crashed_node_comes_back_empty_when_the_trouble_is_over() -> None:
    sim = Simulation()
    job = added(sim, retry=60)

    with sim.crash("n2"):
        assert sim.names() == ["n1", "n3"]
        sim.run(SECOND)
    sim.settle()

    assert holders(sim, job) == ["n1", "n3"]
    assert [row.cause for row in of(sim.rows, "start", node="n2")] == ["fresh", "empty"]


def test_a_restart_loses_the_jobs_and_keeps_the_name() -> None:
    sim = Simulation()
    name = sim.state("n2").cluster.myself.id
    job = added(sim, retry=60)

    sim.restart("n2")
    sim.settle()

    assert sim.state("n2").cluster.myself.id == name
    assert "n2" not in holders(sim, job)


def test_a_wiped_node_loses_its_name_too() -> None:
    sim = Simulation()
    name = sim.state("n2").cluster.myself.id

    sim.wipe("n2")
    sim.settle()

    assert sim.state("n2").cluster.myself.id != name


def test_a_removed_node_is_gone() -> None:
    sim = Simulation()

    sim.remove("n3")
    sim.settle()

    assert sim.names() == ["n1", "n2"]
    with pytest.raises(AssertionError, match="n3 does not run"):
        sim.machine("n3")


def test_a_paused_node_answers_late() -> None:
    sim = Simulation()

    with sim.pause("n1"):
        pending = sim.request("n1", "PING")
        sim.run(SECOND)
        assert not pending.is_done
    sim.run(1_000)

    assert pending.is_done


def test_a_slow_node_answers_slowly() -> None:
    sim = Simulation()

    with sim.slow("n1", 200_000):
        first, second = sim.request("n1", "PING"), sim.request("n1", "PING")
        sim.run(600_000)

    assert first.is_done
    assert second.is_done


def test_clocks_drift_step_and_freeze() -> None:
    sim = Simulation()
    hosts = sim.world.hosts
    before = hosts[1].clock.now(sim.now)
    sim.step_clock("n1", -1_000_000)
    with sim.drift("n2", 100_000), sim.freeze("n3"):
        sim.run(10 * SECOND)
        after = [hosts[node].clock.now(sim.now) for node in (1, 2, 3)]

    assert [now.mono - before.mono for now in after] == [10_000, 11_000, 10_000]
    assert [now.wall - before.wall for now in after] == [-990_000, 11_000, 0]


def test_nodes_join_leave_and_are_forgotten() -> None:
    sim = Simulation()

    assert sim.join() == "n4"
    sim.settle()
    with sim.leave("n2"):
        sim.run(3 * SECOND)
        assert len(sim.state("n1").cluster.reachable) == 2
    with sim.forget("n3"):
        sim.run(SECOND)
        assert len(sim.state("n1").cluster.nodes) == 3
    sim.settle()

    assert len(sim.state("n1").cluster.reachable) == 3


def test_heal_undoes_every_trouble() -> None:
    sim = Simulation(nodes=5)
    sim.partition([1, 2], [3, 4, 5])
    sim.crash(1)
    sim.pause(4)
    sim.drop(2, 3)
    sim.hold(3, 4)
    sim.run(3 * SECOND)

    sim.settle()

    assert not sim.active_faults
    assert len(sim.names()) == 5


def test_undoing_twice_is_undoing_once() -> None:
    sim = Simulation()
    first, second = sim.cut(1, 2), sim.cut(1, 2)

    first.undo()
    first.undo()

    assert not of(sim.rows, "heal")
    second.undo()
    assert len(of(sim.rows, "heal")) == 1


def test_a_drain_leaves_no_job_anywhere() -> None:
    sim = Simulation(nodes=4)
    with sim.partition([1, 2], [3, 4]):
        for node in ("n1", "n3"):
            sim.client(node).addjob("one", "x", replicate=2)
            sim.client(node).addjob("two", "x", replicate=1, retry=3)
        sim.run(SECOND)

    sim.drain()

    assert all(not sim.state(name).jobs for name in sim.names())
    assert len(of(sim.rows, "get.deliver")) >= 4


def test_a_drain_that_cannot_end_is_an_error() -> None:
    sim = Simulation()
    job = sim.client("n1").addjob("q", "once", replicate=1, retry=0)
    sim.run(1_000)
    sim.request("n1", "GETJOB", "FROM", "q")
    sim.run(1_000)
    assert job.is_done

    with pytest.raises(LimitError, match="not drained"):
        sim.drain(5 * SECOND)


def test_states_can_be_checked_at_any_time() -> None:
    sim = Simulation()
    job = added(sim)
    sim.check()

    sim.state("n1").jobs[job].state = ACTIVE

    with pytest.raises(AssertionError):
        sim.check()


def test_a_plan_may_bring_its_agents() -> None:
    sim = Simulation(plan())

    sim.run(20 * SECOND)

    assert len(of(sim.rows, "ack.ok")) == 20


def test_equal_steps_make_equal_histories() -> None:
    digests = []
    for _ in range(2):
        sim = Simulation(seed=3)
        added(sim)
        with sim.crash("n1"):
            sim.run(SECOND)
        digests.append(sim.digest)

    assert digests[0] == digests[1]
