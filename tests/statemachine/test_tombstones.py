"""A job that is over stays over, whatever is still on its way."""

from collections.abc import Callable

import pytest

from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.statemachine.messages import (
    DelJob,
    GotAck,
    GotJob,
    Message,
    Queued,
    ReplJob,
    SetAck,
    WillQueue,
    Working,
    YourJobs,
)
from disque_trio.statemachine.tombstones import Tombstones
from tests.rig import CALM, JOB, ME, N2, N3, ONCE, Rig, copy_of

End = Callable[[Rig], None]


def by_collection(rig: Rig) -> None:
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("ACKJOB", JOB)
    rig.message(N2, GotAck(JOB, known=True))


def by_the_collection_of_another(rig: Rig) -> None:
    rig.hold(copy_of(holders=(N2, ME)))
    rig.message(N2, SetAck(JOB, 2))
    rig.message(N2, DelJob(JOB))


def by_fastack(rig: Rig) -> None:
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("FASTACK", JOB)


def by_fastack_of_an_unknown_job(rig: Rig) -> None:
    rig.ask("FASTACK", JOB)


def by_fastack_elsewhere(rig: Rig) -> None:
    rig.message(N2, DelJob(JOB))


def by_an_ack_of_another_node(rig: Rig) -> None:
    rig.message(N3, SetAck(JOB, 2))


def by_a_dummy_ack_that_is_dismissed(rig: Rig) -> None:
    rig.ask("ACKJOB", JOB)
    rig.message(N3, GotAck(JOB, known=True))


def by_an_ack_on_a_node_that_keeps_no_copy(rig: Rig) -> None:
    producer = rig.connect()
    rig.ask("CLUSTER", "LEAVING", "yes")
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2, client=producer)
    job = next(iter(rig.node.jobs.values()))
    rig.ask("ACKJOB", job.id)
    rig.ask("CLUSTER", "LEAVING", "no")
    assert job.id in rig.node.tombstones


ENDS = (
    by_collection,
    by_the_collection_of_another,
    by_fastack,
    by_fastack_of_an_unknown_job,
    by_fastack_elsewhere,
    by_an_ack_of_another_node,
    by_a_dummy_ack_that_is_dismissed,
)
LATE = (
    ReplJob((copy_of(),)),
    ReplJob((copy_of(),), no_reply=True),
    YourJobs((copy_of(),)),
    WillQueue(JOB),
    Queued(JOB, redelivery=True),
    Working(JOB),
)


@pytest.mark.parametrize("late", LATE, ids=lambda late: type(late).__name__)
@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_a_late_copy_is_not_taken_and_its_sender_learns_why(end: End, late: Message) -> None:
    rig = Rig(peers=2, config=CALM)
    end(rig)
    assert rig.node.jobs == {}
    rig.sent()

    rig.message(N2, late)

    assert rig.node.jobs == {}
    assert rig.sent() == [(N2, SetAck(JOB, 0))]


def test_a_leaving_node_remembers_what_was_acknowledged_while_it_waited_for_copies() -> None:
    by_an_ack_on_a_node_that_keeps_no_copy(Rig(peers=2, config=CALM))


def test_a_sender_that_has_it_queued_lets_it_be_collected() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("ENQUEUE", JOB)
    rig.sent()

    rig.message(N2, SetAck(JOB, 0))

    assert rig.sent() == [(N2, GotAck(JOB, known=True)), (N2, SetAck(JOB, 2))]
    rig.message(N2, GotAck(JOB, known=False))
    assert rig.node.jobs == {}


def test_jobs_without_copies_elsewhere_leave_no_tombstone() -> None:
    rig = Rig(peers=1, config=CALM)

    for end in ("ACKJOB", "FASTACK"):
        assert rig.ask(end, rig.add("REPLICATE", 1).id) == 1

    assert len(rig.node.tombstones) == 0


def test_other_jobs_of_the_same_transfer_are_taken() -> None:
    rig = Rig(peers=1, config=CALM)
    by_fastack_elsewhere(rig)

    rig.message(N2, YourJobs((copy_of(), copy_of(ONCE, retry=0))))

    assert list(rig.node.jobs) == [ONCE]
    assert rig.ask("QLEN", "q") == 1


def test_deljob_of_a_client_concerns_one_copy_so_another_may_come() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.hold(copy_of())
    rig.ask("DELJOB", JOB)

    rig.message(N2, ReplJob((copy_of(),)))

    assert JOB in rig.node.jobs
    assert rig.sent() == [(N2, GotJob(JOB))]


def test_a_flushed_node_remembers_nothing() -> None:
    rig = Rig(peers=1, config=CALM)
    by_fastack_elsewhere(rig)

    rig.ask("DEBUG", "FLUSHALL")
    rig.hold(copy_of())

    assert JOB in rig.node.jobs


def test_what_is_remembered_has_its_bound_and_the_latest_stay() -> None:
    tombstones = Tombstones()
    ids = [b"D-%08d" % number for number in range(3 * DEFAULTS.tombstones)]

    for job_id in ids:
        tombstones.bury(job_id)
        assert len(tombstones) < 2 * DEFAULTS.tombstones

    assert all(job_id in tombstones for job_id in ids[-DEFAULTS.tombstones :])
    assert ids[0] not in tombstones


def test_the_ids_of_both_generations_are_listed() -> None:
    tombstones = Tombstones(generation=2)
    for id in (b"c", b"a", b"b"):
        tombstones.bury(id)

    assert tombstones.ids() == [b"a", b"b", b"c"]
