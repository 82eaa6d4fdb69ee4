import attrs
import pytest

from disque_trio.statemachine import nodetable, repair
from disque_trio.statemachine.base import ACKED, EXTENDS, FAIL, MEETS, NOADDR, PFAIL, NodeId
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.copies import CREATOR_FIRST
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.job import make_id, rank
from disque_trio.statemachine.journaling import confirmed_in
from disque_trio.statemachine.messages import GotJob, Postponed, ReplJob, SetAck, YourJobs
from disque_trio.statemachine.records import LoadJob
from tests.rig import CALM, JOB, ME, N2, N3, N4, ONCE, Rig, copy_of
from tests.statemachine.repairing import (
    SOON,
    asked,
    forget,
    held,
    named,
    under,
    until_a_pass_begins,
)


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
    assert job.confirmed == (ME, target)
    assert rig.node.stats.copies_repaired == 1

    rig.advance(120_000)
    assert asked(rig) == []


@pytest.mark.parametrize(("replicas", "is_asked"), [(3, True), (2, False)])
def test_a_copy_that_arrives_with_too_few_holders_is_left_to_its_creator_at_first(
    replicas: int, *, is_asked: bool
) -> None:
    """Its creator found no other node, and restarts without the job: it keeps its name, and no node
    sees it fail (everything, seed 9456)."""
    rig = Rig(peers=3, config=CALM)
    rig.advance(SOON)
    held(rig, (N2, ME), replicas=replicas)

    rig.advance(CREATOR_FIRST - 1000)
    assert asked(rig) == []

    rig.advance(1000 + SOON)
    assert [copy.holders[:2] for _, copy in asked(rig)] == [(N2, ME)] * is_asked


def test_a_holder_that_fails_is_given_time_to_come_back() -> None:
    rig = Rig(peers=3, config=attrs.evolve(CALM, replica_repair_after_s=60))
    held(rig, (ME, N2))
    nodetable.mark(rig.node, rig.node.cluster.nodes[N2], FAIL)

    rig.advance(55_000)
    assert asked(rig) == []

    rig.advance(6_000 + SOON)
    assert len(asked(rig)) == 1


def test_a_copy_is_lacking_at_once_though_its_holder_may_come_back() -> None:
    rig = Rig(peers=3, config=attrs.evolve(CALM, replica_repair_after_s=600))
    held(rig, (ME, N2))
    held(rig, (ME, N3), name=5)
    peer = rig.node.cluster.nodes[N2]

    nodetable.mark(rig.node, peer, FAIL)
    rig.advance(SOON)
    assert (rig.node.repair.lacking, under(rig)) == (1, 0)

    nodetable.unmark(rig.node, peer, FAIL)
    rig.advance(SOON)
    assert rig.node.repair.lacking == 0
    assert asked(rig) == []


def test_a_copy_that_is_there_again_is_no_longer_lacking_at_once() -> None:
    rig = Rig(peers=3, config=CALM)
    one, other = held(rig, (ME, N3), name=1), held(rig, (ME, N3), name=2)
    forget(rig, N3)
    rig.advance(repair.TAKE_OVER + SOON)
    repair_state = rig.node.repair
    assert (repair_state.under, repair_state.lacking, repair_state.reported) == (2, 2, 2)
    target = {copy.id: to for to, copy in asked(rig)}

    rig.message(target[one.id], GotJob(one.id))
    assert (repair_state.under, repair_state.lacking, repair_state.reported) == (1, 1, 1)

    rig.message(target[other.id], GotJob(other.id))
    assert (repair_state.under, repair_state.lacking, repair_state.reported) == (0, 0, 0)


