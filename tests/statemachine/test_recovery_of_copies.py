"""What a restart knows of copies that other holders have not confirmed."""

import attrs
import pytest

from disque_trio.statemachine.base import NodeId
from disque_trio.statemachine.job import Job, make_id
from disque_trio.statemachine.journaling import confirmed_in
from disque_trio.statemachine.messages import GotJob
from disque_trio.statemachine.records import LoadJob, Record
from tests.rig import CALM, ME, N2, N3, N4, Rig
from tests.statemachine.repairing import SOON, asked, under
from tests.statemachine.replicating import waiting_job
from tests.statemachine.restoring import restarted, was_queued

_RECORDED = attrs.evolve(CALM, appendonly=True)


def _answered_early(rig: Rig) -> Job:
    """A job with three holders, one of which has not confirmed its copy."""
    job = waiting_job(rig, "REPLICATE", 3, "SYNC", 2)
    rig.message(N2, GotJob(job.id))
    rig.replies()
    assert set(job.holders) == {ME, N2, N3}
    assert set(job.confirmed or ()) == {ME, N2}
    return job


def _records(rig: Rig) -> list[Record]:
    return [record for out in rig.outboxes for record in out.records]


def _last(rig: Rig) -> LoadJob:
    record = _records(rig)[-1]
    assert isinstance(record, LoadJob)
    return record


def test_a_holder_that_has_not_confirmed_its_copy_is_no_copy_after_a_restart() -> None:
    before = Rig(peers=2, config=_RECORDED)
    job = _answered_early(before)

    rig = restarted(*_records(before), peers=2)

    restored = rig.node.jobs[job.id]
    assert set(restored.holders) == {ME, N2, N3}
    assert set(restored.confirmed or ()) == {ME, N2}
    rig.advance(SOON)
    assert [to for to, _ in asked(rig)] == [N3]
    rig.message(N3, GotJob(job.id))
    assert restored.confirmed is None
    assert under(rig) == 0


def test_the_one_that_may_have_the_copy_is_asked_before_others() -> None:
    """Another one would be given a copy too many."""
    before = Rig(peers=2, config=_RECORDED)
    _answered_early(before)

    rig = restarted(*_records(before), peers=3)
    rig.advance(SOON)

    assert [to for to, _ in asked(rig)] == [N3]


def test_a_restart_before_it_has_answered_changes_nothing() -> None:
    before = Rig(peers=2, config=_RECORDED)
    _answered_early(before)
    again = restarted(*_records(before), peers=2)
    again.advance(SOON)

    rig = restarted(_last(again), peers=2)

    rig.advance(SOON)
    assert [to for to, _ in asked(rig)] == [N3]


def test_a_record_lists_a_confirmed_holder_twice_before_those_that_have_not_confirmed() -> None:
    rig = Rig(peers=2, config=_RECORDED)
    _answered_early(rig)

    assert _last(rig).copy.holders == (ME, N2, ME, N3)


def test_a_record_of_a_job_with_all_its_copies_lists_each_holder_once() -> None:
    rig = Rig(peers=2, config=_RECORDED)
    job = waiting_job(rig, "REPLICATE", 3)
    rig.message(N2, GotJob(job.id))
    rig.message(N3, GotJob(job.id))

    assert _last(rig).copy.holders == job.holders
    assert len(job.holders) == 3


def test_an_acknowledged_job_lists_each_holder_once() -> None:
    """There it is the acknowledgement that they confirm."""
    rig = Rig(peers=2, config=_RECORDED)
    job = _answered_early(rig)
    rig.ask("ACKJOB", job.id)
    assert job.confirmed is not None

    assert _last(rig).copy.holders == job.holders


def test_by_a_record_of_an_earlier_version_all_holders_have_their_copies() -> None:
    rig = restarted(was_queued(1, holders=(ME, N2, N3)), peers=3)
    rig.advance(SOON)

    [job] = rig.node.jobs.values()
    assert job.confirmed is None
    assert asked(rig) == []


def test_without_the_others_all_holders_that_are_left_have_confirmed() -> None:
    """The node table does not have N4 any more."""
    rig = restarted(was_queued(1, holders=(ME, N2, ME, N4)), peers=2)

    [job] = rig.node.jobs.values()
    assert set(job.holders) == {ME, N2}
    assert job.confirmed is None


def test_an_id_that_is_repeated_ends_the_list_of_those_that_have_confirmed() -> None:
    assert confirmed_in((ME, N2, ME, N3)) == (ME, N2)
    assert confirmed_in((ME, ME, N3)) == (ME,)
    assert confirmed_in((ME, N2)) is None
    assert confirmed_in(()) is None


@pytest.mark.parametrize(("creator", "asks"), [(N4, [N3]), (N3, [])])
def test_if_its_creator_has_been_forgotten_nobody_else_counts_before_confirming(
    creator: NodeId, asks: list[NodeId]
) -> None:
    record = was_queued(1, holders=(ME, N4, N3))
    job_id = make_id(creator, 1, 86_400, at_least_once=True)
    copy = attrs.evolve(record.copy, id=job_id, replicas=2)

    rig = restarted(LoadJob(copy), peers=2)
    rig.advance(SOON)

    assert [to for to, _ in asked(rig)] == asks
