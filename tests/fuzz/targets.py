"""Parsers of untrusted bytes, each with what must hold for any input.

A target raises nothing for any input, but AssertionError where it finds a bug. Every parser of a
stream must also find the same in it however it is cut.
"""

import contextlib
import itertools
import struct
from collections.abc import Callable
from datetime import datetime
from typing import Final

import attrs
import google_crc32c

from disque_trio.statemachine.nodesfile import NodesFileError, parse_nodes
from disque_trio.statemachine.records import Record
from disque_trio.wire import framed, frames, salvage
from disque_trio.wire.commandlog import NoPlaceError
from disque_trio.wire.jobs import DamagedError
from disque_trio.wire.journal import DamagedFileError, Format, Reader, Writer
from disque_trio.wire.requests import RequestParser
from disque_trio.wire.resp import ProtocolError, ReplyParser
from disque_trio.wire.words import UnbalancedQuotesError, split
from disque_trio.worker import codec
from disque_trio.worker.arguments import Arguments
from disque_trio.worker.envelope import BadBodyError, NewerBodyError, write
from disque_trio.worker.interop.payloads import read_payload
from tests.fuzz import examples
from tests.parsing import all_requests
from tests.rig import CALM, N2, Rig


@attrs.frozen
class Target:
    """One parser, and valid inputs to start from."""

    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


def _halves(data: bytes) -> tuple[bytes, bytes]:
    """Cut at a place that depends on the bytes."""
    at = sum(data[:8]) % (len(data) + 1)
    return data[:at], data[at:]


# The append-only file.


def _journal(data: bytes) -> None:
    reader = Reader()
    found = _records(reader, data)
    again = Reader()
    in_halves = [record for half in _halves(data) for record in _records(again, half)]
    assert in_halves == found
    assert again.offset == reader.offset <= len(data)
    if reader.format is not None:
        writer = reader.writer()
        # The original's format may have times that it reads, and that it misreads on the bus.
        with contextlib.suppress(NoPlaceError):
            whole = writer.header + b"".join(map(writer.encode, found))
            assert whole == data[: reader.offset] or not found
    with contextlib.suppress(DamagedFileError):
        assert reader.finish() == len(data) - reader.offset


def _records(reader: Reader, data: bytes) -> list[Record]:
    try:
        return reader.feed(data)
    except DamagedFileError:
        return []


def _payloads(data: bytes) -> None:
    """Any payloads, in well-formed records."""
    header = Writer(Format.FRAMED, 1).header
    records = [_framed_by_hand(part) for part in data.split(framed.MARK)]
    _journal(header + b"".join(records))
    _salvage(header + b"".join(records[1:]) + data)


def _framed_by_hand(payload: bytes) -> bytes:
    """As `framed.encode` does it, for payloads that are no job."""
    kind, payload = payload[:2].ljust(2, b"L"), payload[2:]
    size = len(payload)
    frame = framed.MARK + kind + struct.pack("<II", size, size ^ 0xFFFF_FFFF) + payload
    return frame + struct.pack("<I", google_crc32c.extend(1, frame))


def _salvage(data: bytes) -> None:
    with contextlib.suppress(DamagedError):
        at = 0
        for part in salvage.salvage(data):
            if isinstance(part, salvage.Gap):
                assert at <= part.start < part.end <= len(data)
                at = part.end


def _journal_and_salvage(data: bytes) -> None:
    _journal(data)
    _salvage(data)


# Links and connections.


def _frames(data: bytes) -> None:
    whole, cut = (frames.FrameParser(knows=_is_known) for _ in range(2))
    found = whole.feed(data)
    assert [frame for half in _halves(data) for frame in cut.feed(half)] == found
    assert cut.refused == whole.refused
    assert (cut.error is None) == (whole.error is None)
    for frame in found:
        again = frames.FrameParser().feed(
            frames.encode(frame.sender, frame.port, frame.flags, frame.message, frame.capabilities)
        )
        assert len(again) == 1


def _is_known(sender: bytes) -> bool:
    return sender == N2


