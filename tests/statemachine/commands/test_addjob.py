import attrs
import pytest

from disque_trio.statemachine import nodetable
from disque_trio.statemachine.base import (
    ACTIVE,
    HANDSHAKE,
    NOADDR,
    PFAIL,
    QUEUED,
    WAIT_REPL,
    Failure,
    Status,
)
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.commands.addoptions import parse_options
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.job import Job, is_well_formed, ttl_minutes
from disque_trio.statemachine.joboptions import DEFAULT_TTL_S, Options
from disque_trio.statemachine.messages import ReplJob
from disque_trio.statemachine.records import Record
from tests.rig import ME, N2, UNKNOWN, Rig
from tests.statemachine.commands.refused import Refused
from tests.statemachine.comparing import shown

NOT_ENOUGH = b"NOREPL Not enough reachable nodes for the requested replication level"
MAX_SECONDS = 2_147_483


def error(rig: Rig, *words: str | int) -> Failure:
    reply = rig.ask("ADDJOB", *words)
    assert isinstance(reply, Failure), reply
    return reply


def only_job(rig: Rig) -> Job:
    [job] = rig.node.jobs.values()
    return job


# The defaults.


def test_the_reply_is_the_id_as_a_simple_string() -> None:
    rig = Rig()

    reply = rig.ask("ADDJOB", "q", "body", 0)

    job = only_job(rig)
    assert reply == Status(job.id)
    assert is_well_formed(job.id)
    assert job.id.startswith(b"D-aaaaaaaa-")
    assert job.id.endswith(b"-05a1")


def test_a_plain_job_lives_a_day_and_is_retried_every_five_minutes() -> None:
    rig = Rig()

    job = rig.add()

    assert (job.state, job.queue, job.body) == (QUEUED, b"q", b"body")
    assert job.expires == rig.now.mono + 86_400_000
    assert (job.retry, job.delay, job.replicas) == (300_000, 0, 1)
    assert (job.holders, job.confirmed) == ((ME,), None)


@pytest.mark.parametrize(
    ("ttl", "retry"), [(1, 1), (9, 1), (10, 1), (19, 1), (20, 2), (2999, 299), (4000, 300)]
)
def test_the_default_retry_is_a_tenth_of_the_ttl(ttl: int, retry: int) -> None:
    assert Rig().add("TTL", ttl).retry == retry * 1000


@pytest.mark.parametrize(("peers", "replicas"), [(0, 1), (1, 2), (2, 3), (3, 3)])
def test_the_default_replication_is_three_or_all_nodes(peers: int, replicas: int) -> None:
    rig = Rig(peers=peers)

    rig.request("ADDJOB", "q", "body", 0)

    assert only_job(rig).replicas == replicas


def test_nodes_that_fail_or_have_no_address_count_for_the_default_and_unknown_nodes_do_not() -> (
    None
):
    rig = Rig(peers=2)
    first, second = list(rig.node.cluster.nodes.values())[1:]
    nodetable.mark(rig.node, first, PFAIL)
    nodetable.mark(rig.node, second, NOADDR)
    nodetable.add(rig.node, Peer(UNKNOWN, "127.0.0.9", 7711, HANDSHAKE))

    assert error(rig, "q", "body", 0) == Failure(NOT_ENOUGH)
    assert rig.add("ASYNC", "REPLICATE", 1).replicas == 1

    nodetable.unmark(rig.node, first, PFAIL)
    nodetable.unmark(rig.node, second, NOADDR)
    rig.request("ADDJOB", "q", "body", 0)
    assert [job.replicas for job in rig.node.jobs.values()] == [1, 3]


def test_names_and_bodies_are_any_bytes() -> None:
    rig = Rig()

    rig.request("ADDJOB", b"", b"", "")
    rig.request("ADDJOB", b"\x00\r\n", b"\xff" * 9, 0)

    assert [(job.queue, job.body) for job in rig.node.jobs.values()] == [
        (b"", b""),
        (b"\x00\r\n", b"\xff" * 9),
    ]
    assert rig.ask("QLEN", b"\x00\r\n") == 1


# The options.


