import pytest

from disque_trio.statemachine import repair
from disque_trio.statemachine.base import NodeId
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.memory import of_job
from disque_trio.statemachine.messages import GotJob, Queued, ReplJob, SetAck, WillQueue
from tests.cluster_rig import ClusterRig
from tests.rig import CALM, JOB, ME, N2, N3, N4, Rig
from tests.statemachine.repairing import (
    SOON,
    asked,
    forget,
    held,
    named,
    under,
    until_a_pass_begins,
)

# Targets that do not answer.


def test_a_target_that_does_not_answer_is_replaced() -> None:
    rig = Rig(peers=3, config=CALM)
    job = held(rig, (ME, N2))
    forget(rig, N2)
    rig.advance(SOON)
    ((first, _),) = asked(rig)

    rig.advance(repair.PATIENCE + SOON)

    ((second, copy),) = asked(rig)
    assert {first, second} == {N3, N4}
    assert copy.holders == (ME, N2, first, second), "the first may have it after all"
    rig.message(second, GotJob(JOB))
    assert under(rig) == 0
    assert job.confirmed == (ME, second), "the first is still not known to have one"


def test_when_all_have_been_asked_they_are_asked_again() -> None:
    rig = Rig(peers=2, config=CALM)
    job = held(rig, (ME, N2))
    forget(rig, N2)
    rig.advance(SOON)
    assert [to for to, _ in asked(rig)] == [N3]

    rig.advance(repair.PATIENCE + SOON)

    assert [to for to, _ in asked(rig)] == [N3]
    rig.message(N3, GotJob(JOB))
    assert job.confirmed == (ME, N3)


def test_a_node_that_gave_no_answer_is_asked_last_for_other_jobs() -> None:
    rig = Rig(peers=3, config=CALM)
    held(rig, (ME, N2))
    for name in range(1, 20):
        held(rig, (ME, N2), name=name, replicas=1)
    forget(rig, N2)
    rig.advance(SOON)
    ((silent, _),) = asked(rig)
    rig.advance(repair.PATIENCE + SOON)
    ((willing, _),) = asked(rig)
    rig.message(willing, GotJob(JOB))
    for name in range(1, 20):
        rig.node.jobs[named(name)].replicas = 2
    rig.node.repair.has_changes = True
    rig.node.repair.again = rig.now.mono

    rig.advance(SOON)

    assert {to for to, _ in asked(rig)} == {willing}
    assert silent != willing


def test_without_a_node_to_ask_it_waits_for_one() -> None:
    rig = Rig(peers=2, config=CALM)
    held(rig, (ME, N2))
    rig.lose_link(N3)
    forget(rig, N2)
    rig.advance(SOON)
    assert asked(rig) == []
    assert under(rig) == 1

    peer = rig.node.cluster.nodes[N3]
    rig.machine.linked(peer.link, "127.0.0.1", peer.ip, rig.now)
    rig.advance(SOON)

    assert [to for to, _ in asked(rig)] == [N3]


@pytest.mark.parametrize("lost", [(N3,), (N4,), (N3, N4)])
def test_a_node_whose_link_has_just_ended_is_no_new_holder(lost: tuple[NodeId, ...]) -> None:
    """everything, seed 3788: nothing was sent to it."""
    rig = Rig(peers=3, config=CALM)
    job = held(rig, (ME, N2))
    forget(rig, N2)
    until_a_pass_begins(rig)

    for name in lost:
        rig.lose_link(name)
    rig.advance(2 * repair.RUN_EVERY)

    left = tuple(name for name in (N3, N4) if name not in lost)
    assert tuple(to for to, _ in asked(rig)) == left
    assert job.holders == (ME, N2, *left)


def test_a_job_that_is_acknowledged_while_its_copy_is_under_way_is_done() -> None:
    rig = Rig(peers=3, config=CALM)
    job = held(rig, (ME, N2))
    forget(rig, N2)
    rig.advance(SOON)
    ((target, _),) = asked(rig)

    rig.ask("ACKJOB", JOB)
    rig.message(target, GotJob(JOB))

    assert rig.node.repair.awaited == {}
    assert job.confirmed == (ME,), "the new holder is to confirm the acknowledgement"
    assert (target, SetAck(JOB, 3)) in rig.sent()


def test_a_job_that_goes_while_its_copy_is_under_way_is_forgotten() -> None:
    rig = Rig(peers=3, config=CALM)
    held(rig, (ME, N2))
    forget(rig, N2)
    rig.advance(SOON)
    rig.ask("DELJOB", JOB)

    rig.advance(repair.PATIENCE + SOON)

    assert rig.node.repair.awaited == {}
    assert rig.node.repair.silent == {}


def test_only_enough_confirmations_end_it() -> None:
    rig = Rig(peers=3, config=CALM)
    job = held(rig, (ME, N2), replicas=3)
    forget(rig, N2)
    rig.advance(SOON)

    rig.message(N3, GotJob(JOB))
    rig.message(N3, GotJob(JOB))
    assert JOB in rig.node.repair.awaited
    assert rig.node.stats.copies_repaired == 1

    rig.message(N4, GotJob(JOB))
    assert JOB not in rig.node.repair.awaited
    assert job.confirmed == (ME, N3, N4)


