"""The cluster bus: frames as the original nodes write and read them (original 5.2 to 5.4).

Big-endian, except for the jobs inside (`jobs`). Reserved bytes are written as zero and ignored,
except in PING, PONG and MEET: the first two have the sender's capabilities, eight its incarnation,
and those after them its formats and version. The sender's address and the two bytes after it have
its announced address and bus port. As in the original, counts, aux numbers and message flags are
ignored in types that do not use them. `payloads` has the layouts after the header, `batches` that
of a batch.
"""

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from disque_trio.statemachine.base import NODE_ID_LENGTH, NodeId
from disque_trio.statemachine.messages import Batch, Frame, Message
from disque_trio.wire import batches, payloads
from disque_trio.wire.batches import BATCH, Part
from disque_trio.wire.jobs import DamagedError
from disque_trio.wire.payloads import Body, Reader

SIGNATURE: Final = b"DbuZ"
PROOF: Final = b"DisqTr"
"""The beginning of the messages of the authentication by cluster secret."""
_TLS: Final = (b"\x15\x03", b"\x16\x03")
VERSION: Final = 1
HEADER_LENGTH: Final = 144
UNKNOWN_SENDER_LIMIT: Final = 1 << 18
"""The maximum length of a frame of an unknown node: more than any PING, PONG or MEET needs, and
unknown nodes send nothing else."""
_TYPE: Final = 12
"""Offset of the type, which has two bytes."""
_SENDER_END: Final = 56
MAX_FRAME: Final = (1 << 30) + (4 << 20)
"""The maximum length of a frame; longer ones are skipped. It suffices for a job that fits a
client's query buffer, with the maximum number of holders."""

# Signature, length, protocol version, capabilities, type, count, sender, its address, bus port,
# incarnation, formats, version, client port and node flags, cluster state, message flags, padding.
_LAST_GOSSIP: Final = 2
"""The last of the types PING, PONG and MEET."""
_HEADER: Final = struct.Struct(">4sIHHHH40s46sHQH14s8xHHBB2x")
_START: Final = struct.Struct(">4sI")
_ABOUT_ALL: Final = struct.Struct(">8xHHHH40s48xQ24xHHxB2x")
"""The fields that are read of each header: `_HEADER` without its start, and without the fields of
PING, PONG and MEET only: address, bus port, formats and version."""
_ABOUT_SENDER: Final = struct.Struct(">56x46sH8xH14s16x")
"""The fields of PING, PONG and MEET only."""

_WRITERS: Final[dict[type[Message], tuple[int, Callable[[Any], Body]]]] = {
    **payloads.WRITERS,
    Batch: (BATCH, batches.write),
}
_READERS: Final[dict[int, Reader]] = {**payloads.READERS, BATCH: batches.read}


class FrameError(Exception):
    """The input of this link is not the bus protocol, so the next frame cannot be found."""


def encode(
    sender: NodeId,
    port: int,
    flags: int,
    message: Message,
    capabilities: int = 0,
    incarnation: int = 0,
    format: int = 0,
    version: bytes = b"",
    ip: bytes = b"",
    bus_port: int = 0,
) -> bytes:
    """Encode a frame. `flags` are the sender's own node flags; the other arguments are as in
    `Frame`."""
    number, write = _WRITERS[type(message)]
    count, marks, payload = write(message)
    length = HEADER_LENGTH + len(payload)
    header = _HEADER.pack(
        SIGNATURE, length, VERSION, capabilities, number, count, sender, ip, bus_port, incarnation,
        format, version, port, flags, 0, marks,
    )  # fmt: skip
    return header + payload


def encode_frame(frame: Frame) -> bytes:
    """Encode a `Frame`; parsing the bytes returns an equal one."""
    return encode(
        frame.sender, frame.port, frame.flags, frame.message, frame.capabilities, frame.incarnation,
        frame.format, frame.version, frame.ip, frame.bus_port,
    )  # fmt: skip


def encode_parts(sender: NodeId, port: int, flags: int, parts: Sequence[Part]) -> list[bytes]:
    """The frames of a batch: usually one, and several for a long batch."""
    about = _about_batch(sender, port, flags)
    return [
        _START.pack(SIGNATURE, HEADER_LENGTH + len(body)) + about + body
        for body in batches.bodies(parts)
    ]


