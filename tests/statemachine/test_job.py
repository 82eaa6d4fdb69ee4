import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BCAST_WILLQUEUE,
    QUEUED,
    WAIT_REPL,
    CommandError,
)
from disque_trio.statemachine.job import (
    Job,
    check_id,
    gc_wait,
    is_at_least_once,
    is_well_formed,
    make_id,
    next_wake,
    ttl_minutes,
    wins,
)
from disque_trio.statemachine.suggestions import shown
from tests import strategies
from tests.rig import JOB, ME, N2, ONCE


def make(state: int, *, requeue_at: int = 0, flags: int = 0, gc_at: int = 0) -> Job:
    """A job that expires at 100,000."""
    return Job(
        id=JOB,
        queue=b"q",
        body=b"",
        replicas=1,
        made=0,
        number=1,
        expires=100_000,
        delay=0,
        retry=1000,
        holders=(ME,),
        state=state,
        requeue_at=requeue_at,
        flags=flags,
        gc_at=gc_at,
    )


# Ids.


@pytest.mark.parametrize(
    ("ttl_s", "at_least_once", "field"),
    [
        (1, True, b"0001"),
        (59, False, b"0000"),
        (60, False, b"0000"),
        (60, True, b"0001"),
        (120, True, b"0003"),
        (180, False, b"0002"),
        (86_400, True, b"05a1"),
        (86_400, False, b"05a0"),
        (1 << 32, True, b"ffff"),
        (1 << 32, False, b"fffe"),
    ],
)
def test_the_ttl_in_an_id_is_minutes_with_the_semantics_as_parity(
    ttl_s: int, at_least_once: bool, field: bytes
) -> None:
    job_id = make_id(ME, 0, ttl_s, at_least_once=at_least_once)

    assert job_id == b"D-aaaaaaaa-AAAAAAAAAAAAAAAAAAAAAAAA-" + field
    assert is_at_least_once(job_id) is at_least_once


def test_an_id_carries_144_random_bits() -> None:
    assert make_id(ME, (1 << 144) - 1, 1, at_least_once=True)[11:35] == b"/" * 24
    assert make_id(ME, 1, 1, at_least_once=True)[11:35] == b"A" * 23 + b"B"


@given(job_id=strategies.job_ids())
def test_every_id_made_is_well_formed(job_id: bytes) -> None:
    assert is_well_formed(job_id)
    assert re.fullmatch(rb"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}", job_id)


def test_only_length_and_three_marks_of_an_id_are_checked() -> None:
    strange = b"D-!!!!!!!!-????????????????????????-zzzz"

    assert check_id(strange) == strange
    assert ttl_minutes(strange) == 0


@pytest.mark.parametrize(
    "word",
    [
        b"",
        b"D-",
        JOB[:-1],
        JOB + b"0",
        b"d" + JOB[1:],
        b"D_" + JOB[2:],
        JOB[:10] + b"_" + JOB[11:],
        JOB[:35] + b"_" + JOB[36:],
    ],
)
def test_anything_else_is_no_id(word: bytes) -> None:
    with pytest.raises(CommandError) as error:
        check_id(word)

    assert error.value.text == (
        b"BADID Invalid Job ID format. %b is not the id that ADDJOB answered: 40 characters, of"
        b" which the first are D-" % shown(word)
    )


def test_the_ttl_field_is_read_in_any_case_and_its_other_digits_as_zero() -> None:
    assert ttl_minutes(JOB) == 1441
    assert ttl_minutes(JOB[:36] + b"05A1") == 1441
    assert ttl_minutes(JOB[:36] + b"0g1 ") == 16
    assert not is_at_least_once(ONCE)


# Deadlines.


def test_a_job_that_waits_for_copies_wakes_when_it_expires() -> None:
    assert next_wake(make(WAIT_REPL, requeue_at=5000)) == 100_000


@pytest.mark.parametrize("state", [ACTIVE, QUEUED])
def test_a_live_job_wakes_for_its_requeue_or_half_a_second_before(state: int) -> None:
    assert next_wake(make(state, requeue_at=5000)) == 5000
    assert next_wake(make(state, requeue_at=5000, flags=BCAST_WILLQUEUE)) == 4500
    assert next_wake(make(state, requeue_at=200_000)) == 100_000
    assert next_wake(make(state, requeue_at=0)) == 100_000


def test_an_acknowledged_job_wakes_for_its_collection() -> None:
    assert next_wake(make(ACKED, requeue_at=5000, gc_at=7000)) == 7000
    assert next_wake(make(ACKED, gc_at=300_000)) == 100_000


def test_attempts_to_collect_wait_twice_as_long_each_up_to_three_minutes() -> None:
    waits = [gc_wait(attempt) // 1000 for attempt in range(11)]

    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 180, 180, 180]


# Who gives way.


def test_the_job_decides_between_two_nodes_that_have_it_queued() -> None:
    # The last bits of "A" and "B" turn the order of nodes "a..." and "b..." around.
    one = b"D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
    other = b"D-bbbbbbbb-BBBBBBBBBBBBBBBBBBBBBBBB-05a1"

    assert [ord("a") ^ ord("A"), ord("b") ^ ord("A")] == [32, 35]
    assert [ord("a") ^ ord("B"), ord("b") ^ ord("B")] == [35, 32]
    assert wins(ME, N2, one)
    assert not wins(N2, ME, one)
    assert not wins(ME, N2, other)
    assert wins(N2, ME, other)


@given(mine=strategies.node_ids(), other=strategies.node_ids(), job_id=strategies.job_ids())
def test_exactly_one_of_two_nodes_keeps_a_job(mine: bytes, other: bytes, job_id: bytes) -> None:
    def xored(node: bytes) -> bytes:
        return bytes(byte ^ job_id[11 + index % 24] for index, byte in enumerate(node))

    assert wins(mine, other, job_id) == (xored(other) > xored(mine))
    assert mine == other or wins(mine, other, job_id) != wins(other, mine, job_id)


@given(attempt=st.integers(0, 10))
def test_no_wait_is_shorter_than_a_second(attempt: int) -> None:
    assert 1000 <= gc_wait(attempt) <= 180_000
