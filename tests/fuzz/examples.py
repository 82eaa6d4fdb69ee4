"""Valid input of every kind, for fuzzers to start from."""

from typing import Final

import attrs

from disque_trio.statemachine.base import MYSELF, NodeId
from disque_trio.statemachine.commands.table import ROWS
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from disque_trio.wire import frames
from disque_trio.wire.journal import Format
from disque_trio.wire.resp import encode_request
from tests.conformance import JOURNALS, bus_messages
from tests.conformance.versions.examples import messages
from tests.rig import JOB, N2, N3
from tests.wire.journals import file_of
from tests.wire.test_jobs import COPY

OTHER: Final = attrs.evolve(COPY, id=JOB, state=0, retry=0, body=b"", holders=(N2, N3))
RECORDS: Final[tuple[Record, ...]] = (LoadJob(COPY), DeleteJob(JOB), LoadJob(OTHER))
HARMFUL: Final = frozenset({"shutdown", "debug", "config", "cluster", "client", "bgrewriteaof"})
"""Commands that would end a test or change the node, and find nothing."""


def journals() -> list[bytes]:
    """Append-only files of both formats."""
    files = [file_of(list(RECORDS), format_) for format_ in Format]
    return [*files, *[path.read_bytes() for path in JOURNALS]]


def bus_frames(sender: NodeId = N2) -> list[bytes]:
    """A frame of each type, as this node would send it."""
    return [frames.encode(sender, 7711, MYSELF, message) for message in messages()]


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