@lru_cache(maxsize=16)
def _about_batch(sender: NodeId, port: int, flags: int) -> bytes:
    """The part of a batch's header after the length."""
    header = _HEADER.pack(
        SIGNATURE, 0, VERSION, 0, BATCH, 0, sender, b"", 0, 0, 0, b"", port, flags, 0, 0
    )
    return header[_START.size :]


def one_by_one(frame: bytes) -> list[bytes]:
    """Split a frame into frames that original nodes can read. A damaged frame is returned
    unchanged: its receiver will refuse it."""
    if int.from_bytes(frame[_TYPE : _TYPE + 2], "big") != BATCH:
        return [frame]
    found = FrameParser().feed(frame)
    if not found:
        return [frame]
    [whole] = found
    return [
        encode(whole.sender, whole.port, whole.flags, message, whole.capabilities)
        for message in whole.messages
    ]


class FrameParser:
    """Parses the bytes of one link, in pieces of any size, into frames.

    A frame with a valid header and a damaged payload is dropped and counted in `refused`, by
    reason; the caller may clear these counts. After `error` there are no more frames: the link must
    be closed.
    """

    __slots__ = ("_knows", "_longest", "_needed", "_rest", "_skip", "error", "refused")

    def __init__(
        self, longest: int = MAX_FRAME, knows: Callable[[NodeId], bool] | None = None
    ) -> None:
        """With `knows`, frames of senders for which it returns False are limited to
        `UNKNOWN_SENDER_LIMIT`."""
        self.error: FrameError | None = None
        self.refused: dict[str, int] = {}
        self._longest = longest
        self._knows = knows
        self._rest = bytearray()
        self._needed = 0
        """How long `_rest` must be before it is parsed again."""
        self._skip = 0
        """How many bytes of a skipped frame are still missing."""

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
                self.error = _no_frame(data[at : at + 8])
                return frames
            if length > UNKNOWN_SENDER_LIMIT and here - at < _SENDER_END:
                self._needed = _SENDER_END
                break
            if length > self._longest or self._exceeds_limit(length, data, at):
                self._refuse("frame too long")
                self._skip = max(0, at + length - here)
            elif at + length > here:
                self._needed = length
                break
            else:
                self._take(data, at, at + length, frames)
            at += length
        if at < here:
            self._rest += memoryview(data)[at:]
            if not SIGNATURE.startswith(self._rest[: len(SIGNATURE)]):
                self.error = _no_frame(bytes(self._rest))
        return frames

    def _exceeds_limit(self, length: int, data: bytes, at: int) -> bool:
        """Is the frame too long for its sender? Only members may cause this node to buffer long
        frames."""
        if self._knows is None or length <= UNKNOWN_SENDER_LIMIT:
            return False
        return not self._knows(bytes(data[at + _SENDER_END - NODE_ID_LENGTH : at + _SENDER_END]))

    def _joined(self, data: bytes) -> bytes:
        """All buffered bytes, once a frame can be complete; empty until then."""
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
        """Decode the frame in bytes [at, end), or refuse it."""
        (
            protocol, capabilities, number, count, sender, incarnation, port, flags, marks,
        ) = _ABOUT_ALL.unpack_from(data, at)  # fmt: skip
        read = _READERS.get(number)
        if protocol != VERSION:
            self._refuse("version unknown")
        elif read is None:
            self._refuse("type unknown")
        else:
            try:
                message = read(data, at + HEADER_LENGTH, end, count, marks)
            except DamagedError as error:
                self._refuse(error.reason)
            else:
                frame = Frame(sender, port, flags, message, capabilities, incarnation)
                if number <= _LAST_GOSSIP:
                    ip, bus_port, format, version = _ABOUT_SENDER.unpack_from(data, at)
                    frame.format, frame.version = format, version.rstrip(b"\0")
                    frame.ip, frame.bus_port = ip.partition(b"\0")[0], bus_port
                frames.append(frame)

    def _refuse(self, reason: str) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + 1


def _no_frame(start: bytes) -> FrameError:
    """The error for bytes that are no frame, with a hint if they are recognized."""
    if start.startswith(PROOF):
        return FrameError("it has a cluster secret, and this node has none: give all the same one")
    if start.startswith(_TLS):
        return FrameError("it speaks TLS: set tls-cluster on all nodes or on none")
    text = start.decode("latin-1")
    shown = repr(text) if text.isascii() and text.isprintable() else start.hex()
    return FrameError(f"no frame starts with {shown}")
