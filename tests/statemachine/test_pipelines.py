"""Many requests at a time: they lead to what they would lead to one by one."""

import itertools
from collections.abc import Callable

import hypothesis.strategies as st
from hypothesis import given, settings

from disque_trio.statemachine.base import PENDING, Failure, Status
from disque_trio.statemachine.client import ReplyMode
from disque_trio.statemachine.config import Config
from tests.rig import JOB, Rig
from tests.statemachine.squeezing import squeezed

PING = [b"PING"]
ADD = [b"ADDJOB", b"q", b"body", b"0"]
GET = [b"GETJOB", b"NOHANG", b"FROM", b"q"]
WAIT = [b"GETJOB", b"FROM", b"empty"]


def give(rig: Rig, *requests: list[bytes], clock: Callable[[], int] | None = None) -> int:
    """How many the machine took."""
    ticks = itertools.count()
    return rig.machine.requests(
        rig.client, requests, rig.now, clock or (lambda: next(ticks) * 1000)
    )


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from([
            PING, ADD, GET, WAIT, [b"qlen", b"q"], [b"QLEN"], [b"ACKJOB", JOB], [b"ACKJOB", b"bad"],
            [b"GETJOB", b"FROM"], [b"NOSUCH"], [b"INFO", b"nosuch"], [b"PAUSE", b"q", b"in"],
            [b"PAUSE", b"q", b"none"], [b"CONFIG", b"SET", b"requirepass", b"x"], [b"AUTH", b"x"],
            [b"CLIENT", b"REPLY", b"SKIP"], [b"CLIENT", b"PAUSE", b"100"], [b"QUIT"],
        ]),
        max_size=12,
    )
)  # fmt: skip
def test_it_makes_no_difference_whether_they_come_one_by_one(requests: list[list[bytes]]) -> None:
    many, single = Rig(), Rig()

    left = requests
    while left and many.machine.accepts(many.client):
        taken = give(many, *left)
        if not taken:
            many.machine.request(many.client, left[0], many.now)
            taken = 1
        left = left[taken:]
    for request in requests[: len(requests) - len(left)]:
        assert single.machine.accepts(single.client)
        single.machine.request(single.client, request, single.now)

    assert not left or not single.machine.accepts(single.client)
    many.take()
    single.take()
    assert many.replies() == single.replies()
    assert list(many.node.jobs) == list(single.node.jobs)
    assert many.node.stats.commands_processed == single.node.stats.commands_processed
    assert many.client.command == single.client.command


def test_those_before_one_that_is_not_plain_are_taken() -> None:
    rig = Rig()

    assert give(rig, PING, ADD, [b"INFO"], PING) == 2
    assert give(rig, [b"NOSUCH"], PING) == 0
    assert give(rig, [b"QLEN", b"q"], [b"QLEN"], PING) == 1


def test_a_client_that_has_to_wait_is_given_nothing_more() -> None:
    rig = Rig()

    assert give(rig, PING, WAIT, PING) == 2
    assert give(rig, PING) == 0


def test_a_job_goes_to_a_waiting_client_before_the_next_request_can_take_it() -> None:
    rig = Rig()
    other = rig.connect()
    rig.machine.request(other, [b"GETJOB", b"FROM", b"q"], rig.now)

    assert give(rig, ADD, GET) == 2

    rig.take()
    assert isinstance(rig.reply(other), list)
    assert rig.replies()[1] is not PENDING


def test_a_client_in_reply_mode_off_takes_the_slow_path() -> None:
    rig = Rig()
    rig.client.reply_mode = ReplyMode.OFF

    assert give(rig, PING) == 0


def test_want_of_memory_is_noticed_within_a_run() -> None:
    rig = squeezed(0)
    memory = rig.node.memory
    body = b"b" * (memory.hard - memory.held)

    assert give(rig, ADD, [b"ADDJOB", b"q", body, b"0", b"REPLICATE", b"1"], ADD, ADD) == 2
    assert give(rig, PING) == 0


def test_a_mistake_is_answered_and_the_run_goes_on() -> None:
    rig = Rig()

    assert give(rig, [b"GETJOB", b"x"], GET) == 2

    rig.take()
    assert rig.replies()[0] == Failure(
        b"ERR syntax error: FROM is missing before the queues: GETJOB [options] FROM queue"
        b" [queue ...]"
    )


def test_a_slow_one_among_them_is_remembered_with_its_own_time() -> None:
    rig = Rig(config=Config(slowlog_log_slower_than_us=50, latency_monitor_threshold=7))
    moments = iter([0, 10_000, 10_010_000, 10_020_000, 10_030_000, 10_040_000])

    give(rig, PING, [b"PING", b"slow"], PING, ADD, clock=lambda: next(moments))

    stats = rig.node.stats.commands
    assert (stats["ping"].calls, stats["ping"].ns) == (3, 10_020_000)
    assert (stats["addjob"].calls, stats["addjob"].ns) == (1, 10_000)
    [entry] = rig.node.slowlog.entries
    assert (entry.args, entry.usec) == ([b"PING", b"slow"], 10_000)
    assert rig.node.latency.events[b"fast-command"].worst == 10


def test_the_answers_come_in_order() -> None:
    rig = Rig()

    give(rig, PING, [b"PING", b"a"], [b"QLEN", b"q"])

    rig.take()
    assert rig.replies() == [Status(b"PONG"), b"a", 0]
