"""NACK with a delay, at the node of the NACK (docs/bus.md, "NACK with a delay")."""

import attrs
import pytest

from disque_trio.statemachine.base import ACTIVE, LONGEST_PERIOD_S, QUEUED
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.job import digest_of
from disque_trio.statemachine.messages import Postponed, Queued, SetAck, WillQueue
from disque_trio.statemachine.postponing import rest
from tests.rig import JOB, ME, N2, N3, copy_of
from tests.statemachine.giving import GRAIN, cluster, counts, delivered

# The node of the NACK.


def test_the_holders_hear_how_long_it_waits() -> None:
    rig = cluster()
    job = delivered(rig)

    rig.ask("NACK", job.id, "DELAY", 5)

    said = Postponed(JOB, 5000, 1, is_new=True)
    assert rig.sent() == [(N2, said), (N3, said)]
    assert counts(rig) == (1, 0)


@pytest.mark.parametrize("retry", [1, 60])
def test_it_is_queued_when_the_wait_is_over_and_counted_once(retry: int) -> None:
    rig = cluster()
    job = delivered(rig, retry)
    rig.ask("NACK", job.id, "DELAY", 5)
    rig.sent()
    before = job.deliveries

    rig.advance(4_500 - GRAIN)
    assert rig.sent() == []
    rig.advance(2 * GRAIN)
    assert rig.sent() == [(N2, WillQueue(JOB)), (N3, WillQueue(JOB))]
    rig.advance(499 - 2 * GRAIN)
    assert job.state == ACTIVE

    rig.advance(2 * GRAIN)
    assert (job.state, job.nacks, job.deliveries) == (QUEUED, 1, before)
    assert rig.sent() == [(N2, Queued(JOB)), (N3, Queued(JOB))]
    assert counts(rig) == (0, 0)


def test_a_job_without_copies_tells_nobody() -> None:
    rig = cluster()
    job = rig.add("REPLICATE", 1)
    rig.ask("GETJOB", "FROM", "q")

    rig.ask("NACK", job.id, "DELAY", 5)
    assert rig.sent() == []

    rig.advance(5000 + GRAIN)
    assert job.state == QUEUED


def test_show_tells_of_the_wait() -> None:
    rig = cluster()
    job = delivered(rig)
    rig.ask("NACK", job.id, "DELAY", 5)
    rig.advance(1000)

    shown = rig.ask("SHOW", job.id)

    assert isinstance(shown, list)
    facts = dict(zip(shown[::2], shown[1::2], strict=True))
    assert (facts[b"state"], facts[b"delay"]) == (b"active", 0)
    assert (facts[b"next-requeue-within"], facts[b"backing-off"]) == (4000, 4000)


def test_a_job_that_is_new_can_be_postponed_too() -> None:
    rig = cluster()
    rig.request("ADDJOB", "q", "b", 0, "REPLICATE", 2, "DELAY", 10, "ASYNC")
    [job] = rig.node.jobs.values()
    rig.sent()

    rig.ask("NACK", job.id, "DELAY", 30)
    rig.advance(29_000)
    assert job.state == ACTIVE
    assert counts(rig) == (1, 0)

    rig.advance(1000 + GRAIN)
    assert (job.state, job.nacks, job.deliveries) == (QUEUED, 1, 0)


def test_a_client_may_end_the_wait() -> None:
    rig = cluster()
    job = delivered(rig)
    rig.ask("NACK", job.id, "DELAY", 30)
    rig.sent()

    assert rig.ask("ENQUEUE", job.id) == 1

    assert job.state == QUEUED
    assert rig.sent()[0] == (N2, Queued(JOB, redelivery=True, told=True))
    assert counts(rig) == (0, 0)


def test_a_worker_that_goes_on_ends_the_wait() -> None:
    rig = cluster()
    job = delivered(rig)
    rig.ask("NACK", job.id, "DELAY", 30)

    assert rig.ask("WORKING", job.id) == 60

    assert counts(rig) == (0, 1)
    assert rest(rig.node, job) == 0


def test_an_acknowledgement_ends_it() -> None:
    rig = cluster()
    job = delivered(rig)
    rig.ask("NACK", job.id, "DELAY", 30)

    assert rig.ask("ACKJOB", job.id) == 1

    assert counts(rig) == (0, 0)
    assert rig.sent()[-1] == (N3, SetAck(JOB, 3, digest_of((N2, N3, ME))))


def test_a_paused_queue_takes_it_a_period_later() -> None:
    rig = cluster()
    job = delivered(rig, retry=10)
    rig.ask("NACK", job.id, "DELAY", 5)
    rig.ask("PAUSE", "q", "in")
    rig.advance(5000 + GRAIN)
    assert job.state == ACTIVE
    assert counts(rig) == (0, 0)

    rig.ask("PAUSE", "q", "none")
    rig.advance(10_300)
    assert job.state == QUEUED


def test_a_tied_job_is_tied_no_more() -> None:
    rig = cluster()
    job = rig.add("REPLICATE", 1)
    worker = rig.connect()
    rig.ask("GETJOB", "TIED", "FROM", "q", client=worker)

    rig.ask("NACK", job.id, "DELAY", 60, client=worker)
    rig.disconnect(worker)
    rig.advance(10_000)

    assert job.state == ACTIVE
    assert rest(rig.node, job) == 50_000


def test_it_is_traced() -> None:
    rig = cluster()
    rig.node.trace = []
    job = delivered(rig)
    rig.ask("NACK", job.id, "DELAY", 5)
    rig.message(N2, Postponed(JOB, 7000, 2, is_new=True))

    found = [event for event in rig.node.trace if event.kind is Kind.POSTPONE]

    assert [(event.cause, event.detail) for event in found] == [
        (Cause.NACK, "wait=5000"),
        (Cause.POSTPONED, "wait=7000"),
    ]


def test_qstat_counts_it_as_delayed() -> None:
    rig = cluster()
    job = delivered(rig)
    rig.ask("NACK", job.id, "DELAY", 5)

    reply = rig.ask("QSTAT", "q")

    assert isinstance(reply, list)
    assert reply[20:24] == [b"delayed", 1, b"leased", 0]


def test_a_damaged_back_off_waits_for_ten_years_at_most() -> None:
    rig = cluster()
    damaged = Extensions(backoff=1 << 63, max_backoff=(1 << 64) - 1)
    copy = copy_of(holders=(N2, N3, ME), retry=60)
    rig.hold(attrs.evolve(copy, etime=0xFFFF_FFFF, extensions=damaged))

    rig.ask("NACK", JOB)

    waits = [message.wait for _, message in rig.sent() if isinstance(message, Postponed)]
    assert waits == [1000 * LONGEST_PERIOD_S] * 2
