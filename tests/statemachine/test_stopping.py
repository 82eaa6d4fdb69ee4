"""What a node makes of its journal when it was stopped in order before."""

import pytest

from disque_trio.statemachine.base import ACTIVE, DELIVERED, QUEUED, RECORDED, NodeId
from disque_trio.statemachine.events import Kind
from disque_trio.statemachine.job import ANNOUNCE_AHEAD, DESYNC
from disque_trio.statemachine.journaling import STARTED, STOPPED
from disque_trio.statemachine.messages import Queued, WillQueue, Working
from disque_trio.statemachine.recovery import LINKS_UP
from tests.rig import JOB, ME, N2, ONCE, Rig, copy_of
from tests.statemachine.test_recovery import CONFIG, recorded, started

MINE = b"D-aaaaaaaa-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
MINE_ONCE = b"D-aaaaaaaa-AAAAAAAAAAAAAAAAAAAAAAAA-05a0"


def test_after_a_stop_in_order_what_is_ours_alone_is_queued_at_once_and_silently() -> None:
    rig = started(
        recorded(copy_of(MINE, holders=(ME,))),
        recorded(copy_of(MINE_ONCE, retry=0, holders=(ME,)), flags=1 | RECORDED),
        STOPPED,
    )

    jobs = rig.node.jobs.values()

    assert [job.state for job in jobs] == [QUEUED, QUEUED]
    assert [job.deliveries for job in jobs] == [0, 0]
    assert rig.sent() == []


def test_after_a_stop_in_order_other_holders_are_asked_and_then_it_is_queued() -> None:
    rig = started(recorded(copy_of(JOB, holders=(ME, N2))), STOPPED)
    job = rig.node.jobs[JOB]

    rig.advance(LINKS_UP + 10)
    assert rig.sent() == [(N2, WillQueue(JOB))]
    assert job.state == ACTIVE
    rig.advance(ANNOUNCE_AHEAD)

    assert job.state == QUEUED
    assert job.deliveries == 0
    assert rig.sent() == []


@pytest.mark.parametrize(
    ("holders", "due", "spread"),
    [((ME, N2), LINKS_UP + ANNOUNCE_AHEAD, 0), ((ME,), 1000, DESYNC)],
)
def test_the_trace_of_a_restart_tells_when_a_job_is_due(
    holders: tuple[NodeId, ...], due: int, spread: int
) -> None:
    rig = Rig(peers=1, config=CONFIG)
    rig.node.trace = []

    rig.machine.load([recorded(copy_of(MINE, retry=1, holders=holders)), STOPPED], rig.now)
    rig.machine.loaded(rig.now)

    [event] = [each for each in rig.node.trace if each.kind is Kind.HOLD]
    assert abs(int(event.detail.partition(" due=")[2]) - due) <= spread


@pytest.mark.parametrize("answer", [Queued(JOB), Working(JOB)])
def test_a_job_that_another_holder_has_queued_or_given_out_meanwhile_waits(
    answer: Queued | Working,
) -> None:
    rig = started(recorded(copy_of(JOB, holders=(ME, N2))), STOPPED)
    rig.advance(LINKS_UP + 10)
    rig.message(N2, answer)
    rig.advance(10_000)

    assert rig.node.jobs[JOB].state == ACTIVE


def test_an_end_that_is_followed_by_anything_is_none() -> None:
    rig = started(recorded(copy_of(MINE, holders=(ME,))), STOPPED, STARTED)

    assert rig.node.jobs[MINE].state == ACTIVE


def test_an_at_most_once_job_that_came_from_elsewhere_is_queued_once() -> None:
    rig = started(recorded(copy_of(ONCE, retry=0, holders=(N2, ME)), flags=RECORDED), STOPPED)
    rig.advance(LINKS_UP + ANNOUNCE_AHEAD + 10)

    assert rig.node.jobs[ONCE].state == QUEUED


@pytest.mark.parametrize("holders", [(ME,), (N2, ME)])
def test_an_at_most_once_job_that_was_handed_out_is_not_queued_by_any_record(
    holders: tuple[NodeId, ...],
) -> None:
    copy = copy_of(MINE_ONCE, retry=0, holders=holders)
    rig = started(recorded(copy, flags=DELIVERED | RECORDED), STOPPED)
    rig.advance(10_000)

    assert rig.node.jobs[MINE_ONCE].state == ACTIVE