@pytest.mark.parametrize("original", [False, True])
def test_of_the_holders_that_are_left_one_reports_that_a_copy_is_lacking(original: bool) -> None:
    def reported(first: NodeId) -> int:
        rig = Rig(peers=3, config=attrs.evolve(CALM, replica_repair_after_s=600))
        held(rig, (ME, N2, N3), name=first_in_line((ME, N2), wanted=first), replicas=3)
        nodes = rig.node.cluster.nodes
        nodes[N2].capabilities = 0 if original else MEETS
        nodetable.mark(rig.node, nodes[N3], FAIL)
        rig.advance(SOON)
        assert rig.node.repair.lacking == 1
        told = rig.node.repair.reported
        nodetable.mark(rig.node, nodes[N2], FAIL)
        rig.advance(SOON)
        assert rig.node.repair.reported == 1, "nobody else is left"
        return told

    assert (reported(ME), reported(N2)) == (1, 1 if original else 0)


def test_its_time_begins_anew_when_it_has_been_well_meanwhile() -> None:
    rig = Rig(peers=3, config=attrs.evolve(CALM, replica_repair_after_s=60))
    held(rig, (ME, N2))
    peer = rig.node.cluster.nodes[N2]
    nodetable.mark(rig.node, peer, FAIL)
    rig.advance(50_000)
    nodetable.unmark(rig.node, peer, FAIL)
    rig.advance(2_000)
    nodetable.mark(rig.node, peer, FAIL)

    rig.advance(55_000)

    assert asked(rig) == []


def test_a_node_whose_address_another_has_taken_is_as_good_as_failing() -> None:
    rig = Rig(peers=3, config=attrs.evolve(CALM, replica_repair_after_s=60))
    held(rig, (ME, N2))
    nodetable.mark(rig.node, rig.node.cluster.nodes[N2], NOADDR)

    rig.advance(62_000)

    assert len(asked(rig)) == 1


@pytest.mark.slow
def test_with_0_copies_are_counted_and_not_made() -> None:
    rig = Rig(peers=3, config=attrs.evolve(CALM, replica_repair_after_s=0))
    held(rig, (ME, N2))
    nodetable.mark(rig.node, rig.node.cluster.nodes[N2], FAIL)
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
    forget(rig, N3)

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
    assert 28 <= copy.delay <= 31, "without the retry period that the holder waits besides"
    assert copy.ctime + copy.delay * 1_000_000_000 == job.ctime + 100 * 1_000_000_000


def test_the_last_stamp_that_a_peer_can_send_moves_no_further() -> None:
    rig = Rig(peers=3, config=CALM)
    last = attrs.evolve(copy_of(holders=(ME, N2), delay=100, retry=10), ctime=(1 << 64) - 1)
    rig.hold(attrs.evolve(last, replicas=2))
    rig.advance(70_000)
    forget(rig, N2)

    rig.advance(SOON)

    ((_, copy),) = asked(rig)
    assert copy.ctime == (1 << 64) - 1, "it is still one that a message can carry"


def test_a_copy_is_not_queued_before_its_delay_is_over() -> None:
    rig = Rig(peers=3, config=CALM)
    begun = rig.now.mono
    rig.hold(attrs.evolve(copy_of(holders=(ME, N2), delay=100, retry=10), replicas=2))
    rig.advance(70_000)
    forget(rig, N2)

    while not (sent := asked(rig)):
        rig.advance(10)

    ((_, copy),) = sent
    assert copy.delay * 1000 >= 100_000 - rig.now.mono + begun


def test_nor_later_if_the_node_that_is_to_queue_it_makes_the_copy() -> None:
    rig = Rig(peers=3, config=CALM)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2, "DELAY", 100, "RETRY", 90)
    ((holder, copy),) = asked(rig)
    rig.message(holder, GotJob(copy.id))
    rig.advance(70_000)
    forget(rig, holder)

    rig.advance(SOON)

    ((_, copy),) = asked(rig)
    assert 28 <= copy.delay <= 30


