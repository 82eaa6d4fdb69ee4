"""The cluster bus: frames as the original nodes write and read them (reference 5.2 to 5.4).

Big-endian, but for the jobs inside (`jobs`). Not everything in a frame means something: reserved
bytes are written as zero and not looked at, except the first two, which carry the sender's
capabilities; the sender's address, the count of frames that have none to give, aux numbers and
message flags of types that have no use for them are ignored, as the original does.
"""

import struct
from collections.abc import Callable
from typing import Any, Final

from disque_trio.statemachine.base import NODE_ID_LENGTH, JobId, NodeId
from disque_trio.statemachine.messages import (
    DelJob,
    Enqueue,
    Fail,
    Frame,
    Gossip,
    GossipMessage,
    GotAck,
    GotJob,
    JobCopy,
    Meet,
    Message,
    NeedJobs,
    Pause,
    Ping,
    Pong,
    Queued,
    ReplJob,
    SetAck,
    WillQueue,
    Working,
    YourJobs,
)
from disque_trio.wire import jobs
from disque_trio.wire.jobs import DamagedError

SIGNATURE: Final = b"DbuZ"
VERSION: Final = 1
HEADER_LENGTH: Final = 144
STRANGERS_FRAME: Final = 1 << 18
"""More than any PING, PONG or MEET needs, which is all that strangers have to say."""
_SENDER_END: Final = 56
MAX_FRAME: Final = (1 << 30) + (4 << 20)
"""Longer frames are skipped: no job that fits a client's query buffer, with as many holders as
REPLICATE allows, makes a longer one."""
NO_REPLY: Final = 1
INCR_NACKS: Final = 2
INCR_DELIVERIES: Final = 4
TOLD: Final = 8
"""Ours: original nodes leave this bit alone."""

# Signature, length, version, capabilities, type, count, sender, its address, nothing, its client
# port, its node flags, cluster state, message flags, nothing.
_HEADER: Final = struct.Struct(">4sIHHHH40s46x34xHHBB2x")
_START: Final = struct.Struct(">4sI")
_GOSSIP: Final = struct.Struct(">40sII46sHHHI")
_JOB: Final = struct.Struct(">40sI")
_PAIR: Final = struct.Struct(">II")

Body = tuple[int, int, bytes]
"""What a message puts into its frame: count, message flags, payload."""
Reader = Callable[[bytes, int, int, int, int], Message]
"""Makes a message of the payload in bytes [at, end), the header's count and its message flags."""


class FrameError(Exception):
    """What comes on this link is not the bus protocol, so frames cannot be told apart any more."""


def encode(sender: NodeId, port: int, flags: int, message: Message, capabilities: int = 0) -> bytes:
    """A frame's bytes. `flags` are the sender's own node flags."""
    number, write = _WRITERS[type(message)]
    count, marks, payload = write(message)
    length = HEADER_LENGTH + len(payload)
    header = _HEADER.pack(
        SIGNATURE, length, VERSION, capabilities, number, count, sender, port, flags, 0, marks
    )
    return header + payload


def _write_gossip(message: GossipMessage) -> Body:
    entries = [
        _GOSSIP.pack(
            node.id, node.ping_sent, node.pong_received, node.ip, node.port, node.flags, 0, 0
        )
        for node in message.gossip
    ]
    return len(entries), 0, b"".join(entries)


def _write_fail(message: Fail) -> Body:
    return 0, 0, message.node


def _write_repljob(message: ReplJob) -> Body:
    return 0, NO_REPLY if message.no_reply else 0, _jobs(message.copies)


def _write_yourjobs(message: YourJobs) -> Body:
    return 0, 0, _jobs(message.copies)


def _jobs(copies: tuple[JobCopy, ...]) -> bytes:
    encoded = jobs.encode_all(copies)
    return _PAIR.pack(len(encoded), sum(map(len, encoded))) + b"".join(encoded)


def _write_job(message: GotJob | WillQueue | DelJob | Working) -> Body:
    return 0, 0, _JOB.pack(message.id, 0)


def _write_enqueue(message: Enqueue) -> Body:
    return 0, 0, _JOB.pack(message.id, message.delay)


