"""Valid input of every kind, for fuzzers to start from."""

from typing import Final

import attrs

from disque_trio.statemachine.base import MYSELF, NodeId
from disque_trio.statemachine.commands.table import ROWS
from disque_trio.statemachine.extensions import DeadState
from disque_trio.statemachine.keyfacts import HELD, KeyFact
from disque_trio.statemachine.messages import (
    DelJob,
    Enqueue,
    Fail,
    Gossip,
    GotAck,
    GotJob,
    HaveJobs,
    Holders,
    JobState,
    KeyAnswer,
    KeyCancel,
    KeyClaim,
    Meet,
    Message,
    NeedJobs,
    Pause,
    Ping,
    Pong,
    Postponed,
    Purge,
    Queued,
    ReplJob,
    SetAck,
    Waiting,
    WillQueue,
    Working,
    YourJobs,
)
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from disque_trio.wire import frames
from disque_trio.wire.journal import Format
from disque_trio.wire.resp import encode_request
from tests.conformance import JOURNALS, bus_messages
from tests.rig import JOB, N2, N3, UNKNOWN
from tests.wire.journals import file_of
from tests.wire.test_jobs import COPY

OTHER: Final = attrs.evolve(COPY, id=JOB, state=0, retry=0, body=b"", holders=(N2, N3))
MESSAGES: Final[tuple[Message, ...]] = (
    Ping((Gossip(N3, b"127.0.0.3", 7711, 0),)),
    Pong((Gossip(UNKNOWN, b"127.0.0.9", 7711, 0), Gossip(N3, b"", 0, 4))),
    Meet(()),
    Fail(N3),
    ReplJob((COPY,)),
    ReplJob((OTHER,), no_reply=True),
    YourJobs((COPY, OTHER)),
    GotJob(JOB),
    Enqueue(JOB, 1),
    Queued(JOB),
    SetAck(JOB, 2),
    WillQueue(JOB),
    GotAck(JOB, known=True),
    DelJob(JOB),
    NeedJobs(b"q1", 5),
    Waiting(b"q1", 2),
    HaveJobs(b"q1", 3),
    Holders(JOB, (b"b" * 40, b"c" * 40)),
    Postponed(JOB, 5000, 1, is_new=True),
    Postponed(JOB, 5000, 1, snoozes=2, is_snooze=True),
    Working(JOB),
    Pause(b"q1", 3),
    Purge(b"q1"),
    JobState(JOB, 5000, DeadState(1, True, b"why", 60_000)),
    Purge(b"q", dead=True),
    KeyClaim(1, 2, JOB, 3, bytes(40), b"q1", b"key"),
    KeyAnswer(1, 2, (KeyFact(JOB, 3, HELD, 0, 0),)),
    KeyCancel(JOB, b"q1", b"key"),
)
RECORDS: Final[tuple[Record, ...]] = (LoadJob(COPY), DeleteJob(JOB), LoadJob(OTHER))
HARMFUL: Final = frozenset({"shutdown", "debug", "config", "cluster", "client", "bgrewriteaof"})
"""Commands that would end a test or change the node, and find nothing."""


def journals() -> list[bytes]:
    """Append-only files of both formats."""
    files = [file_of(list(RECORDS), format_) for format_ in Format]
    return [*files, *[path.read_bytes() for path in JOURNALS]]


def bus_frames(sender: NodeId = N2) -> list[bytes]:
    """A frame of each type, as this node would send it."""
    return [frames.encode(sender, 7711, MYSELF, message) for message in MESSAGES]


def recorded_frames() -> list[bytes]:
    """Frames that were recorded between original nodes."""
    return [bytes.fromhex(row["hex"]) for row in bus_messages()]


def requests() -> list[bytes]:
    """One request for each command that does no harm, with plausible words."""
    harmless = [row for row in ROWS if row.name not in HARMFUL]
    found = [encode_request([row.name.encode(), *_WORDS[: abs(row.arity) - 1]]) for row in harmless]
    return [*found, *[encode_request(line.split()) for line in _LINES], b"PING inline\r\n"]


_WORDS: Final = (b"q1", b"body", b"100", b"NOHANG", b"FROM")
_LINES: Final = (
    b"ADDJOB q1 body 0 REPLICATE 1 RETRY 5 TTL 60 DELAY 1 MAXLEN 1000 ASYNC",
    b"ADDJOB q2 x 10 RETRY 0 TTL 5",
    b"GETJOB NOHANG TIMEOUT 10 COUNT 3 WITHCOUNTERS FROM q1 q2 q3",
    b"GETJOB TIMEOUT 50 FROM q9",
    b"ACKJOB " + JOB,
    b"FASTACK " + JOB + b" " + JOB,
    b"NACK " + JOB,
    b"NACK " + JOB + b" DELAY 1.5",
    b"SHOW " + JOB,
    b"QSCAN 0 COUNT 10 BUSYLOOP MINLEN 1 IMPORTRATE 1",
    b"JSCAN 0 COUNT 10 QUEUE q1 STATE queued STATE acked REPLY all",
    b"PAUSE q3 in bcast",
    b"HELLO 3 AUTH default guess SETNAME x",
    b"AUTH guess",
    b"MONITOR",
)
