"""A message about many jobs has the effects of its single messages, one after the other."""

from collections.abc import Sequence
from typing import Any

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from disque_trio.statemachine.base import JobId, NodeId
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.job import digest_of
from disque_trio.statemachine.journaling import STOPPED
from disque_trio.statemachine.messages import (
    AboutJob,
    Batch,
    DelJob,
    Enqueue,
    Frame,
    GotAck,
    GotJob,
    JobCopy,
    Many,
    Message,
    Queued,
    ReplJob,
    SetAck,
    WillQueue,
    Working,
    YourJobs,
    singles,
)
from disque_trio.statemachine.records import LoadJob
from tests.rig import IDS, ME, N2, N3, N4, UNKNOWN, Rig, copy_of
from tests.statemachine.comparing import Even, by_job, shown, totals
from tests.statemachine.test_recovery import recorded

FOREIGN = [b"D-bbbbbbbb-%024d-%04x" % (number, 0x5A0 | number % 4 != 0) for number in range(8)]
"""Jobs of another node; every fourth is delivered at most once."""
HOLDERS = ((N2, ME), (N2, N3, ME), (N2, N3, N4, ME), (N2, UNKNOWN), (N2,))

DIGESTS = tuple(digest_of(holders) for holders in HOLDERS[:3])


def rigs(config: Config, *, ours: bool = True) -> tuple[Rig, Rig]:
    both = Rig(3, config, ours=ours), Rig(3, config, ours=ours)
    for rig in both:
        rig.node.rng = Even(0)
    return both


def everything(rig: Rig) -> dict[str, object]:
    """What the node holds, and what it has said of each job to each node, and recorded of it."""
    node = rig.node
    records: dict[JobId, list[object]] = {}
    for out in rig.outboxes:
        for record in out.records:
            about = record.copy if isinstance(record, LoadJob) else record
            records.setdefault(about.id, []).append(record)
    rig.outboxes.clear()
    return {
        "jobs": {job.id: shown(job) for job in node.jobs.values()},
        "queues": [(queue.name, queue.length, queue.jobs_in) for queue in node.queues.values()],
        "counts": (
            {name: each.number for name, each in node.delayed.items()},
            node.leased,
            [(queue.acks, queue.transferred) for queue in node.queues.values()],
        ),
        "tally": totals(node.tally),
        "memory": (node.memory.held, set(node.memory.evictable), set(node.memory.dummies)),
        "over": {id for id in FOREIGN if id in node.tombstones},
        "sent": by_job(rig.sent()),
        "sent in all": node.cluster.messages_sent,
        "received": node.cluster.messages_received,
        "records": records,
        "replies": rig.replies(),
        "next": node.timers.deadline(),
    }


numbers = st.just([*range(12)]) | st.lists(st.integers(0, 14), min_size=2, max_size=12)
MESSAGES = st.one_of(
    st.builds(SetAck, st.just(b""), st.sampled_from([0, 2, 3, 3, 4])),
    st.builds(SetAck, st.just(b""), st.just(2), st.sampled_from(DIGESTS)),
    st.builds(GotAck, st.just(b""), st.booleans()),
    st.sampled_from([DelJob(b""), Working(b""), Working(b""), GotJob(b""), WillQueue(b"")]),
    st.builds(Queued, st.just(b""), st.booleans(), st.booleans(), st.booleans()),
    st.builds(Enqueue, st.just(b""), st.integers(0, 2)),
)
ADDED = ((1, "DELAY", 1), (3,), (3, "TTL", 1, "RETRY", 1), (4,))
SAID = st.tuples(st.just("many"), st.tuples(MESSAGES, st.sampled_from(IDS), numbers))
STEPS = st.lists(
    SAID
    | st.one_of(
        st.tuples(
            st.just("add"),
            st.sampled_from([(1, "DELAY", 1), (3,), (3, "TTL", 1, "RETRY", 1), (4,)]),
        ),
        st.tuples(st.just("hold"), st.tuples(numbers, st.sampled_from(HOLDERS))),
        st.tuples(st.just("give"), st.tuples(numbers, st.sampled_from(HOLDERS))),
        st.tuples(st.just("get"), st.integers(1, 9)),
        st.tuples(st.just("ack"), numbers),
        st.tuples(st.just("wait"), st.sampled_from([1, 400, 2000])),
        st.tuples(st.just("forget"), st.sampled_from((N3, N4))),
    ),
    min_size=4,
    max_size=12,
)