def test_a_lease_is_no_delay() -> None:
    rig = Rig(peers=3, config=CALM)
    rig.hold(attrs.evolve(copy_of(holders=(ME, N2), delay=100, retry=90), replicas=2))
    rig.ask("ENQUEUE", JOB)
    rig.ask("GETJOB", "FROM", "q")
    forget(rig, N2)

    rig.advance(SOON)

    ((_, copy),) = asked(rig)
    assert copy.delay <= 1


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
    name = first_in_line((ME, N2), wanted=N2)
    held(rig, (ME, N2, N3), replicas=3, name=name)
    forget(rig, N3)

    rig.advance(repair.TAKE_OVER - 1000)
    assert asked(rig) == []
    assert under(rig) == 1

    rig.advance(repair.AGAIN + SOON)
    assert {to for to, _ in asked(rig)} == {N4}


@pytest.mark.parametrize("flag", [PFAIL, FAIL, NOADDR])
def test_a_failing_holder_is_not_in_the_order(flag: int) -> None:
    rig = Rig(peers=3, config=CALM)
    name = first_in_line((ME, N3), wanted=N3)
    held(rig, (ME, N2, N3), replicas=3, name=name)
    nodetable.mark(rig.node, rig.node.cluster.nodes[N3], flag)
    forget(rig, N2)

    rig.advance(SOON)

    assert [to for to, _ in asked(rig)] == [N4]


def test_the_other_holders_learn_of_the_new_one_and_need_not_confirm() -> None:
    rig = Rig(peers=3, config=CALM)
    held(rig, (ME, N2, N3), replicas=3, name=first_in_line((ME, N2), wanted=ME))
    forget(rig, N3)

    rig.advance(SOON)

    told = [(to, m.copies[0].holders, m.no_reply) for to, m in rig.sent() if isinstance(m, ReplJob)]
    assert told == [(N4, (ME, N2, N3, N4), False), (N2, (ME, N2, N3, N4), True)]


# Jobs whose creator is lost: it alone knew who had confirmed.


def test_the_other_holders_have_to_confirm_if_the_creator_is_lost() -> None:
    rig = Rig(peers=3, config=CALM)
    job = held(rig, (ME, N2, N3))
    forget(rig, N2)

    rig.advance(SOON)
    assert [to for to, _ in asked(rig)] == [N3]

    rig.message(N3, GotJob(JOB))
    assert rig.node.stats.copies_repaired == 0
    rig.advance(120_000)

    assert asked(rig) == []
    assert under(rig) == 0
    assert job.confirmed == (ME, N3)


def test_copies_that_are_made_are_counted_not_those_that_were_there() -> None:
    rig = Rig(peers=3, config=CALM)
    job = held(rig, (ME, N2, N3), replicas=3)
    forget(rig, N2)
    rig.advance(SOON)

    for to, _ in asked(rig):
        rig.message(to, GotJob(JOB))

    assert job.confirmed == (ME, N3, N4)
    assert rig.node.stats.copies_repaired == 1
    assert not rig.node.repair.listed


def test_the_first_in_line_asks_and_the_others_leave_it_to_that() -> None:
    rig = Rig(peers=3, config=CALM)
    name = first_in_line((ME, N3), wanted=N3)
    job = held(rig, (ME, N2, N3), replicas=3, name=name)
    forget(rig, N2)
    rig.advance(SOON)

    rig.message(N3, ReplJob((attrs.evolve(copy_of(job.id), holders=(ME, N2, N3, N4)),)))
    rig.advance(2 * repair.AGAIN)

    assert job.confirmed == (ME, N3, N4)
    assert asked(rig) == []


def test_a_new_holder_leaves_it_to_the_one_that_repairs() -> None:
    rig = Rig(peers=3, config=attrs.evolve(CALM, replica_repair_after_s=1))
    nodetable.mark(rig.node, rig.node.cluster.nodes[N2], FAIL)
    rig.advance(1000 + SOON)

    rig.message(N3, ReplJob((copy_of(JOB, holders=(N2, N3, ME)),)))

    assert rig.node.jobs[JOB].confirmed == (N3, ME)