def _requests(data: bytes) -> None:
    whole, cut = RequestParser(), RequestParser()
    found = all_requests(whole, data)
    assert [request for half in _halves(data) for request in all_requests(cut, half)] == found
    assert (cut.error and cut.error.text) == (whole.error and whole.error.text)
    assert whole.buffered <= len(data)


def _replies(data: bytes) -> None:
    assert _fed(_halves(data)) == _fed((data,))


def _fed(pieces: tuple[bytes, ...]) -> str:
    parser = ReplyParser()
    try:
        return repr(list(itertools.chain.from_iterable([parser.feed(piece) for piece in pieces])))
    except ProtocolError as error:
        return error.text.decode("latin-1")


def _lines(data: bytes) -> None:
    with contextlib.suppress(UnbalancedQuotesError):
        split(data)


def _nodes(data: bytes) -> None:
    with contextlib.suppress(NodesFileError):
        parse_nodes(data)


# The bodies of jobs.


def _bodies(data: bytes) -> None:
    with contextlib.suppress(BadBodyError, NewerBodyError):
        found = read_payload(data, 1 << 20, ("resque", "sidekiq"))
        args, kwargs = _ARGUMENTS.unpack(found)
        assert isinstance(args[0] if args else kwargs["a"], int)


def _task(a: int, b: dict[str, list[datetime]] | None = None, *rest: bytes, c: str = "") -> None:
    raise AssertionError("it is not called")


_ARGUMENTS: Final = Arguments("task", _task)


def _bodies_seeds() -> list[bytes]:
    packed = _ARGUMENTS.pack([3, {"b": []}, b"rest"], {"c": "c"}, "msgpack")
    envelope = codec.envelope("msgpack", task="t", args=packed[0], kwargs=packed[1])
    return [
        b'{"task":"t","args":[3,{"b":["2026-11-23T04:00:00Z"]},"aGk="],"kwargs":{"c":"x"}}',
        b'{"task":"t","kwargs":{"a":3},"key":"k","headers":{"tries":1,"due":1e9},"v":1}',
        b'{"class":"T","args":[3,null],"jid":"b4a5","retry":true,"at":1760000000.5}',
        write(envelope),
    ]


# A whole machine, whose invariants are checked after each input.


def _member(data: bytes) -> None:
    """A member sends anything, and unknown nodes speak on its link."""
    rig = Rig(peers=2, config=CALM)
    link = rig.machine.accepted("127.0.0.1", "127.0.0.2", rig.now)
    for frame in frames.FrameParser().feed(data):
        rig.machine.message(link, frame, rig.now)
        rig.take()
    rig.advance(2000)


def _client(data: bytes) -> None:
    rig = Rig(peers=1, config=CALM)
    for request in all_requests(RequestParser(), data):
        if rig.client in rig.node.clients.values():
            rig.offer(*request)
    rig.advance(2000)


def _nodes_seeds() -> list[bytes]:
    return [
        b"%b 127.0.0.1:7711 myself 0 0 connected\n%b 127.0.0.2:7712 noflags 0 0 disconnected\n"
        % (b"a" * 40, b"b" * 40)
    ]


TARGETS: Final = {
    "journal": Target(_journal_and_salvage, examples.journals),
    "payloads": Target(_payloads, lambda: [file[20:] for file in examples.journals()]),
    "frames": Target(_frames, lambda: examples.bus_frames() + examples.recorded_frames()),
    "requests": Target(_requests, examples.requests),
    "replies": Target(
        _replies, lambda: [b"*2\r\n$1\r\na\r\n:1\r\n", b"%1\r\n+a\r\n-b\r\n", b"_\r\n"]
    ),
    "lines": Target(_lines, lambda: [b"set \"a\\x00\" 'b'\r\n", b"\xff\\n"]),
    "nodes": Target(_nodes, _nodes_seeds),
    "bodies": Target(_bodies, _bodies_seeds),
    "member": Target(_member, examples.bus_frames),
    "client": Target(_client, examples.requests),
}
