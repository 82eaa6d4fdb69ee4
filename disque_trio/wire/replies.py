"""Replies as bytes: small ones at once, large ones in pieces."""

from collections.abc import Iterator
from typing import Final

from disque_trio.statemachine.base import (
    NULL_ARRAY,
    Failure,
    Lengthy,
    Map,
    Opening,
    Reply,
    Set,
    Spilled,
    Status,
)
from disque_trio.wire.canonical import BULK_HEADERS, SHORT, array_header, bulk_header

_CR: Final = ord("\r")
_LF: Final = ord("\n")
MANY: Final = 128
"""A list with more values is encoded in pieces."""
LARGE: Final = 1 << 14
"""A list with a longer string is encoded in pieces, so that a reply encoded at once is rarely
larger than 2 MB."""
LARGEST: Final = 1 << 20
"""A single string that is longer is encoded in pieces."""
_SOME: Final = 16
"""How many values of a list are encoded at a time."""
_PIECE: Final = 1 << 16
"""How many bytes of a string are copied at a time."""


class TooLargeError(Exception):
    """The reply must be encoded in pieces."""


def encode_reply(reply: Reply, protocol: int = 2) -> bytes:
    """Encode a reply of any size."""
    try:
        return encode_small(reply, protocol)
    except TooLargeError:
        made = list(pieces(reply, protocol))
    failures = (encode_small(each) for each in made if isinstance(each, Failure))
    return next(failures, b"") or b"".join([each for each in made if isinstance(each, bytes)])


def encode_small(reply: Reply, protocol: int = 2) -> bytes:
    """Encode a reply. Raises TooLargeError if it must be encoded in `pieces`. SILENCE and PENDING
    must not be passed in.

    RESP3 has other nulls, which some of its clients require. Maps and sets must not be passed in
    for RESP2. If a body cannot be read from disk, the whole reply is an error.
    """
    if isinstance(reply, Status):
        return encode_status(reply)
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    if isinstance(reply, bytes) and len(reply) <= LARGEST:
        return b"%b\r\n%b\r\n" % (bulk_header(len(reply)), reply)
    lines: list[bytes] = []
    try:
        _write(reply, lines, protocol)
    except OSError as error:
        lines = []
        _write(_unreadable(error), lines, protocol)
    lines.append(b"")
    return b"\r\n".join(lines)


def encode_status(reply: Status) -> bytes:
    """Encode a status, the most frequent reply in a pipeline."""
    text = reply.text
    # Searching for a byte as an int is eight times as fast as for bytes.
    return b"+%b\r\n" % (_one_line(text) if _CR in text or _LF in text else text)


def _write(reply: Reply, lines: list[bytes], protocol: int) -> None:
    if isinstance(reply, list):
        count = len(reply)
        if count > MANY:
            raise TooLargeError
        lines.append(array_header(count))
        _write_items(reply, lines, protocol)
    elif isinstance(reply, bytes):
        if len(reply) > LARGE:
            raise TooLargeError
        lines += (bulk_header(len(reply)), reply)
    elif isinstance(reply, int):
        lines.append(b":%d" % reply)
    elif isinstance(reply, Status | Failure):
        mark = b"+" if isinstance(reply, Status) else b"-"
        lines.append(mark + _one_line(reply.text))
    elif reply is None:
        lines.append(b"$-1" if protocol == 2 else b"_")
    elif isinstance(reply, Map):
        _begin(b"%", len(reply.items), lines)
        _write_items(_flat(reply), lines, protocol)
    elif isinstance(reply, Set):
        _begin(b"~", len(reply.items), lines)
        _write_items(reply.items, lines, protocol)
    else:
        _write_special(reply, lines, protocol)


def _begin(mark: bytes, count: int, lines: list[bytes]) -> None:
    if count > MANY:
        raise TooLargeError
    lines.append(b"%b%d" % (mark, count))


def _flat(reply: Map) -> list[Reply]:
    return [value for pair in reply.items.items() for value in pair]