def _write_queued(message: Queued) -> Body:
    marks = (INCR_NACKS if message.nack else 0) | (INCR_DELIVERIES if message.redelivery else 0)
    if message.told:
        marks |= TOLD
    return 0, marks, _JOB.pack(message.id, 0)


def _write_setack(message: SetAck) -> Body:
    return 0, 0, _JOB.pack(message.id, message.holders)


def _write_gotack(message: GotAck) -> Body:
    return 0, 0, _JOB.pack(message.id, message.known)


def _write_needjobs(message: NeedJobs) -> Body:
    return 0, 0, _PAIR.pack(message.count, len(message.queue)) + message.queue


def _write_pause(message: Pause) -> Body:
    return 0, 0, _PAIR.pack(message.bits, len(message.queue)) + message.queue


_WRITERS: Final[dict[type[Message], tuple[int, Callable[[Any], Body]]]] = {
    Ping: (0, _write_gossip),
    Pong: (1, _write_gossip),
    Meet: (2, _write_gossip),
    Fail: (3, _write_fail),
    ReplJob: (4, _write_repljob),
    GotJob: (5, _write_job),
    Enqueue: (6, _write_enqueue),
    Queued: (7, _write_queued),
    SetAck: (8, _write_setack),
    WillQueue: (9, _write_job),
    GotAck: (10, _write_gotack),
    DelJob: (11, _write_job),
    NeedJobs: (12, _write_needjobs),
    YourJobs: (13, _write_yourjobs),
    Working: (14, _write_job),
    Pause: (15, _write_pause),
}