def test_options_come_in_any_order_and_case_and_the_last_counts() -> None:
    words = b"retry 5 TTL 100 Async delay 3 RePlIcAtE 2 MAXLEN 9 ttl 200".split()

    assert parse_options(words) == Options(
        replicate=2, delay=3000, retry=5, ttl=200, maxlen=9, is_async=True
    )
    assert parse_options([]) == Options(ttl=DEFAULT_TTL_S)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("REPLICATE 0", b"ERR REPLICATE must be between 1 and 65535"),
        ("REPLICATE 65536", b"ERR REPLICATE must be between 1 and 65535"),
        ("REPLICATE x", b"ERR REPLICATE must be between 1 and 65535"),
        ("TTL 0", b"ERR TTL must be a number > 0"),
        ("TTL x", b"ERR TTL must be a number > 0"),
        ("RETRY -1", b"ERR RETRY time must be a non negative number"),
        ("RETRY x", b"ERR RETRY time must be a non negative number"),
        ("DELAY -1", b"ERR DELAY time must be a non negative number"),
        ("DELAY x", b"ERR DELAY time must be a non negative number"),
        ("DELAY 1.0005", b"ERR DELAY time must be a non negative number"),
        ("DELAY -0.5", b"ERR DELAY time must be a non negative number"),
        ("MAXLEN 0", b"ERR MAXLEN must be a positive number"),
        ("MAXLEN x", b"ERR MAXLEN must be a positive number"),
        ("REPLICATE", b"ERR syntax error"),
        ("ASYNC RETRY", b"ERR syntax error"),
        ("SOON", b"ERR syntax error"),
        # From left to right, and before the timeout is looked at.
        ("TTL 0 RETRY -1", b"ERR TTL must be a number > 0"),
        ("RETRY -1 TTL 0", b"ERR RETRY time must be a non negative number"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(words: str, text: bytes) -> None:
    rig = Rig()

    assert error(rig, "q", "body", "x", *words.split()) == Refused(text)
    assert (rig.node.jobs, rig.node.queues) == ({}, {})


def test_the_timeout_is_checked_after_the_options() -> None:
    rig = Rig()

    assert error(rig, "q", "b", "x") == Refused(b"ERR timeout is not an integer or out of range")
    assert error(rig, "q", "b", "-1") == Refused(b"ERR timeout is negative")
    assert error(rig, "q", "b", "x", "ASYNC") == Refused(
        b"ERR timeout is not an integer or out of range"
    )


def test_an_at_most_once_job_must_have_one_copy() -> None:
    text = b"ERR With RETRY set to 0 please explicitly set  REPLICATE to 1 (at-most-once delivery)"
    rig = Rig(peers=1)

    assert error(rig, "q", "b", 0, "RETRY", 0) == Refused(text)
    assert error(rig, "q", "b", 0, "RETRY", 0, "REPLICATE", 2, "DELAY", 9, "TTL", 9) == Refused(
        text
    )
    job = rig.add("RETRY", 0, "REPLICATE", 1)
    assert (job.retry, ttl_minutes(job.id)) == (0, 1440)


def test_a_job_must_be_due_before_it_expires() -> None:
    text = (
        b"ERR The specified DELAY is greater than TTL. Job refused since would never be delivered"
    )
    rig = Rig()

    assert error(rig, "q", "b", 0, "DELAY", 5, "TTL", 5) == Refused(text)
    assert error(rig, "q", "b", 0, "DELAY", 5, "TTL", 5, "REPLICATE", 9) == Refused(text)
    assert error(rig, "q", "b", 0, "DELAY", "5.001", "PRIORITY", 0, "TTL", 5) == Refused(text)
    assert rig.add("DELAY", 4, "TTL", 5).state == ACTIVE
    assert rig.add("DELAY", "4.999", "LIMIT", 9, "TTL", 5).state == ACTIVE


# Enough nodes.


def test_a_node_alone_cannot_replicate() -> None:
    assert error(Rig(), "q", "b", 0, "REPLICATE", 2) == Failure(NOT_ENOUGH)


def test_suspected_nodes_are_not_counted_on() -> None:
    rig = Rig(peers=2)
    rig.node.cluster.reachable.pop()

    assert error(rig, "q", "b", 0) == Failure(NOT_ENOUGH)
    assert error(rig, "q", "b", 0, "ASYNC") == Failure(NOT_ENOUGH)
    rig.request("ADDJOB", "q", "b", 0, "REPLICATE", 2)
    assert only_job(rig).state == WAIT_REPL


def test_a_leaving_node_says_why_it_lacks_just_one_node() -> None:
    rig = Rig(peers=2)
    rig.ask("CLUSTER", "LEAVING", "yes")

    assert error(rig, "q", "b", 0, "REPLICATE", 3) == Failure(
        NOT_ENOUGH + b", since I'm unable to hold a copy of the message for the following reason:"
        b" I'm leaving the cluster"
    )
    assert error(rig, "q", "b", 0, "REPLICATE", 4) == Failure(NOT_ENOUGH)


# The queue's word.


def test_maxlen_is_a_limit_on_the_queue_here() -> None:
    text = b"MAXLEN Queue is already longer than the specified MAXLEN count"
    rig = Rig()
    rig.add("MAXLEN", 1)

    assert error(rig, "q", "b", 0, "MAXLEN", 1) == Refused(text)
    assert rig.add("MAXLEN", 2).state == QUEUED
    rig.ask("PAUSE", "q", "in")
    assert error(rig, "q", "b", 0, "MAXLEN", 1) == Refused(text)


def test_a_queue_paused_in_input_refuses() -> None:
    rig = Rig()
    rig.ask("PAUSE", "q", "in")
    assert error(rig, "q", "b", 0) == Refused(b"PAUSED Queue paused in input, try later")

    rig.ask("PAUSE", "q", "out")
    assert rig.add().state == QUEUED


# Delays and large numbers.


def test_a_delayed_job_is_active_until_it_is_due() -> None:
    rig = Rig()

    job = rig.add("DELAY", 100, "RETRY", 60)

    assert job.state == ACTIVE
    assert job.requeue_at == rig.now.mono + 100_000
    assert (job.delay, job.retry) == (100_000, 60_000)


@pytest.mark.parametrize(("words", "ms"), [("0.25", 250), ("1.5", 1500), ("2.001", 2001)])
def test_a_delay_with_decimals_is_never_over_early(words: str, ms: int) -> None:
    rig = Rig()

    job = rig.add("DELAY", words, "PRIORITY", 0)

    rig.advance(ms - 1)
    assert job.state == ACTIVE
    rig.advance(9)  # a grain of the timer wheel
    assert job.state == QUEUED


def test_a_delay_without_a_fraction_is_the_whole_number() -> None:
    whole, decimals = Rig().add("DELAY", 7), Rig().add("DELAY", "7.000")

    assert whole.delay == decimals.delay == 7000


def test_the_other_holders_wait_no_shorter_than_a_delay_with_decimals() -> None:
    rig = Rig(peers=1)

    rig.request("ADDJOB", "q", "b", 0, "REPLICATE", 2, "PRIORITY", 0, "DELAY", "1.5")

    (copy,) = [m.copies[0] for _, m in rig.sent() if isinstance(m, ReplJob)]
    assert copy.delay == 2
    holder = Rig(peers=1).hold(attrs.evolve(copy, holders=(N2, ME)))
    assert holder.delay == 2000
    shown = rig.ask("SHOW", copy.id)
    assert isinstance(shown, list)
    assert shown[shown.index(b"delay") + 1] == 2


def test_a_job_that_waits_shows_when_it_would_be_queued() -> None:
    rig = Rig(peers=1)

    rig.request("ADDJOB", "q", "b", 0, "RETRY", 60)

    assert only_job(rig).requeue_at == rig.now.mono + 60_000


def test_very_large_times_are_cut_so_that_every_holder_can_count_them() -> None:
    rig = Rig()

    job = rig.add("RETRY", 1 << 40, "DELAY", MAX_SECONDS, "TTL", 1 << 41)

    assert (job.retry, job.delay) == (MAX_SECONDS * 1000, MAX_SECONDS * 1000)
    unix_expiry = rig.now.wall // 1000 + (job.expires - rig.now.mono) // 1000
    assert unix_expiry == (1 << 32) - 1
    assert job.id.endswith(b"-ffff")


def test_a_delay_that_could_only_be_kept_in_part_is_refused() -> None:
    reply = Rig().ask("ADDJOB", "q", "b", 0, "DELAY", MAX_SECONDS + 1, "TTL", 1 << 41)

    assert reply == Refused(b"ERR DELAY must be at most 2147483 seconds")


def test_after_the_end_of_32_bit_time_jobs_live_a_second() -> None:
    rig = Rig()
    rig.now.wall = (1 << 32) * 1000

    assert rig.add().expires == rig.now.mono + 1000


# A node without a trace has a shorter way.


@pytest.mark.parametrize(
    "options",
    [(), ("REPLICATE", 1), ("RETRY", 7), ("TTL", 1), ("ASYNC",), ("RETRY", 0)],
)
@pytest.mark.parametrize("peers", [0, 2])
@pytest.mark.parametrize("appendonly", [False, True])
def test_a_job_is_the_same_whether_its_life_is_traced_or_not(
    appendonly: bool, peers: int, options: tuple[str | int, ...]
) -> None:
    config = Config(appendonly=appendonly)
    plain, traced = Rig(peers, config=config), Rig(peers, config=config)
    traced.node.trace = []

    for rig in (plain, traced):
        for body in ("one", "other", "third"):
            rig.request("ADDJOB", "q", body, 0, "REPLICATE", 1, *options)
        rig.advance(1)
        rig.request("ADDJOB", "q", "late", 0, "REPLICATE", 1, *options)

    assert len(plain.node.jobs) == 4
    records = recorded(plain)
    assert len(records) == (4 if appendonly else 0)
    assert records == recorded(traced)
    assert plain.replies() == traced.replies()
    assert [shown(job) for job in plain.node.jobs.values()] == [
        shown(job) for job in traced.node.jobs.values()
    ]
    assert plain.node.memory.held == traced.node.memory.held
    assert plain.node.rng.getstate() == traced.node.rng.getstate()
    one, other = plain.queue(), traced.queue()
    assert (one.jobs_in, one.accessed, one.length) == (other.jobs_in, other.accessed, other.length)
    assert [job.id for job in one.peek(9)] == [job.id for job in other.peek(9)]


def recorded(rig: Rig) -> list[Record]:
    """What its journal has been told."""
    return [record for out in rig.outboxes for record in out.records]


def test_a_waiting_client_is_served_by_the_fast_path_too() -> None:
    rig = Rig()
    rig.request("GETJOB", "FROM", "q")

    added = rig.ask("ADDJOB", "q", "body", 0, client=rig.connect())

    assert isinstance(added, Status)
    assert rig.reply() == [[b"q", added.text, b"body"]]


@pytest.mark.parametrize("what", ["leaving", "memory"])
def test_a_node_that_should_keep_no_copy_goes_the_long_way(what: str) -> None:
    rig = Rig(peers=1)
    if what == "leaving":
        rig.request("CLUSTER", "LEAVING", "yes")
    else:
        rig.node.memory.soft = -1
    rig.take()
    rig.replies()

    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 1)

    [job] = rig.node.jobs.values()
    assert ME not in job.holders


