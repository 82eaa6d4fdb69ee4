from collections.abc import Callable

import pytest

from disque_trio.statemachine import pressure
from disque_trio.statemachine.base import (
    ACTIVE,
    NULL_ARRAY,
    OK,
    PENDING,
    QUEUED,
    Failure,
    Status,
)
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job, make_id
from disque_trio.statemachine.memory import DUMMY_BYTES
from disque_trio.statemachine.messages import (
    Enqueue,
    GotJob,
    NeedJobs,
    Pause,
    ReplJob,
    SetAck,
    YourJobs,
)
from disque_trio.statemachine.pressure import MAX_EVICTIONS, OOM, QUEUES_PER_REVIEW, WANT, level
from tests.rig import JOB, ME, N2, N3, ONCE, Rig, copy_of

MB = 1_000_000


def set_level(rig: Rig, wanted: int, *, room: int = 0) -> None:
    """Let what is used now be just that much: 50, 80 or 97 % of the limit, and `room` bytes."""
    pressure.review(rig.node)
    used = pressure.used(rig.node) + room
    limit = used * 100 // (50, 80, 97)[wanted]
    rig.request("CONFIG", "SET", "maxmemory", limit)
    rig.replies()


def squeezed(wanted: int, peers: int = 0, config: Config | None = None) -> Rig:
    """A node with one large job, and as short of memory as that."""
    rig = Rig(peers=peers, config=config)
    rig.add("REPLICATE", 1, queue="large", body="b" * MB)
    set_level(rig, wanted)
    assert level(rig.node) == wanted
    return rig


# The levels.


@pytest.mark.parametrize(("percent", "expected"), [(74, 0), (76, 1), (94, 1), (96, 2), (150, 2)])
def test_the_level_is_that_of_the_reference(percent: int, expected: int) -> None:
    rig = Rig()
    rig.add(body="b" * MB)
    pressure.review(rig.node)

    rig.request("CONFIG", "SET", "maxmemory", pressure.used(rig.node) * 100 // percent)

    assert level(rig.node) == expected


def test_the_percentages_are_of_what_the_process_leaves() -> None:
    rig = Rig(config=Config(maxmemory=50 * MB))
    rig.node.facts.process_bytes = 40 * MB
    rig.add(body="b" * 7 * MB)

    rig.advance(pressure.REVIEW_EVERY)
    rig.request("PING")
    rig.replies()
    assert level(rig.node) == 0

    rig.add(body="b" * MB)
    assert level(rig.node) == 1


def test_with_less_than_the_process_takes_nothing_is_accepted() -> None:
    rig = Rig()
    rig.node.facts.process_bytes = 40 * MB

    rig.request("CONFIG", "SET", "maxmemory", 10 * MB)
    rig.replies()

    assert rig.ask("ADDJOB", "q", "b", 0) == OOM


def test_what_clients_are_owed_counts() -> None:
    rig = Rig(config=Config(maxmemory=100 * MB))
    rig.add()
    rig.node.facts.traffic.unsent = 96 * MB

    rig.advance(pressure.REVIEW_EVERY)
    rig.request("PING")

    assert level(rig.node) == WANT


# Beyond 75 %.


def test_under_pressure_new_jobs_go_to_others() -> None:
    rig = squeezed(1, peers=2)

    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)

    (first, message), (second, _) = rig.sent()
    assert {first, second} == {N2, N3}
    assert isinstance(message, ReplJob)
    assert ME not in message.copies[0].holders
    job_id = message.copies[0].id
    rig.message(N2, GotJob(job_id))
    rig.message(N3, GotJob(job_id))
    assert rig.reply() == Status(job_id)
    assert job_id not in rig.node.jobs
    assert any(isinstance(message, Enqueue) for _, message in rig.sent())


def test_under_pressure_a_job_that_others_do_not_take_stays_after_all() -> None:
    rig = squeezed(1, peers=2)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 1)
    assert rig.replies() == []
    ((asked, _),) = rig.sent()

    rig.advance(60)

    (told, message), *_ = rig.sent()
    assert told == asked
    assert isinstance(message, ReplJob)
    assert message.copies[0].holders == (asked, ME)
    reply = rig.reply()
    assert isinstance(reply, Status)
    job = rig.node.jobs[reply.text]
    assert job.state == QUEUED
    assert ME in job.holders
    assert len(job.holders) == 2


def test_under_pressure_its_own_copy_counts_after_a_while() -> None:
    rig = squeezed(1, peers=2)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)
    rig.advance(60)
    assert rig.replies() == []
    job_id = next(job.id for job in rig.node.jobs.values() if job.client is rig.client)

    rig.message(N2, GotJob(job_id))

    assert rig.reply() == Status(job_id)
    assert rig.node.jobs[job_id].state == QUEUED


