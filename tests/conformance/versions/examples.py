"""One of everything that nodes send and write: every field of it has a value in some example."""

from collections.abc import Iterator
from typing import Final

import attrs

from disque_trio.statemachine import base
from disque_trio.statemachine.base import BCAST_WILLQUEUE, DELIVERED, FORMAT, LEAVING, MYSELF
from disque_trio.statemachine.extensions import FOLLOWS, DeadState, Extensions, LastError
from disque_trio.statemachine.journaling import STARTED, STOPPED
from disque_trio.statemachine.key_facts import HELD, HELD_BACK, IN_QUEUE, KeyFact
from disque_trio.statemachine.messages import (
    AckHolders,
    Batch,
    DelJob,
    Enqueue,
    Fail,
    Frame,
    Gossip,
    GotAck,
    GotJob,
    HaveJobs,
    Holders,
    JobCopy,
    JobError,
    JobState,
    KeyAnswer,
    KeyCancel,
    KeyClaim,
    LimitGrant,
    LimitPoll,
    LimitReport,
    Many,
    Meet,
    Message,
    NeedJobs,
    Pause,
    Ping,
    Pong,
    Postponed,
    Purge,
    Queued,
    QueueLimit,
    ReplJob,
    Result,
    SetAck,
    Suspect,
    Waiting,
    WillQueue,
    Working,
    YourJobs,
)
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record, StoredResult
from disque_trio.tracing.rows import Row

ME: Final = b"a" * 40
OTHER: Final = b"b" * 40
JOB: Final = b"D-aaaaaaaa-dNZ9vS2xMWHExBW39zgS0gOV-05a1"
SECOND: Final = b"D-aaaaaaaa-0123456789abcdefghijklmn-05a1"
EXTENSIONS: Final = Extensions(
    priority=-5,
    group=b"acme \xff",
    key=b"order-17",
    keep=60_000,
    limit=20,
    dead=DeadState(2, True, b"the parcel \xff is lost", 86_400_000),
    backoff=1000,
    max_backoff=60_000,
    follows=FOLLOWS,
    snoozes=3,
    error=LastError(1_800_000_000_000, b"TimeoutError: no answer\nload/tasks.py:22 in send"),
    unknown=((60_000, b"of a later version"),),
)
PLAIN: Final = JobCopy(
    id=JOB,
    state=base.ACTIVE,
    gc_attempt=5,
    flags=BCAST_WILLQUEUE,
    replicas=3,
    etime=1_900_000_000,
    ctime=1_800_000_000_000_000_042,
    delay=10,
    retry=300,
    nacks=7,
    deliveries=9,
    queue=b"orders \xe2\x82\xac",
    body=b"any\0bytes\xff",
    holders=(ME, OTHER),
)
EXTENDED: Final = attrs.evolve(PLAIN, id=SECOND, extensions=EXTENSIONS)
GOSSIP: Final = (
    Gossip(
        OTHER,
        b"10.0.0.2",
        7712,
        base.PFAIL | LEAVING,
        ping_sent=4711,
        pong_received=815,
        bus_port=17_000,
    ),
)


def journal(*, is_ours: bool) -> list[Record]:
    """Every kind of record, a job in each state, and all extensions."""
    states = range(len(base.STATE_NAMES) - (not is_ours))
    plain: list[Record] = [
        LoadJob(attrs.evolve(PLAIN, id=JOB[:-6] + b"%d-05a1" % state, state=state, flags=DELIVERED))
        for state in states
    ]
    if is_ours:
        plain += [
            LoadJob(EXTENDED),
            LoadJob(attrs.evolve(PLAIN, due=1_800_000_010_000)),
            LoadJob(attrs.evolve(EXTENDED, due=1_800_000_010_000)),
            StoredResult(JOB, b"orders", 1_800_000_000_000, 1_900_000_000_000, b"any\0bytes\xff"),
        ]
    return [*plain, DeleteJob(JOB), STOPPED, STARTED]