class FrameParser:
    """Makes frames of one link's bytes, however they are cut.

    A frame that is framed well but wrong inside is left out and counted in `refused`, by reason;
    the caller may empty it. After `error` nothing comes out: the link must be closed.
    """

    __slots__ = ("_knows", "_longest", "_needed", "_rest", "_skip", "error", "refused")

    def __init__(
        self, longest: int = MAX_FRAME, knows: Callable[[NodeId], bool] | None = None
    ) -> None:
        """With `knows`, only senders of whom it says so may send more than `STRANGERS_FRAME`."""
        self.error: FrameError | None = None
        self.refused: dict[str, int] = {}
        self._longest = longest
        self._knows = knows
        self._rest = bytearray()
        self._needed = 0
        """How long `_rest` must be for another look to be worth it."""
        self._skip = 0
        """Bytes still to come of a frame that is too long to be held."""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes complete."""
        if self._rest or self._skip or self.error is not None:
            data = self._joined(data)
        frames: list[Frame] = []
        if not data:
            return frames
        at, here = 0, len(data)
        self._needed = _START.size
        while here - at >= _START.size:
            signature, length = _START.unpack_from(data, at)
            if signature != SIGNATURE or length < HEADER_LENGTH:
                self.error = FrameError(f"no frame starts with {data[at : at + 8].hex()}")
                return frames
            if length > STRANGERS_FRAME and here - at < _SENDER_END:
                self._needed = _SENDER_END
                break
            if length > self._longest or self._is_strangers(length, data, at):
                self._refuse("frame too long")
                self._skip = max(0, at + length - here)
            elif at + length > here:
                self._needed = length
                break
            else:
                self._take(data, at, at + length, frames)
            at += length
        self._rest += memoryview(data)[at:]
        return frames

    def _is_strangers(self, length: int, data: bytes, at: int) -> bool:
        """Nobody may make a node hold much before it is a member of the cluster."""
        if self._knows is None or length <= STRANGERS_FRAME:
            return False
        return not self._knows(bytes(data[at + _SENDER_END - NODE_ID_LENGTH : at + _SENDER_END]))

    def _joined(self, data: bytes) -> bytes:
        """What there is to look at, once it is worth it; until then nothing."""
        if self.error is not None:
            return b""
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            return data[skipped:]
        self._rest += data
        if len(self._rest) < self._needed:
            return b""
        data = bytes(self._rest)
        self._rest.clear()
        return data

    def _take(self, data: bytes, at: int, end: int, frames: list[Frame]) -> None:
        """Make a frame of the bytes in [at, end), or refuse it."""
        (_, _, version, capabilities, number, count, sender, port, flags, _, marks) = (
            _HEADER.unpack_from(data, at)
        )
        read = _READERS.get(number)
        if version != VERSION:
            self._refuse("version unknown")
        elif read is None:
            self._refuse("type unknown")
        else:
            try:
                message = read(data, at + HEADER_LENGTH, end, count, marks)
            except DamagedError as error:
                self._refuse(error.reason)
            else:
                frames.append(Frame(sender, port, flags, message, capabilities))

    def _refuse(self, reason: str) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + 1


def _read_ping(data: bytes, at: int, end: int, count: int, _marks: int) -> Message:
    return Ping(_gossip(data, at, end, count))


def _read_pong(data: bytes, at: int, end: int, count: int, _marks: int) -> Message:
    return Pong(_gossip(data, at, end, count))


def _read_meet(data: bytes, at: int, end: int, count: int, _marks: int) -> Message:
    return Meet(_gossip(data, at, end, count))


def _gossip(data: bytes, at: int, end: int, count: int) -> tuple[Gossip, ...]:
    _expect(end - at == count * _GOSSIP.size)
    entries = []
    for start in range(at, end, _GOSSIP.size):
        node, pinged, ponged, ip, port, flags, _, _ = _GOSSIP.unpack_from(data, start)
        # Behind the NUL may stand the end of a longer address that was there before.
        entries.append(Gossip(node, ip.partition(b"\0")[0], port, flags, pinged, ponged))
    return tuple(entries)


def _read_fail(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    _expect(end - at == NODE_ID_LENGTH)
    return Fail(data[at:end])


def _read_repljob(data: bytes, at: int, end: int, _count: int, marks: int) -> Message:
    copies = _copies(data, at, end)
    if len(copies) != 1:
        raise DamagedError("number of jobs wrong")
    return ReplJob(copies, bool(marks & NO_REPLY))


def _read_yourjobs(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    copies = _copies(data, at, end)
    if not copies:
        raise DamagedError("number of jobs wrong")
    return YourJobs(copies)


def _copies(data: bytes, at: int, end: int) -> tuple[JobCopy, ...]:
    count, at = _pair(data, at, end)
    copies = []
    for _ in range(count):
        copy, at = jobs.decode(data, at, end)
        copies.append(copy)
    if at != end:
        raise DamagedError("number of jobs wrong")
    return tuple(copies)


def _read_gotjob(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    return GotJob(_job(data, at, end)[0])


def _read_enqueue(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    return Enqueue(*_job(data, at, end))


def _read_queued(data: bytes, at: int, end: int, _count: int, marks: int) -> Message:
    return Queued(
        _job(data, at, end)[0],
        bool(marks & INCR_NACKS),
        bool(marks & INCR_DELIVERIES),
        bool(marks & TOLD),
    )


def _read_setack(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    return SetAck(*_job(data, at, end))


def _read_willqueue(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    return WillQueue(_job(data, at, end)[0])


def _read_gotack(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    job_id, known = _job(data, at, end)
    return GotAck(job_id, bool(known))


def _read_deljob(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    return DelJob(_job(data, at, end)[0])


def _read_working(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    return Working(_job(data, at, end)[0])


def _job(data: bytes, at: int, end: int) -> tuple[JobId, int]:
    _expect(end - at == _JOB.size)
    job_id, aux = _JOB.unpack_from(data, at)
    return job_id, aux


def _read_needjobs(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    wanted, at = _pair(data, at, end)
    return NeedJobs(data[at:end], wanted)


def _read_pause(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    bits, at = _pair(data, at, end)
    return Pause(data[at:end], bits)


def _pair(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The first of two numbers, and where what they announce starts: its length is the second."""
    _expect(end - at >= _PAIR.size)
    first, length = _PAIR.unpack_from(data, at)
    _expect(end - at == _PAIR.size + length)
    return first, at + _PAIR.size


def _expect(fits: bool) -> None:
    if not fits:
        raise DamagedError("length wrong for its type")


_READERS: Final[dict[int, Reader]] = {
    0: _read_ping,
    1: _read_pong,
    2: _read_meet,
    3: _read_fail,
    4: _read_repljob,
    5: _read_gotjob,
    6: _read_enqueue,
    7: _read_queued,
    8: _read_setack,
    9: _read_willqueue,
    10: _read_gotack,
    11: _read_deljob,
    12: _read_needjobs,
    13: _read_yourjobs,
    14: _read_working,
    15: _read_pause,
}
