"""Nearly no memory is left: what is still done, and what is evicted."""

from collections import OrderedDict
from collections.abc import Callable

import pytest

from disque_trio.statemachine import pressure
from disque_trio.statemachine.base import ACTIVE, NULL_ARRAY, OK, PENDING, Failure, Status
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job, make_id
from disque_trio.statemachine.knobs import Knobs
from disque_trio.statemachine.memory import DUMMY_BYTES
from disque_trio.statemachine.messages import NeedJobs, Pause, SetAck, YourJobs
from disque_trio.statemachine.pressure import MAX_EVICTIONS, OOM, WANT, level
from tests.rig import JOB, N2, ONCE, Rig, copy_of
from tests.statemachine.squeezing import set_level, squeezed

# Beyond 95 %.


@pytest.mark.parametrize("command", ["ADDJOB q body 0", f"ENQUEUE {JOB.decode()}", "NACK"])
def test_in_want_no_job_is_taken_or_queued(command: str) -> None:
    rig = squeezed(2)

    assert rig.ask(*command.split()) == OOM


@pytest.mark.parametrize(
    "command", ["PING", "GETJOB NOHANG FROM large", "QLEN q", f"ACKJOB {JOB.decode()}", "INFO jobs"]
)
def test_in_want_everything_else_is_done(command: str) -> None:
    rig = squeezed(2)

    assert not isinstance(rig.ask(*command.split()), Failure)


def test_in_want_acknowledged_jobs_go_before_new_ones_are_refused() -> None:
    rig = Rig(peers=1)
    acked = rig.hold(copy_of())
    rig.request("ACKJOB", acked.id)
    set_level(rig, 2, room=-300)
    rig.node.trace = []

    assert acked.id not in rig.node.jobs
    assert rig.node.memory.evicted == 1


def evictable_at_last(rig: Rig, make: Callable[[Rig], Job]) -> Job:
    """Fill the node up, so that only what is made makes it too full."""
    job = make(rig)
    pressure.review(rig.node)
    memory = rig.node.memory
    assert memory.held
    rig.node.facts.traffic.unsent += memory.hard - memory.held + 1
    pressure.review(rig.node)
    assert level(rig.node) == WANT
    return job


def delivered_once(rig: Rig) -> Job:
    job = rig.add("RETRY", 0, "REPLICATE", 1)
    rig.request("GETJOB", "FROM", "q")
    rig.replies()
    return job


def waiting_once(rig: Rig) -> Job:
    return rig.add("RETRY", 0, "REPLICATE", 1)


def delivered_often(rig: Rig) -> Job:
    job = rig.add("REPLICATE", 1)
    rig.request("GETJOB", "FROM", "q")
    rig.replies()
    assert job.state == ACTIVE
    return job


def acknowledged(rig: Rig) -> Job:
    job = rig.hold(copy_of())
    rig.request("ACKJOB", job.id)
    rig.replies()
    return job


def dummy(rig: Rig) -> Job:
    rig.request("ACKJOB", JOB)
    rig.replies()
    return rig.node.jobs[JOB]


@pytest.mark.parametrize("make", [delivered_once, acknowledged, dummy])
def test_in_want_is_evicted_what_the_guarantee_allows(make: Callable[[Rig], Job]) -> None:
    rig = Rig(peers=1)
    rig.node.trace = []
    job = evictable_at_last(rig, make)

    assert rig.ask("ENQUEUE") == 0

    assert job.id not in rig.node.jobs
    assert rig.node.trace[-1].cause is Cause.EVICTED


@pytest.mark.parametrize("make", [waiting_once, delivered_often])
def test_in_want_is_not_evicted_what_may_still_be_delivered(make: Callable[[Rig], Job]) -> None:
    rig = Rig(peers=1)
    job = evictable_at_last(rig, make)

    assert rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 1) == OOM

    assert job.id in rig.node.jobs


@pytest.mark.parametrize("make", [delivered_once, acknowledged, dummy])
def test_without_eviction_nothing_is_evicted(make: Callable[[Rig], Job]) -> None:
    rig = Rig(peers=1, config=Config(maxmemory_policy="noeviction"))
    job = evictable_at_last(rig, make)

    assert rig.ask("ADDJOB", "q", "body", 0) == OOM

    assert job.id in rig.node.jobs


def test_dummy_acks_go_first_and_the_oldest_before_the_others() -> None:
    rig = Rig(peers=1)
    acked = rig.hold(copy_of())
    rig.request("ACKJOB", acked.id)
    ids = [make_id(N2, number, 86_400, at_least_once=True) for number in (1, 2, 3)]
    rig.request("ACKJOB", *ids)
    rig.replies()
    evictable_at_last(rig, lambda rig: rig.node.jobs[ids[0]])

    rig.request("PING")

    assert list(rig.node.memory.dummies) == ids[1:]
    assert acked.id in rig.node.jobs