@pytest.mark.parametrize("config", [CALM, attrs.evolve(CALM, replica_repair_after_s=1)])
def test_a_job_that_moves_after_its_creator_is_lost_brings_no_list_to_trust(config: Config) -> None:
    rig = Rig(peers=3, config=config)
    if config is CALM:
        forget(rig, N2)
    else:
        nodetable.mark(rig.node, rig.node.cluster.nodes[N2], FAIL)
        rig.advance(1000 + SOON)
    rig.message(N3, YourJobs((attrs.evolve(copy_of(JOB, holders=(N2, N3, N4)), replicas=2),)))
    rig.advance(2 * SOON)
    assert asked(rig) == []

    forget(rig, N3)
    rig.advance(SOON)
    assert [to for to, _ in asked(rig)] == [N4]

    rig.message(N4, GotJob(JOB))
    rig.advance(2 * repair.AGAIN)
    assert asked(rig) == []


def test_a_job_that_moves_between_its_only_holders_brings_a_list_to_trust() -> None:
    rig = Rig(peers=3, config=CALM)
    forget(rig, N2)

    rig.message(N3, YourJobs((copy_of(JOB, holders=(N2, N3)),)))

    assert rig.node.jobs[JOB].holders == (N3, ME)
    assert rig.node.jobs[JOB].confirmed is None


def test_a_creator_that_keeps_no_copy_waits_for_all_so_its_list_is_right() -> None:
    rig = Rig(peers=3, config=CALM)
    job = held(rig, (ME, N3))
    forget(rig, N2)

    rig.advance(60_000)

    assert asked(rig) == []
    assert job.confirmed is None


def test_with_0_the_creator_makes_what_sync_did_not_await_and_nobody_else() -> None:
    rig = Rig(peers=3, config=attrs.evolve(CALM, replica_repair_after_s=0))
    theirs = held(rig, (ME, N2), replicas=3)
    mine = rig.hold(
        attrs.evolve(
            copy_of(make_id(ME, 1, 86_400, at_least_once=True)), replicas=3, holders=(ME, N2)
        )
    )

    rig.advance(SOON)

    assert [copy.id for _, copy in asked(rig)] == [mine.id]
    assert len(theirs.holders) == 2


def test_the_journal_learns_of_the_new_holder_before_it_has_a_copy() -> None:
    rig = Rig(peers=3, config=attrs.evolve(CALM, appendonly=True))
    held(rig, (ME, N2))
    forget(rig, N2)

    rig.advance(SOON)

    ((target, _),) = asked(rig)
    records = [record for out in rig.outboxes for record in out.records]
    assert isinstance(records[-1], LoadJob)
    listed = records[-1].copy.holders
    assert tuple(dict.fromkeys(listed)) == (ME, N2, target)
    assert confirmed_in(listed) == (ME,)


@pytest.mark.parametrize("has_place", [False, True])
def test_a_node_that_keeps_no_extensions_is_sent_a_copy_without_the_count_of_snoozes(
    has_place: bool,
) -> None:
    rig = Rig(peers=3, config=CALM, ours=True)
    held(rig, (ME, N2))
    rig.message(N2, Postponed(JOB, 1, 0, snoozes=3, is_snooze=True))
    if not has_place:
        for name in (N3, N4):
            rig.node.cluster.nodes[name].capabilities &= ~EXTENDS
    forget(rig, N2)

    rig.advance(SOON)

    [found] = [each.copies[0] for _, each in rig.sent() if isinstance(each, ReplJob)]
    assert found.extensions == (Extensions(snoozes=3) if has_place else None)


def test_a_new_holder_is_told_that_a_nack_lets_the_job_wait() -> None:
    rig = Rig(peers=3, config=CALM, ours=True)
    job = held(rig, (ME, N2))
    rig.message(N2, Postponed(JOB, 60_000, 1, is_new=True))
    forget(rig, N2)

    rig.advance(SOON)

    [said] = [(to, each) for to, each in rig.sent() if isinstance(each, Postponed)]
    assert said[0] == job.holders[-1]
    assert 50_000 < said[1].wait <= 60_000
    assert not said[1].is_new