def _write_special(reply: Reply, lines: list[bytes], protocol: int) -> None:
    if isinstance(reply, Spilled):
        if len(reply) > LARGE:
            raise TooLargeError
        _write(bytes(reply), lines, protocol)
    elif isinstance(reply, Opening):
        lines.append(array_header(reply.count))
    elif isinstance(reply, Lengthy):
        raise TooLargeError
    else:
        assert reply is NULL_ARRAY, reply
        lines.append(b"*-1" if protocol == 2 else b"_")


def _write_items(items: list[Reply], lines: list[bytes], protocol: int) -> None:
    """`_write` for each item, inlined for the most frequent types."""
    for item in items:
        if type(item) is bytes:
            size = len(item)
            if size < SHORT:
                lines.append(BULK_HEADERS[size])
            elif size <= LARGE:
                lines.append(b"$%d" % size)
            else:
                raise TooLargeError
            lines.append(item)
        elif type(item) is not list:
            _write(item, lines, protocol)
        elif len(item) != 3 or not _write_job(lines, *item):
            if len(item) > MANY:
                raise TooLargeError
            lines.append(array_header(len(item)))
            _write_items(item, lines, protocol)


def _write_job(lines: list[bytes], queue: Reply, job_id: Reply, body: Reply) -> bool:
    """Encode a job in a reply of GETJOB. Returns False if the items are not three short strings."""
    if not (isinstance(queue, bytes) and isinstance(job_id, bytes) and isinstance(body, bytes)):
        return False
    one, other, third = len(queue), len(job_id), len(body)
    if not (one < SHORT > other and third < SHORT):
        return False
    headers = BULK_HEADERS
    lines += (b"*3", headers[one], queue, headers[other], job_id, headers[third], body)
    return True


def pieces(reply: Reply, protocol: int = 2) -> Iterator[bytes | Failure]:
    """Encode a large reply in pieces. An empty piece is work without a result yet.

    A Failure is a body that cannot be read from disk. It replaces the whole reply if nothing of
    that has been sent, otherwise one value.
    """
    if isinstance(reply, Lengthy):
        for values in reply.parts:
            if values:
                yield from _items_of(values, protocol)
            else:
                yield b""
    elif isinstance(reply, list):
        yield b"*%d\r\n" % len(reply)
        yield from _items_of(reply, protocol)
    elif isinstance(reply, Map):
        yield b"%%%d\r\n" % len(reply.items)
        yield from _items_of(_flat(reply), protocol)
    elif isinstance(reply, Set):
        yield b"~%d\r\n" % len(reply.items)
        yield from _items_of(reply.items, protocol)
    else:
        assert isinstance(reply, bytes | Spilled), reply
        yield from _string(reply)


def _value(value: Reply, protocol: int) -> Iterator[bytes | Failure]:
    lines: list[bytes] = []
    try:
        _write(value, lines, protocol)
    except TooLargeError:
        yield from pieces(value, protocol)
    except OSError as error:
        yield _unreadable(error)
    else:
        lines.append(b"")
        yield b"\r\n".join(lines)


def _string(text: bytes | Spilled) -> Iterator[bytes | Failure]:
    try:
        text = bytes(text)
    except OSError as error:
        yield _unreadable(error)
        return
    yield b"$%d\r\n" % len(text)
    for at in range(0, len(text), _PIECE):
        yield text[at : at + _PIECE]
    yield b"\r\n"


def _items_of(values: list[Reply], protocol: int) -> Iterator[bytes | Failure]:
    """Encode a list's values without its header."""
    for at in range(0, len(values), _SOME):
        some = values[at : at + _SOME]
        lines: list[bytes] = []
        try:
            _write_items(some, lines, protocol)
        except (TooLargeError, OSError):
            for value in some:
                yield from _value(value, protocol)
        else:
            lines.append(b"")
            yield b"\r\n".join(lines)


def _unreadable(error: OSError) -> Failure:
    reason = str(error.strerror or error).encode()
    return Failure(b"IOERR a body cannot be read from the spill-directory: %b" % reason)


def _one_line(text: bytes) -> bytes:
    """Replace line ends, which would end the reply, with spaces."""
    return text.replace(b"\r", b" ").replace(b"\n", b" ")