def test_a_leaving_node_keeps_nothing_however_long_it_takes() -> None:
    rig = Rig(peers=2)
    rig.request("CLUSTER", "LEAVING", "yes")
    rig.replies()

    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 1)
    rig.advance(60)

    assert rig.replies() == []


def test_under_pressure_a_job_stays_here_where_too_few_others_are_reachable() -> None:
    rig = squeezed(1, peers=1)

    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)

    ((receiver, message),) = rig.sent()
    assert receiver == N2
    assert isinstance(message, ReplJob)
    assert ME in message.copies[0].holders


def test_under_pressure_a_node_alone_goes_on() -> None:
    rig = squeezed(1)

    assert rig.add().holders == (ME,)


def test_under_pressure_a_job_of_which_nobody_will_hear_stays_here_too() -> None:
    rig = squeezed(1, peers=2)

    job = rig.add("ASYNC", "REPLICATE", 2)

    assert ME in job.holders


def test_under_pressure_no_new_copies_are_taken() -> None:
    rig = Rig(peers=1)
    known = rig.hold(copy_of())
    set_level(rig, 1)
    rig.sent()

    rig.message(N2, ReplJob((copy_of(ONCE),), no_reply=False))
    rig.message(N2, ReplJob((copy_of(known.id),), no_reply=False))

    assert ONCE not in rig.node.jobs
    assert rig.sent() == [(N2, GotJob(known.id))]


@pytest.mark.parametrize(("wanted", "limit"), [(1, 10_000), (2, 2000)])
def test_under_pressure_idle_queues_go_sooner(wanted: int, limit: int) -> None:
    rig = squeezed(1)
    rig.request("GETJOB", "NOHANG", "FROM", "idle")
    set_level(rig, wanted)

    rig.advance(limit - 200)
    assert b"idle" in rig.node.queues

    rig.advance(500)
    assert b"idle" not in rig.node.queues
    assert b"large" in rig.node.queues


def test_many_idle_queues_go_a_few_at_a_time() -> None:
    rig = squeezed(1)
    rig.node.facts.traffic.unsent = 50 * MB
    names = [f"idle{n}" for n in range(2 * QUEUES_PER_REVIEW)]
    rig.request("GETJOB", "NOHANG", "FROM", *names)
    set_level(rig, 1)

    rig.advance(10_000 + 150)
    assert QUEUES_PER_REVIEW / 2 < len(rig.node.queues) <= QUEUES_PER_REVIEW + 1

    rig.advance(500)
    assert list(rig.node.queues) == [b"large"]


def test_idle_queues_of_an_earlier_round_may_be_gone() -> None:
    rig = squeezed(1)
    rig.request("GETJOB", "NOHANG", "FROM", *[f"idle{n}" for n in range(2 * QUEUES_PER_REVIEW)])
    set_level(rig, 1)
    rig.advance(150)

    rig.request("DEBUG", "FLUSHALL")
    rig.advance(300)

    assert not rig.node.queues
    assert level(rig.node) == 0


def test_once_there_is_room_again_the_node_rests() -> None:
    rig = squeezed(1)

    rig.request("CONFIG", "SET", "maxmemory", "1gb")
    rig.advance(2 * pressure.REVIEW_EVERY)

    assert not rig.node.memory.slot


# Beyond 95 %.


@pytest.mark.parametrize("command", ["ADDJOB q body 0", f"ENQUEUE {JOB.decode()}", "NACK"])
def test_in_want_no_job_is_taken_or_queued(command: str) -> None:
    rig = squeezed(2)

    assert rig.ask(*command.split()) == OOM


@pytest.mark.parametrize(
    "command",
    ["PING", "GETJOB NOHANG FROM large", "QLEN q", f"ACKJOB {JOB.decode()}", "INFO jobs"],
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
    job = evictable_at_last(rig, make)
    rig.node.trace = []

    assert rig.ask("ENQUEUE") == 0

    assert job.id not in rig.node.jobs
    assert rig.node.trace[0].cause is Cause.EVICTED


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


def test_in_want_no_queue_is_created_by_those_who_wait() -> None:
    rig = squeezed(2)

    assert rig.ask("GETJOB", "FROM", "unknown") == OOM
    assert rig.ask("GETJOB", "NOHANG", "FROM", "unknown") == OOM
    assert rig.ask("PAUSE", "unknown", "in") == OOM
    assert b"unknown" not in rig.node.queues


def test_in_want_jobs_are_handed_out_whatever_other_queues_are_named() -> None:
    rig = squeezed(2)

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


def test_one_dummy_ack_is_always_kept() -> None:
    rig = Rig(peers=1, config=Config(maxmemory=3000))

    rig.request("ACKJOB", JOB)

    assert list(rig.node.jobs) == [JOB]
    assert PENDING not in rig.replies()