def messages() -> Iterator[Message]:
    """Every kind of message."""
    yield from (
        Ping(GOSSIP),
        Pong(GOSSIP, b"eu-1a", b"node-a", b"0123abcd"),
        Meet(GOSSIP),
        Fail(OTHER),
    )
    yield from (ReplJob((PLAIN,)), ReplJob((EXTENDED,), no_reply=True))
    yield from (YourJobs((PLAIN, EXTENDED)), YourJobs((PLAIN,), more=True))
    yield from (GotJob(JOB), Enqueue(JOB, 7), WillQueue(JOB), DelJob(JOB), Working(JOB))
    yield from (Queued(JOB), Queued(JOB, nack=True), Queued(JOB, redelivery=True, told=True))
    yield from (
        SetAck(JOB, 3),
        SetAck(JOB, 3, 0x89ABCDEF),
        GotAck(JOB, known=False),
        GotAck(JOB, known=True),
    )
    yield from (NeedJobs(b"q", 5), NeedJobs(b"q", 5, waits=True), Waiting(b"q", 2))
    yield from (HaveJobs(b"q", 9), Pause(b"q", 3), Purge(b"q"), Purge(b"q", dead=True))
    yield from (Holders(JOB, (ME, OTHER)), AckHolders(JOB, (ME, OTHER)))
    yield from (
        Postponed(JOB, 1500, 2, is_new=True),
        Postponed(JOB, 1500, 2, snoozes=4, is_snooze=True),
        Postponed(JOB, 8_000_000_000, 2, is_new=True),
    )
    yield KeyClaim(1, 2, JOB, 1_800_000_000_000_000_042, SECOND, b"q", b"order-17")
    yield KeyAnswer(1, 2, (KeyFact(JOB, 42, HELD, IN_QUEUE, 60_000, HELD_BACK),))
    yield from (KeyCancel(JOB, b"q", b"order-17"), KeyCancel(JOB, b"q", b"order-17", unless=2))
    yield JobState(JOB, 1000, EXTENSIONS.dead)
    yield Suspect(OTHER, is_vote=True)
    yield JobError(JOB, 1_800_000_000_000, EXTENSIONS.error.text)
    yield Result(JOB, 3, 1_800_000_000_000, 60_000, b"any\0bytes\xff", 0x89ABCDEF)
    yield QueueLimit(b"q", 1_800_000_000_000, 20, 100, 1000, 10, 1, 2, 5, 2000, 3)
    yield from (LimitPoll(b"q", 7), LimitReport(b"q", 3, 7, 2, 4, 5, 30_000, moved=1))
    yield LimitGrant(b"q", 3, 6, 5)
    yield LimitPoll(b"q", 7, b"g")
    yield LimitReport(b"q", 3, 7, 2, 4, 5, 30_000, moved=1, group=b"g")
    yield LimitGrant(b"q", 3, 6, 5, b"g")
    yield Batch((ReplJob((EXTENDED,)), Many(SetAck(JOB, 3), [JOB, SECOND]), Queued(JOB, nack=True)))


def frames() -> Iterator[Frame]:
    """Each in a frame; what the header has besides is in those that carry it."""
    for message in messages():
        frame = Frame(ME, 7711, MYSELF | LEAVING, message)
        if isinstance(message, Ping | Pong | Meet):
            frame.capabilities, frame.incarnation = base.CAPABILITIES, 1_800_000_000_123
            frame.format, frame.version = FORMAT, b"0.1.0"
            frame.ip, frame.bus_port = b"203.0.113.7", 17_711
        yield frame


def rows() -> list[Row]:
    """A trace: the plan of a run, and a row in which every field has a value."""
    full = Row(
        1, "job.queue", "n1", "D-1", "q", "c1", "n2", "ADD", "text \u20ac",
        ref=7, mono=8, wall=1_800_000_000_000, clock=(1, 2, 3),
    )  # fmt: skip
    return [Row(0, "plan", detail="{}"), full, Row(-5, "start", node="n1")]
