import attrs
import pytest

from disque_trio.statemachine import repair
from disque_trio.statemachine.base import ACKED, FAIL, NOADDR, PFAIL, JobId, Millis, NodeId
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.job import Job, make_id, rank
from disque_trio.statemachine.memory import of_job
from disque_trio.statemachine.messages import GotJob, JobCopy, Queued, ReplJob, SetAck, WillQueue
from disque_trio.statemachine.records import LoadJob
from tests.cluster_rig import ClusterRig
from tests.rig import CALM, JOB, ME, N2, N3, N4, ONCE, Rig, copy_of

SOON: Millis = 1100 + 2 * repair.RUN_EVERY
"""By then the heart has noticed a loss, and a few jobs have been looked at."""


def forget(rig: Rig, *names: NodeId) -> None:
    for name in names:
        rig.ask("CLUSTER", "FORGET", name)


def until_a_pass_begins(rig: Rig) -> None:
    while rig.node.repair.walk is None:
        rig.advance(repair.RUN_EVERY // 2)


def asked(rig: Rig) -> list[tuple[NodeId, JobCopy]]:
    """Who was sent a copy and is to confirm it."""
    return [
        (to, message.copies[0])
        for to, message in rig.sent()
        if isinstance(message, ReplJob) and not message.no_reply
    ]


def under(rig: Rig) -> int:
    return rig.node.repair.under


def named(name: int) -> JobId:
    """One of many job ids."""
    return make_id(N2, name << 130 | name, 86_400, at_least_once=True)


def held(rig: Rig, holders: tuple[NodeId, ...], *, replicas: int = 2, name: int = 0) -> Job:
    """A job that this node holds with others; `name` chooses one of many."""
    job_id = named(name) if name else JOB
    return rig.hold(attrs.evolve(copy_of(job_id, holders=holders), replicas=replicas))


def first_in_line(holders: tuple[NodeId, ...], *, wanted: NodeId) -> int:
    """A name for which this node comes first."""
    return next(
        name
        for name in range(1, 1000)
        if min(holders, key=lambda id: rank(id, named(name))) == wanted
    )


# Who is lost.


def test_a_job_whose_holder_is_forgotten_is_copied_to_another_node() -> None:
    rig = Rig(peers=3, config=CALM)
    job = held(rig, (ME, N2))
    forget(rig, N2)

    rig.advance(SOON)

    ((target, copy),) = asked(rig)
    assert target in (N3, N4)
    assert copy.holders == (ME, N2, target) == job.holders
    assert copy.body == b"body"
    assert under(rig) == 1

    rig.message(target, GotJob(JOB))
    assert under(rig) == 0
    assert job.confirmed is None
    assert rig.node.stats.copies_repaired == 1

    rig.advance(120_000)
    assert asked(rig) == []


def test_a_holder_that_fails_is_given_time_to_come_back() -> None:
    rig = Rig(peers=3, config=attrs.evolve(CALM, replica_repair_after_s=60))
    held(rig, (ME, N2))
    rig.node.cluster.nodes[N2].flags |= FAIL

    rig.advance(55_000)
    assert asked(rig) == []

    rig.advance(6_000 + SOON)
    assert len(asked(rig)) == 1


def test_its_time_begins_anew_when_it_has_been_well_meanwhile() -> None:
    rig = Rig(peers=3, config=attrs.evolve(CALM, replica_repair_after_s=60))
    held(rig, (ME, N2))
    peer = rig.node.cluster.nodes[N2]
    peer.flags |= FAIL
    rig.advance(50_000)
    peer.flags &= ~FAIL
    rig.advance(2_000)
    peer.flags |= FAIL

    rig.advance(55_000)

    assert asked(rig) == []


def test_a_node_whose_address_another_has_taken_is_as_good_as_failing() -> None:
    rig = Rig(peers=3, config=attrs.evolve(CALM, replica_repair_after_s=60))
    held(rig, (ME, N2))
    rig.node.cluster.nodes[N2].flags |= NOADDR

    rig.advance(62_000)

    assert len(asked(rig)) == 1


def test_with_0_copies_are_counted_and_not_made() -> None:
    rig = Rig(peers=3, config=attrs.evolve(CALM, replica_repair_after_s=0))
    held(rig, (ME, N2))
    rig.node.cluster.nodes[N2].flags |= FAIL
    rig.advance(1_000_000)
    assert under(rig) == 0

    forget(rig, N2)
    rig.advance(120_000)

    assert asked(rig) == []
    assert under(rig) == 1


# What is repaired.


def test_as_many_copies_are_made_as_are_missing() -> None:
    rig = Rig(peers=3, config=CALM)
    held(rig, (ME, N2), replicas=3)
    forget(rig, N2)

    rig.advance(SOON)

    assert sorted(to for to, _ in asked(rig)) == [N3, N4]


def test_a_job_that_has_copies_enough_is_left_alone() -> None:
    rig = Rig(peers=3, config=CALM)
    held(rig, (ME, N2, N3))
    forget(rig, N2)

    rig.advance(60_000)

    assert asked(rig) == []
    assert under(rig) == 0


def test_acknowledged_jobs_are_not_repaired() -> None:
    rig = Rig(peers=3, config=CALM)
    job = held(rig, (ME, N2, N3), replicas=3)
    rig.message(N3, SetAck(JOB, 3))
    assert job.state == ACKED
    forget(rig, N2)

    rig.advance(60_000)

    assert asked(rig) == []


def test_at_most_once_jobs_are_not_repaired() -> None:
    rig = Rig(peers=3, config=CALM)
    rig.hold(copy_of(ONCE, holders=(ME, N2), retry=0))
    forget(rig, N2)

    rig.advance(60_000)

    assert asked(rig) == []


def test_a_job_that_is_gone_meanwhile_is_not_missed() -> None:
    rig = Rig(peers=3, config=CALM)
    held(rig, (ME, N2))
    held(rig, (ME, N2), name=1)
    forget(rig, N2)
    until_a_pass_begins(rig)
    rig.ask("DELJOB", JOB)

    rig.advance(SOON)

    assert [copy.id != JOB for _, copy in asked(rig)] == [True]


def test_a_copy_counts_its_delay_from_now_on() -> None:
    rig = Rig(peers=3, config=CALM)
    job = rig.hold(attrs.evolve(copy_of(holders=(ME, N2), delay=100, retry=10), replicas=2))
    rig.advance(70_000)
    forget(rig, N2)

    rig.advance(SOON)

    ((_, copy),) = asked(rig)
    assert 30 <= copy.delay <= 40
    assert copy.ctime + copy.delay * 1_000_000_000 == job.ctime + 100 * 1_000_000_000


def test_a_copy_is_not_queued_before_its_delay_is_over() -> None:
    rig = Rig(peers=3, config=CALM)
    job = rig.hold(attrs.evolve(copy_of(holders=(ME, N2), delay=100, retry=10), replicas=2))
    rig.advance(70_000)
    forget(rig, N2)

    while not (sent := asked(rig)):
        rig.advance(10)

    ((_, copy),) = sent
    assert copy.delay * 1000 >= job.requeue_at - rig.now.mono


def test_a_delay_that_is_over_is_over() -> None:
    rig = Rig(peers=3, config=CALM)
    rig.hold(attrs.evolve(copy_of(holders=(ME, N2), delay=100, retry=10), replicas=2))
    rig.advance(300_000)
    forget(rig, N2)

    rig.advance(SOON)

    ((_, copy),) = asked(rig)
    assert copy.delay <= copy.retry


# Who does it.


def test_the_first_in_line_does_it_and_the_next_takes_over() -> None:
    rig = Rig(peers=3, config=CALM)
    name = first_in_line((ME, N3), wanted=N3)
    held(rig, (ME, N2, N3), replicas=3, name=name)
    forget(rig, N2)

    rig.advance(repair.TAKE_OVER - 1000)
    assert asked(rig) == []
    assert under(rig) == 1

    rig.advance(repair.AGAIN + SOON)
    assert {to for to, _ in asked(rig)} == {N4}


@pytest.mark.parametrize("flag", [PFAIL, FAIL, NOADDR])
def test_who_is_not_well_does_not_stand_in_line(flag: int) -> None:
    rig = Rig(peers=3, config=CALM)
    name = first_in_line((ME, N3), wanted=N3)
    held(rig, (ME, N2, N3), replicas=3, name=name)
    rig.node.cluster.nodes[N3].flags |= flag
    forget(rig, N2)

    rig.advance(SOON)

    assert [to for to, _ in asked(rig)] == [N4]


def test_the_other_holders_learn_of_the_new_one_and_need_not_confirm() -> None:
    rig = Rig(peers=3, config=CALM)
    held(rig, (ME, N2, N3), replicas=3, name=first_in_line((ME, N3), wanted=ME))
    forget(rig, N2)

    rig.advance(SOON)

    told = [(to, m.copies[0].holders, m.no_reply) for to, m in rig.sent() if isinstance(m, ReplJob)]
    assert told == [(N4, (ME, N2, N3, N4), False), (N3, (ME, N2, N3, N4), True)]


def test_the_journal_learns_of_the_new_holder_before_it_has_a_copy() -> None:
    rig = Rig(peers=3, config=attrs.evolve(CALM, appendonly=True))
    held(rig, (ME, N2))
    forget(rig, N2)

    rig.advance(SOON)

    ((target, _),) = asked(rig)
    records = [record for out in rig.outboxes for record in out.records]
    assert isinstance(records[-1], LoadJob)
    assert records[-1].copy.holders == (ME, N2, target)


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
    assert job.confirmed is None


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
    rig.node.repair.has_news = True
    rig.node.repair.again = rig.now.mono

    rig.advance(SOON)

    assert {to for to, _ in asked(rig)} == {willing}
    assert silent != willing


def test_with_nobody_to_ask_it_waits_for_a_node_to_come() -> None:
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
    assert job.confirmed is None


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


def test_a_run_looks_at_so_many_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "LOOKS", 2)
    rig = Rig(peers=3, config=CALM)
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
    rig.node.repair.has_news = True

    rig.advance(2 * SOON)

    assert len(asked(rig)) == 1
    assert not rig.node.repair.has_news


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