def test_an_attempt_has_an_end() -> None:
    rig = Rig(peers=1)
    count = 2 * MAX_EVICTIONS
    rig.request("ACKJOB", *[make_id(N2, n, 86_400, at_least_once=True) for n in range(count)])
    rig.request("CONFIG", "SET", "maxmemory-policy", "noeviction")
    rig.request("CONFIG", "SET", "maxmemory", 100)
    rig.request("CONFIG", "SET", "maxmemory-policy", "acks")
    rig.replies()
    assert len(rig.node.jobs) == count

    assert rig.ask("ADDJOB", "q", "body", 0) == OOM
    assert len(rig.node.jobs) == count - MAX_EVICTIONS


def test_a_lower_limit_is_seen_to_at_once() -> None:
    rig = Rig(peers=1)
    acknowledged(rig)

    assert rig.ask("CONFIG", "SET", "maxmemory", 100) == OK

    assert not rig.node.jobs


# What names alone would cost.


def test_short_of_memory_a_few_queues_may_be_waited_for() -> None:
    """The jobs that fill the node may be queued at another: a client here asks for them."""
    rig = squeezed(2)

    rig.request("GETJOB", "FROM", "unknown")

    assert b"unknown" in rig.node.queues
    assert not rig.replies()


def test_short_of_memory_a_wait_creates_no_queue_beyond_those() -> None:
    rig = squeezed(2)
    rig.node.knobs = Knobs(queues_in_want=1)

    assert rig.ask("GETJOB", "FROM", "unknown") == OOM
    assert rig.ask("GETJOB", "NOHANG", "FROM", "unknown") == OOM
    assert rig.ask("PAUSE", "unknown", "in") == OOM
    assert b"unknown" not in rig.node.queues


def test_in_want_jobs_are_handed_out_whatever_other_queues_are_named() -> None:
    rig = squeezed(2)
    rig.node.knobs = Knobs(queues_in_want=1)

    reply = rig.ask("GETJOB", "FROM", "unknown", "large")

    assert isinstance(reply, list)
    assert b"unknown" not in rig.node.queues


def test_in_want_clients_wait_for_known_queues() -> None:
    rig = squeezed(2)
    rig.request("GETJOB", "FROM", "large")
    rig.replies()

    rig.request("GETJOB", "TIMEOUT", 100, "FROM", "large")
    rig.advance(200)

    assert rig.replies() == [NULL_ARRAY]


def test_in_want_known_queues_can_be_paused() -> None:
    rig = squeezed(2)

    assert rig.ask("PAUSE", "large", "in") == Status(b"in")
    assert rig.ask("PAUSE", "unknown", "state") == Status(b"none")


def test_in_want_no_queue_is_created_by_a_pause_elsewhere() -> None:
    rig = squeezed(2, peers=1)

    rig.message(N2, Pause(b"unknown", 1))
    rig.message(N2, Pause(b"large", 1))

    assert b"unknown" not in rig.node.queues
    assert rig.queue(b"large").paused == 1


def test_jobs_that_were_asked_for_are_taken_whatever_it_costs() -> None:
    rig = squeezed(2, peers=1)

    rig.message(N2, YourJobs((copy_of(ONCE, retry=0),)))

    assert ONCE in rig.node.jobs


def test_jobs_are_given_away_as_ever() -> None:
    rig = squeezed(2, peers=1)
    rig.sent()

    rig.message(N2, NeedJobs(b"large", 1))

    assert isinstance(rig.sent()[0][1], YourJobs)


# Dummy acks.


def test_dummy_acks_fill_a_tenth_of_the_memory_at_most() -> None:
    rig = Rig(peers=1, config=Config(maxmemory=100_000))
    ids = [make_id(N2, number, 86_400, at_least_once=True) for number in range(40)]

    for job_id in ids:
        rig.request("ACKJOB", job_id)

    most = 10_000 // DUMMY_BYTES
    assert list(rig.node.memory.dummies) == ids[-most:]
    assert rig.sent()[0] == (N2, SetAck(ids[0], 0))


def test_the_oldest_is_found_without_a_step_for_each_that_has_gone() -> None:
    memory = Rig().node.memory

    assert isinstance(memory.dummies, OrderedDict)
    assert isinstance(memory.evictable, OrderedDict)


def test_one_dummy_ack_is_always_kept() -> None:
    rig = Rig(peers=1, config=Config(maxmemory=3000))

    rig.request("ACKJOB", JOB)

    assert list(rig.node.jobs) == [JOB]
    assert PENDING not in rig.replies()