START = (
    *[("hold", ([number], HOLDERS[number % 4])) for number in range(7)],
    ("add", (3,)),
    ("add", (3,)),
    ("many", (GotJob(b""), N2, [0, 1])),
    ("many", (GotJob(b""), N3, [0, 1])),
)
"""A node that holds jobs of its own and of another."""


@settings(max_examples=60, deadline=None)
@given(STEPS, st.booleans(), st.booleans(), st.booleans())
def test_many_have_the_effects_of_one_after_the_other(
    steps: list[tuple[str, Any]], is_recording: bool, is_traced: bool, ours: bool
) -> None:
    together, singly = rigs(Config(appendonly=is_recording), ours=ours)
    singly.node.trace = []
    together.node.trace = [] if is_traced else None

    for step in [*START, *steps]:
        take(together, *step, is_single=False)
        take(singly, *step, is_single=True)
        assert everything(together) == everything(singly)


EACH = (
    Working(b""),
    *(SetAck(b"", known) for known in (0, 2, 3, 4)),
    *(SetAck(b"", 2, digest) for digest in DIGESTS),
    GotAck(b"", known=True),
    GotAck(b"", known=False),
    DelJob(b""),
)
BEFORE: tuple[tuple[tuple[str, Any], ...], ...] = (
    (),
    (("add", (1, "DELAY", 1)), ("get", 9)),
    (("get", 5), ("ack", [0, 1, 2, 7, 8, 9, 12])),
    (("get", 9), ("ack", [*range(15)]), ("forget", N4)),
    (("hold", ([0, 1, 2], HOLDERS[3])), ("ack", [7, 8, 9]), ("forget", N3)),
    (("many", (Enqueue(b"", 1), N2, [*range(15)])),),
)


@pytest.mark.parametrize("message", EACH, ids=repr)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("is_recording", [True, False])
def test_each_message_meets_jobs_in_every_state(
    message: AboutJob, before: tuple[tuple[str, Any], ...], is_recording: bool
) -> None:
    together, singly = rigs(Config(appendonly=is_recording))
    singly.node.trace = []
    said = ("many", (message, N2, [*range(15), 3, 3]))
    again = ("many", (message, N3, [*range(15)]))

    for step in [*START, *before, said, ("wait", 400), again, ("wait", 2000), said]:
        take(together, *step, is_single=False)
        take(singly, *step, is_single=True)
        assert everything(together) == everything(singly)


@pytest.mark.parametrize("message", EACH, ids=repr)
def test_each_message_meets_jobs_that_were_queued_when_the_node_ended(message: AboutJob) -> None:
    together, singly = rigs(Config(appendonly=True))
    held = [foreign(id, HOLDERS[number % 4]) for number, id in enumerate(FOREIGN)]
    for rig in (together, singly):
        rig.machine.load([*map(recorded, held), STOPPED], rig.now)
        assert rig.machine.loaded(rig.now)
        rig.take()

    said = ("many", (message, N2, [*range(7)]))
    for step in [said, ("wait", 2000), said]:
        take(together, *step, is_single=False)
        take(singly, *step, is_single=True)
        assert everything(together) == everything(singly)


def take(rig: Rig, verb: str, what: Any, *, is_single: bool) -> None:
    """One step. Numbers stand for jobs of this node, for others that it holds, and for others."""
    match verb, what:
        case "many", (message, sender, list(chosen)):
            tell(rig, sender, message, named(rig, chosen), is_single=is_single)
        case "add", (replicas, *options):
            client = rig.connect()
            rig.request("ADDJOB", "q", "body", 0, "REPLICATE", replicas, *options, client=client)
        case "hold", (list(chosen), holders):
            for id in dict.fromkeys(FOREIGN[number % 8] for number in chosen):
                rig.message(N2, ReplJob((foreign(id, holders),)))
        case "give", (list(chosen), holders):
            ids = dict.fromkeys(FOREIGN[number % 8] for number in chosen)
            rig.message(N2, YourJobs(tuple(foreign(id, holders) for id in ids)))
        case "get", count:
            rig.request("GETJOB", "NOHANG", "COUNT", str(count), "FROM", "q")
        case "ack", list(chosen):
            rig.request("ACKJOB", *named(rig, chosen))
        case "wait", int(duration):
            rig.advance(duration)
        case "forget", bytes(peer):
            rig.request("CLUSTER", "FORGET", peer)


