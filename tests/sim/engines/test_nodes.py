import pytest

from disque_trio.sim.engines.heap.nodes import MachineError
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.plan import Add, Consumer, Plan
from disque_trio.sim.steering import Simulation
from disque_trio.statemachine.base import HANDSHAKE, OK, Failure, Status
from disque_trio.tracing.rows import Row
from tests.sim.runs import of

SECOND = 1_000_000


def test_chores_succeed_on_a_simulated_host() -> None:
    sim = Simulation()

    for words in (
        ["CONFIG", "SET", "dir", "anywhere"],
        ["CONFIG", "SET", "maxclients", "20000"],
        ["CLUSTER", "SAVECONFIG"],
        ["DEBUG", "SLEEP", "2"],
    ):
        pending = sim.request("n1", *words)
        sim.run(3 * SECOND)
        assert pending.reply == OK, words


def test_info_tells_of_the_host() -> None:
    sim = Simulation()

    pending = sim.request("n1", "INFO")
    sim.run(SECOND)

    assert isinstance(pending.reply, bytes)
    assert b"connected_clients:1" in pending.reply


def test_shutdown_ends_the_node() -> None:
    sim = Simulation()

    pending = sim.request("n2", "SHUTDOWN")
    sim.run(SECOND)

    assert sim.names() == ["n1", "n3"]
    assert pending.is_lost
    assert [row.cause for row in of(sim.rows, "crash")] == ["stop"]


def test_quit_closes_the_connection_after_its_reply() -> None:
    sim = Simulation()
    client = sim.client("n1")

    first, second = client.ask("QUIT"), client.ask("PING")
    sim.run(SECOND)

    assert first.reply == OK
    assert second.is_lost
    assert not sim.state("n1").clients


def test_a_node_with_too_many_clients_takes_no_more() -> None:
    sim = Simulation(config=(("maxclients", "1"),))
    one, other = sim.client("n1").ask("PING"), sim.client("n1").ask("PING")

    sim.run(SECOND)

    assert one.reply == Status(b"PONG")
    assert other.reply == Failure(b"ERR max number of clients reached")


def test_who_hangs_up_takes_back_a_job_that_waits_for_copies() -> None:
    sim = Simulation()
    sim.isolate("n1")
    client = sim.client("n1")
    client.addjob("q", "x", replicate=3, timeout_ms=0)
    sim.run(10_000)
    assert sim.state("n1").jobs

    client.close()
    sim.run(10_000)

    assert not sim.state("n1").jobs
    assert [row.cause for row in of(sim.rows, "drop")] == ["add-failed"]
    assert [row.cause for row in of(sim.rows, "add.unknown")] == ["timeout"]


def test_who_asks_a_node_that_is_down_is_told_so() -> None:
    sim = Simulation()
    sim.crash("n1")

    pending = sim.request("n1", "PING")
    sim.run(1_000)

    assert pending.is_lost


def test_who_asked_a_paused_node_that_dies_is_told_so() -> None:
    sim = Simulation()
    sim.pause("n1")
    pending = sim.request("n1", "PING")
    sim.run(1_000)
    assert not pending.is_done

    sim.crash("n1")
    sim.run(1_000)

    assert pending.is_lost


def test_a_request_that_meets_the_next_life_of_a_node_is_lost() -> None:
    sim = Simulation()
    client = sim.client("n1")
    client.ask("PING")
    sim.run(1_000)

    sim.restart("n1")
    pending = client.ask("PING")
    sim.run(1_000)

    assert pending.is_lost


def test_nobody_is_at_an_address_outside_the_cluster() -> None:
    sim = Simulation(config=(("cluster-node-timeout", "500"),))

    sim.request("n1", "CLUSTER", "MEET", "192.0.2.1", 7711)
    sim.run(5 * SECOND)

    others = [peer for peer in sim.state("n1").cluster.nodes.values() if peer.flags & HANDSHAKE]
    assert [peer.ip for peer in others] == ["192.0.2.1"], "it goes on, as nobody has ended it"
    assert len(sim.state("n1").cluster.nodes) == 4
    assert {row.detail for row in of(sim.rows, "lost", cause="meet")} == {"never linked"}


def test_a_stopped_process_still_has_its_connections_accepted() -> None:
    sim = Simulation()
    sim.restart("n1")

    with sim.pause("n2"):
        sim.run(900_000)
        names = {peer.id: peer for peer in sim.state("n1").cluster.nodes.values()}
        assert names[sim.world.hosts[2].id].is_connected
    sim.settle()


def test_a_node_that_dies_before_it_has_accepted_ends_the_connection() -> None:
    sim = Simulation()
    sim.restart("n1")
    sim.pause("n2")
    sim.run(500_000)

    sim.restart("n2")
    sim.settle()

    assert sim.names() == ["n1", "n2", "n3"]


def test_a_dial_into_a_cut_knocks_again_until_it_heals() -> None:
    sim = Simulation(config=(("cluster-node-timeout", "60000"),))
    with sim.isolate("n1"):
        sim.restart("n1")
        sim.run(2 * SECOND)
        peers = sim.state("n1").cluster.nodes.values()
        assert not any(peer.is_connected for peer in peers)
    sim.run(2 * SECOND)

    others = [peer for peer in sim.state("n1").cluster.nodes.values() if peer.ip]
    assert any(peer.is_connected for peer in others)


def test_a_dial_into_a_cut_fails_in_the_end() -> None:
    sim = Simulation(config=(("cluster-node-timeout", "60000"),))
    sim.isolate("n1")
    sim.restart("n1")

    sim.run(8 * SECOND)

    assert of(sim.rows, "lost", node="n1", detail="never linked")


def test_clocks_that_change_wake_nodes_in_time() -> None:
    sim = Simulation()
    sim.run(SECOND)
    pending = sim.client("n1").getjob("q", timeout_ms=10_000)
    sim.run(1_000)

    sim.drift("n1", 1_000_000)
    sim.run(5_050_000)

    assert pending.is_done


def test_what_a_machine_raises_names_the_node() -> None:
    sim = Simulation()
    sim.state("n2").cluster.nodes.clear()

    with pytest.raises(MachineError, match="n2 at"):
        sim.run(10 * SECOND)


@pytest.mark.parametrize("delay_s", [0, 3])
def test_what_a_batch_causes_at_its_end_happens_and_is_written_with_it(delay_s: int) -> None:
    job = Add(
        at=6 * SECOND,
        node=2,
        producer="p",
        queue="q",
        body="b",
        replicate=1,
        delay_s=delay_s,
        ttl_s=300,
    )
    waiting = Consumer(name="c1", node=1, queues=("q",))
    rows: list[Row] = []

    gift = Plan(
        scenario="gift", seed=1, nodes=2, adds=(job,), consumers=(waiting,), chaos=12 * SECOND
    )

    simulate(gift, rows.append)

    told = [row for row in rows if row.node == "n2" and row.time >= job.at]
    kinds = [row.kind for row in told if row.kind in {"queue", "unqueue", "give"}]
    [queued] = of(told, "queue")
    [offered] = [row for row in told if (row.kind, row.cause) == ("send", "havejobs")]
    assert kinds == ["queue", "unqueue", "give"]
    assert offered.time == queued.time
    assert told.index(queued) < told.index(offered)