def test_options_are_parsed_once_whatever_the_groups_and_keys() -> None:
    from disque_trio.statemachine.commands.addjob import _PARSED  # noqa: PLC0415

    rig = Rig()
    rig.add("GROUP", "one", "UNIQUE", "k1", "RETRY", 77)
    before = len(_PARSED)

    job = rig.add("GROUP", "other", "UNIQUE", "k2", "RETRY", 77)

    assert len(_PARSED) == before
    assert job.extensions == Extensions(group=b"other", key=b"k2")


def test_groups_and_keys_may_be_words_of_options() -> None:
    job = Rig().add("unique", "GROUP", "Group", "unique", "PRIORITY", 3)

    assert job.extensions == Extensions(priority=3, group=b"unique", key=b"GROUP")


def test_a_key_that_is_the_digest_of_the_body_is_of_one_job() -> None:
    rig = Rig()

    jobs = [rig.add("UNIQUE", "", "GROUP", "g", body=body) for body in ("one", "other")]

    assert [job.group for job in jobs] == [b"g", b"g"]
    assert len({job.extensions.key for job in jobs if job.extensions is not None}) == 2


def test_jobs_of_a_group_share_their_extensions() -> None:
    rig = Rig()

    first, second = rig.add("GROUP", "g", "PRIORITY", 1), rig.add("GROUP", "g", "PRIORITY", 1)

    assert first.extensions is second.extensions
