"""Replies as bytes."""

from typing import Final

from disque_trio.statemachine.base import NULL_ARRAY, Failure, Map, Reply, Set, Spilled, Status
from disque_trio.wire.canonical import BULK_HEADERS, SHORT, array_header, bulk_header

_CR: Final = ord("\r")
_LF: Final = ord("\n")


def encode_reply(reply: Reply, protocol: int = 2) -> bytes:
    """A reply's bytes. SILENCE and PENDING have none and must not be passed in.

    Version 3 of the protocol has other nulls, which some of its clients require; maps and sets must
    not be passed in for clients of version 2. If a body cannot be read from disk, the whole reply
    is an error.
    """
    if isinstance(reply, Status):
        return encode_status(reply)
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    lines: list[bytes] = []
    try:
        _write(reply, lines, protocol)
    except OSError as error:
        reason = _one_line(str(error.strerror or error).encode())
        return b"-IOERR a body cannot be read from the spill-directory: %b\r\n" % reason
    lines.append(b"")
    return b"\r\n".join(lines)


def encode_status(reply: Status) -> bytes:
    """The bytes of a status, the most frequent reply in a pipeline."""
    text = reply.text
    # Searching for a byte as an int is eight times as fast as for bytes.
    return b"+%b\r\n" % (_one_line(text) if _CR in text or _LF in text else text)


def _write(reply: Reply, lines: list[bytes], protocol: int) -> None:
    if isinstance(reply, bytes):
        lines += (bulk_header(len(reply)), reply)
    elif isinstance(reply, list):
        lines.append(array_header(len(reply)))
        _write_items(reply, lines, protocol)
    elif isinstance(reply, int):
        lines.append(b":%d" % reply)
    elif isinstance(reply, Status | Failure):
        mark = b"+" if isinstance(reply, Status) else b"-"
        lines.append(mark + _one_line(reply.text))
    elif reply is None:
        lines.append(b"$-1" if protocol == 2 else b"_")
    elif isinstance(reply, Spilled):
        _write(bytes(reply), lines, protocol)
    elif isinstance(reply, Map):
        lines.append(b"%%%d" % len(reply.items))
        for key, value in reply.items.items():
            _write(key, lines, protocol)
            _write(value, lines, protocol)
    elif isinstance(reply, Set):
        lines.append(b"~%d" % len(reply.items))
        _write_items(reply.items, lines, protocol)
    else:
        assert reply is NULL_ARRAY, reply
        lines.append(b"*-1" if protocol == 2 else b"_")


def _write_items(items: list[Reply], lines: list[bytes], protocol: int) -> None:
    """`_write` for each item, inlined for the most frequent types."""
    for item in items:
        if type(item) is bytes:
            size = len(item)
            lines.append(BULK_HEADERS[size] if size < SHORT else b"$%d" % size)
            lines.append(item)
        elif type(item) is not list:
            _write(item, lines, protocol)
        elif len(item) != 3 or not _write_job(lines, *item):
            lines.append(array_header(len(item)))
            _write_items(item, lines, protocol)


def _write_job(lines: list[bytes], queue: Reply, job_id: Reply, body: Reply) -> bool:
    """A job in a reply of GETJOB. False if the items are not three short strings."""
    if not (isinstance(queue, bytes) and isinstance(job_id, bytes) and isinstance(body, bytes)):
        return False
    one, other, third = len(queue), len(job_id), len(body)
    if not (one < SHORT > other and third < SHORT):
        return False
    headers = BULK_HEADERS
    lines += (b"*3", headers[one], queue, headers[other], job_id, headers[third], body)
    return True


def _one_line(text: bytes) -> bytes:
    """The text with spaces in place of line ends, which would end the reply."""
    return text.replace(b"\r", b" ").replace(b"\n", b" ")