# Slices.


def test_a_run_has_so_many_copies_under_way() -> None:
    rig = Rig(peers=3, config=CALM)
    for name in range(1, 2 * repair.WINDOW):
        held(rig, (ME, N2), name=name)
    forget(rig, N2)
    rig.advance(SOON)
    under_way = asked(rig)
    assert len(under_way) == repair.WINDOW

    for target, copy in under_way:
        rig.message(target, GotJob(copy.id))
    rig.advance(SOON)

    assert len(asked(rig)) == repair.WINDOW - 1


def test_a_run_has_so_many_bytes_under_way() -> None:
    rig = Rig(peers=3, config=CALM)
    for name in range(1, 10):
        job = held(rig, (ME, N2), name=name)
        rig.node.memory.held -= of_job(job)
        job.body = bytes(repair.WINDOW_BYTES // 3)
        rig.node.memory.held += of_job(job)
    forget(rig, N2)

    rig.advance(SOON)

    assert len(asked(rig)) == 4


def test_a_run_looks_at_so_many_jobs() -> None:
    rig = Rig(peers=3, config=CALM)
    rig.turn(repair_looks=2)
    for name in range(1, 8):
        held(rig, (ME, N3), name=name)
    forget(rig, N2)
    until_a_pass_begins(rig)

    rig.advance(3 * repair.RUN_EVERY)
    assert rig.node.repair.walk is not None, "three runs are not enough for seven jobs"

    rig.advance(2 * repair.RUN_EVERY)
    assert rig.node.repair.walk is None


def test_a_loss_during_a_pass_leads_to_another() -> None:
    rig = Rig(peers=3, config=CALM)
    held(rig, (ME, N2), name=1)
    held(rig, (ME, N3), name=2)
    forget(rig, N2)
    until_a_pass_begins(rig)
    rig.node.repair.has_changes = True

    rig.advance(2 * SOON)

    assert len(asked(rig)) == 1
    assert not rig.node.repair.has_changes


# Several nodes.

REPAIRING = Config(cluster_node_timeout=2000, replica_repair_after_s=30)


def holders_of(rig: ClusterRig, job_id: bytes) -> list[str]:
    return [name for name in rig.names() if job_id in rig.node(name).jobs]


def added(rig: ClusterRig, *options: str | int) -> bytes:
    reply = rig.ask("a", "ADDJOB", "q", "body", 0, *options)
    text = getattr(reply, "text", None)
    assert isinstance(text, bytes), reply
    return text


def test_a_cluster_restores_what_a_failed_node_held_and_no_more() -> None:
    rig = ClusterRig("a", "b", "c", "d", "e", config=REPAIRING)
    rig.form()
    jobs = [added(rig, "REPLICATE", 3, "RETRY", 3600) for _ in range(20)]
    rig.crash("b")

    rig.run(90_000)

    assert {len(holders_of(rig, job)) for job in jobs} == {3}
    assert all(rig.node(name).repair.under == 0 for name in rig.names())


def test_a_node_that_is_short_of_memory_refuses_and_another_is_asked() -> None:
    rig = ClusterRig("a", "b", "c", "d", config=REPAIRING)
    rig.form()
    rig.ask("c", "CONFIG", "SET", "maxmemory", 1)
    jobs = [added(rig, "REPLICATE", 2, "RETRY", 3600) for _ in range(20)]
    gone = rig.id("b")
    bereft = [job for job in jobs if "b" in holders_of(rig, job)]
    rig.crash("b")
    for name in rig.names():
        rig.ask(name, "CLUSTER", "FORGET", gone)

    rig.run(30_000)

    assert bereft
    assert {tuple(holders_of(rig, job)) for job in bereft} == {("a", "d")}
    assert rig.sent(ReplJob, receiver="c")


def test_every_holder_knows_the_new_ones_so_an_ack_reaches_them_all() -> None:
    rig = ClusterRig("a", "b", "c", "d", config=REPAIRING)
    rig.form()
    jobs = [added(rig, "REPLICATE", 3, "RETRY", 3600) for _ in range(10)]
    gone = rig.id("b")
    rig.crash("b")
    for name in rig.names():
        rig.ask(name, "CLUSTER", "FORGET", gone)
    rig.run(5_000)

    for number, job in enumerate(jobs):
        rig.ask("acd"[number % 3], "ACKJOB", job)
    rig.run(5_000)

    assert [name for name in rig.names() if rig.node(name).jobs] == []


def test_jobs_survive_when_all_their_first_holders_go_one_by_one() -> None:
    rig = ClusterRig("a", "b", "c", "d", config=REPAIRING)
    rig.form()
    jobs = [added(rig, "REPLICATE", 2, "RETRY", 10) for _ in range(10)]
    for name in "ab":
        gone = rig.id(name)
        rig.crash(name)
        for other in rig.names():
            rig.ask(other, "CLUSTER", "FORGET", gone)
        rig.run(5_000)

    rig.run(60_000)

    assert {len(holders_of(rig, job)) for job in jobs} == {2}
    assert sum(len(q) for n in "cd" for q in rig.node(n).queues.values()) == 10
    assert not rig.sent(Queued, sender="a", receiver="a"), "nobody talks to itself"
    assert rig.sent(WillQueue)
