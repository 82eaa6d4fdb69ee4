import attrs
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine import copies, membership
from disque_trio.statemachine.base import (
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    DELIVERED,
    LEASED,
    QUEUED,
    WAIT_REPL,
)
from disque_trio.statemachine.messages import JobCopy, ReplJob
from tests.rig import JOB, ME, N2, N3, ONCE, UNKNOWN, WALL, Rig, copy_of

SPREAD = range(-250, 250)


def test_a_copy_says_what_the_job_is_and_how_long_it_has_left() -> None:
    rig = Rig(peers=1)
    rig.request("ADDJOB", "q", "hi", 0, "REPLICATE", 2, "RETRY", 7, "TTL", 300, "DELAY", 3)
    job = next(iter(rig.node.jobs.values()))

    assert copies.snapshot(rig.node, job) == JobCopy(
        id=job.id,
        state=WAIT_REPL,
        gc_attempt=0,
        flags=0,
        replicas=2,
        etime=301,
        ctime=rig.now.wall * 1_000_000,
        delay=3,
        retry=7,
        nacks=0,
        deliveries=0,
        queue=b"q",
        body=b"hi",
        holders=(ME, N2),
    )


def test_a_copy_never_says_that_the_job_was_delivered_here() -> None:
    rig = Rig()
    job = rig.add()
    rig.request("GETJOB", "FROM", "q")
    assert job.flags == BCAST_QUEUED | BCAST_WILLQUEUE | DELIVERED | LEASED

    assert copies.snapshot(rig.node, job).flags == BCAST_QUEUED | BCAST_WILLQUEUE


def test_what_is_left_is_whole_seconds_and_one_more() -> None:
    rig = Rig()
    job = rig.add("TTL", 300)

    for passed, left in [(0, 301), (500, 300), (500, 300), (299_000, 1), (1000, 1)]:
        rig.now.mono += passed
        rig.machine.observe(b"time", 0, rig.now)
        assert copies.snapshot(rig.node, job).etime == left


def test_the_longest_life_still_fits_the_field() -> None:
    rig = Rig()
    job = rig.add()
    job.expires = 1 << 60

    assert copies.snapshot(rig.node, job).etime == 0xFFFF_FFFF


def test_an_adopted_job_waits_for_its_delay_and_one_retry() -> None:
    rig = Rig(peers=2)

    job = rig.hold(copy_of(delay=10, retry=60, ttl=300, holders=(N2, ME, N3)))

    assert job.state == ACTIVE
    assert job.flags == BCAST_QUEUED | BCAST_WILLQUEUE
    assert job.requeue_at - rig.now.mono - 70_000 in SPREAD
    assert job.expires == rig.now.mono + 301_000
    assert (job.delay, job.retry, job.replicas) == (10_000, 60_000, 2)
    assert (job.queue, job.body, job.ctime) == (b"q", b"body", WALL * 1_000_000)
    assert job.holders == (N2, ME, N3)


def test_what_a_record_says_of_the_end_of_a_delay_is_no_news_from_a_node() -> None:
    rig = Rig(peers=1)

    job = rig.hold(attrs.evolve(copy_of(delay=10, retry=60), due=WALL))

    assert job.requeue_at - rig.now.mono - 70_000 in SPREAD
    assert copies.snapshot(rig.node, job).due == 0


def test_an_adopted_at_most_once_job_has_no_time_to_be_queued_at() -> None:
    rig = Rig(peers=1)

    job = rig.hold(copy_of(ONCE, delay=10, retry=0))

    assert (job.requeue_at, job.flags) == (0, BCAST_QUEUED)
    assert rig.ask("ENQUEUE", ONCE) == 0


def test_state_and_counters_of_a_copy() -> None:
    rig = Rig(peers=1)
    copy = copy_of()
    copy.state, copy.gc_attempt, copy.flags = QUEUED, 7, DELIVERED
    copy.nacks, copy.deliveries = 3, 4

    job = rig.hold(copy)

    assert (job.state, job.gc_attempt, job.nacks, job.deliveries) == (ACTIVE, 0, 3, 4)
    assert job.flags == BCAST_QUEUED | BCAST_WILLQUEUE


def test_holders_are_those_that_are_named_each_once_and_this_one() -> None:
    rig = Rig(peers=1)

    job = rig.hold(copy_of(holders=(UNKNOWN, N2, N2)))

    assert job.holders == (UNKNOWN, N2, ME)


def test_a_node_that_was_forgotten_is_no_holder() -> None:
    rig = Rig(peers=2)
    membership.forget(rig.node, N3)

    job = rig.hold(copy_of(holders=(N3, N2)))

    assert job.holders == (N2, ME)


def test_holders_are_only_added() -> None:
    rig = Rig(peers=2)
    job = rig.hold(copy_of())

    copies.add_holders(job, (N2, N3, N3))
    copies.add_holders(job, ())

    assert job.holders == (N2, ME, N3)


def test_a_copy_that_has_expired_on_arrival_goes_at_the_next_tick() -> None:
    rig = Rig(peers=1)
    copy = copy_of()
    copy.etime = 0
    rig.message(N2, ReplJob((copy,)))
    assert JOB in rig.node.jobs

    rig.advance(8)

    assert JOB not in rig.node.jobs


@given(
    etime=st.integers(1, 1 << 20),
    delay=st.integers(0, 1000),
    retry=st.integers(0, 1000),
    nacks=st.integers(0, 0xFFFF),
    body=st.binary(max_size=20),
)
def test_a_job_lives_a_second_longer_with_every_hop(
    etime: int, delay: int, retry: int, nacks: int, body: bytes
) -> None:
    rig = Rig(peers=1)
    copy = copy_of(delay=delay, retry=retry)
    copy.etime, copy.nacks, copy.body = etime, nacks, body

    again = copies.snapshot(rig.node, copies.adopt(rig.node, copy))

    assert again.etime == etime + 1
    again.etime, again.state, again.flags = copy.etime, copy.state, copy.flags
    assert again == copy
