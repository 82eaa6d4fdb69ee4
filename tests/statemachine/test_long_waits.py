"""NACK DELAY, RELEASE DELAY and BACKOFF of more than 24.8 days: up to ten years, among nodes that
can count them."""

import pytest

from disque_trio.statemachine.base import (
    ACTIVE,
    CAPABILITIES,
    EXTENDS,
    LONG_WAITS,
    LONGEST_PERIOD_S,
    ORIGINAL_PERIOD_S,
    POSTPONES,
    SNOOZES,
    Failure,
    Now,
)
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import Postponed, WillQueue, Working
from disque_trio.statemachine.postponing import rest
from disque_trio.statemachine.records import LoadJob
from tests.rig import JOB, ME, N2, N3, Rig, copy_of
from tests.statemachine.restoring import restarted

LONG = ORIGINAL_PERIOD_S + 1
YEARS = LONGEST_PERIOD_S
DAY = 86_400
TTL = YEARS + DAY
CAPPED = (1 << 32) - 1
BEFORE = CAPABILITIES & ~LONG_WAITS


def delivered(rig: Rig) -> None:
    """This node has given a job to a worker that N2 and N3 hold as well."""
    rig.hold(copy_of(JOB, holders=(N2, ME, N3), ttl=TTL))
    rig.ask("ENQUEUE", JOB)
    rig.ask("GETJOB", "FROM", "q")
    rig.sent()


def cluster(**capabilities: int) -> Rig:
    rig = Rig(peers=2, ours=True)
    for id, known in zip((N2, N3), capabilities.values(), strict=False):
        rig.node.cluster.nodes[id].capabilities = known
    delivered(rig)
    return rig


@pytest.mark.parametrize("command", ["NACK", "RELEASE"])
@pytest.mark.parametrize("delay", [LONG, YEARS])
def test_a_wait_is_up_to_ten_years_and_the_holders_hear_all_of_it(command: str, delay: int) -> None:
    rig = cluster()

    assert rig.ask(command, JOB, "DELAY", delay) == 1

    job = rig.node.jobs[JOB]
    assert rest(rig.node, job) == delay * 1000
    assert [(to, said.wait) for to, said in rig.sent() if isinstance(said, Postponed)] == [
        (N2, delay * 1000),
        (N3, delay * 1000),
    ]


def test_a_holder_waits_as_long() -> None:
    rig = Rig(peers=1, ours=True)
    job = rig.hold(copy_of(JOB, holders=(N2, ME), ttl=TTL))

    rig.message(N2, Postponed(JOB, YEARS * 1000, 1, is_new=True))

    assert job.state == ACTIVE
    assert rest(rig.node, job) == YEARS * 1000


@pytest.mark.parametrize("command", ["NACK", "RELEASE"])
def test_it_is_refused_while_a_holder_cannot_count_it(command: str) -> None:
    rig = cluster(n2=CAPABILITIES, n3=BEFORE)

    reply = rig.ask(command, JOB, "DELAY", LONG)

    assert isinstance(reply, Failure)
    assert reply.text == (
        b"ERR DELAY is longer than the 2147483 seconds that node %b can count, which has a copy of"
        b" %b: upgrade that node, or use a shorter DELAY" % (N3, JOB)
    )
    assert not rig.sent()
    assert rig.ask(command, JOB, "DELAY", ORIGINAL_PERIOD_S) == 1


def test_originals_ask_again_after_each_retry() -> None:
    rig = cluster(n2=0, n3=0)

    assert rig.ask("RELEASE", JOB, "DELAY", YEARS) == 1
    assert rig.sent() == [(N2, Working(JOB)), (N3, Working(JOB))]


def test_a_node_that_hears_of_it_later_is_told_what_it_can_count_and_then_the_rest() -> None:
    rig = cluster()
    rig.ask("NACK", JOB, "DELAY", YEARS)
    rig.sent()

    for known, snoozes in ((BEFORE, 0), (BEFORE & ~SNOOZES, 0)):
        rig.node.cluster.nodes[N3].capabilities = known
        rig.message(N3, WillQueue(JOB))
        assert rig.sent() == [(N3, Postponed(JOB, CAPPED, 1, snoozes=snoozes))]
    later = (YEARS - 3600) * 1000
    rig.now = Now(rig.now.mono + later, rig.now.wall + later)
    rig.message(N3, WillQueue(JOB))
    assert rig.sent() == [(N3, Postponed(JOB, 3_600_000, 1))]


def test_jobs_with_a_long_back_off_go_to_nodes_that_can_count_it() -> None:
    rig = Rig(peers=2, ours=True)
    rig.node.cluster.nodes[N2].capabilities = BEFORE
    rig.node.cluster.nodes[N3].capabilities = EXTENDS | POSTPONES
    options = ("TTL", TTL, "BACKOFF", 1, "MAXBACKOFF", YEARS)

    reply = rig.ask("ADDJOB", "q", "body", 10, "REPLICATE", 2, *options)

    assert isinstance(reply, Failure)
    assert reply.text.startswith(b"NOREPL")
    assert b"0 of the 2 other nodes can keep a job with extensions" in reply.text
    job = rig.add("REPLICATE", 1, *options)
    assert job.extensions is not None
    assert job.extensions.needs == EXTENDS | LONG_WAITS
    limited = rig.add("REPLICATE", 1, "LIMIT", 3, *options)
    assert limited.extensions is not None
    assert limited.extensions.needs & LONG_WAITS


def test_a_back_off_is_as_long() -> None:
    rig = Rig()
    job = rig.add("TTL", TTL * 9, "BACKOFF", YEARS, "MAXBACKOFF", YEARS)
    rig.ask("GETJOB", "FROM", "q")

    rig.ask("NACK", job.id)

    assert 0.79 * YEARS * 1000 < rest(rig.node, job) <= YEARS * 1000


def test_it_goes_on_after_a_restart() -> None:
    rig = Rig(config=Config(appendonly=True, trace_sample=0))
    job = rig.add("TTL", TTL)
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("NACK", job.id, "DELAY", YEARS)
    records = [each for box in rig.outboxes for each in box.records if isinstance(each, LoadJob)]

    again = restarted(records[-1], late=5000)

    assert rest(again.node, again.node.jobs[job.id]) == YEARS * 1000 - 5000