def named(rig: Rig, chosen: Sequence[int]) -> list[JobId]:
    mine = sorted(id for id in rig.node.jobs if id not in FOREIGN)
    known = [*mine[:7], *FOREIGN]
    return [known[number % len(known)] for number in chosen]


def foreign(id: JobId, holders: tuple[NodeId, ...]) -> JobCopy:
    return copy_of(id, holders=holders, queue=b"q", retry=0 if id.endswith(b"0") else 5)


def tell(rig: Rig, sender: NodeId, message: AboutJob, ids: list[JobId], *, is_single: bool) -> None:
    if sender not in rig.node.cluster.nodes:
        return
    many = Many(attrs.evolve(message, id=ids[0]), ids)
    if not is_single:
        rig.message(sender, Batch((many,)))
        return
    for single in singles(many):
        rig.message(sender, single)


def several(*, ours: bool = True) -> tuple[Rig, list[JobId]]:
    """Three jobs with three copies, delivered here."""
    rig = Rig(2, ours=ours)
    for _ in range(3):
        rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3, client=rig.connect())
    ids = list(rig.node.jobs)
    for holder in (N2, N3):
        rig.message(holder, Batch((Many(GotJob(ids[0]), ids),)))
    rig.request("GETJOB", "COUNT", 3, "FROM", "q")
    rig.outboxes.clear()
    return rig, ids


def said(rig: Rig) -> list[Message]:
    """What was said, to however many, since the last call."""
    messages = [message for out in rig.outboxes for _, message in out.messages]
    rig.outboxes.clear()
    return messages


def test_a_delivery_of_many_is_announced_in_one_message() -> None:
    rig, ids = several()
    rig.advance(600_000)
    rig.outboxes.clear()

    rig.request("GETJOB", "COUNT", 3, "FROM", "q")

    assert said(rig) == [Many(Working(ids[0]), ids)]
    assert len({job.requeue_at for job in rig.node.jobs.values()}) == 1


def test_each_step_of_an_acknowledgement_of_many_is_one_message() -> None:
    rig, ids = several()

    rig.request("ACKJOB", *ids)
    assert said(rig) == [Many(SetAck(ids[0], 3, digest_of((ME, N2, N3))), ids)]

    rig.message(N2, Batch((Many(GotAck(ids[0], known=True), ids),)))
    assert said(rig) == []

    rig.message(N3, Batch((Many(GotAck(ids[0], known=True), ids),)))
    assert said(rig) == [Many(DelJob(ids[0]), ids)]
    assert not rig.node.jobs


def test_a_holder_answers_many_at_once() -> None:
    rig = Rig(2, ours=True)
    for id in FOREIGN[1:4]:
        rig.hold(foreign(id, (N2, N3, ME)))
    rig.outboxes.clear()

    rig.message(N2, Batch((Many(SetAck(FOREIGN[1], 3), FOREIGN[1:5]),)))
    assert said(rig) == [
        Many(GotAck(FOREIGN[1], known=True), FOREIGN[1:4]),
        GotAck(FOREIGN[4], known=False),
    ]

    rig.message(N2, Batch((Many(DelJob(FOREIGN[1]), FOREIGN[1:4]),)))
    assert not rig.node.jobs


def test_the_last_but_one_copies_go_at_once() -> None:
    rig = Rig(2, ours=True)
    for id in FOREIGN[1:3]:
        rig.hold(foreign(id, (N2, ME)))
    rig.outboxes.clear()

    rig.message(N2, Batch((Many(SetAck(FOREIGN[1], 2), FOREIGN[1:3]),)))

    assert said(rig) == [Many(GotAck(FOREIGN[1], known=False), FOREIGN[1:3])]
    assert not rig.node.jobs


def test_many_for_which_there_is_no_pass_are_taken_one_by_one() -> None:
    rig, ids = several()

    rig.message(N2, Batch((Many(Queued(ids[0], nack=True), ids),)))

    assert [job.nacks for job in rig.node.jobs.values()] == [1, 1, 1]


def test_a_frame_has_each_of_its_messages() -> None:
    batch = Batch((Many(SetAck(FOREIGN[0], 3), FOREIGN[:2]), DelJob(FOREIGN[2])))
    frame = Frame(N2, 7711, 0, batch)

    assert frame.content == batch.messages
    assert frame.messages == [SetAck(FOREIGN[0], 3), SetAck(FOREIGN[1], 3), DelJob(FOREIGN[2])]
