"""Files that a newer version of disque_trio might write."""

import struct
from typing import Final

import google_crc32c

from disque_trio.statemachine.base import FORMAT
from disque_trio.statemachine.records import LoadJob
from disque_trio.wire import framed, jobs
from disque_trio.wire.journal import Format, Writer, WrittenBy
from tests.wire.journals import SALT
from tests.wire.test_jobs import COPY

LATER: Final = "9.8.7"
WRITER: Final = Writer(Format.FRAMED, SALT)
KNOWN: Final = WRITER.encode(WrittenBy(FORMAT + 1, LATER).note()) + WRITER.encode(LoadJob(COPY))
"""What this version reads as well: a note of who has written it, and one job."""


def record(kind: bytes, payload: bytes) -> bytes:
    """A sound record."""
    size = len(payload)
    head = framed.MARK + kind + struct.pack("<II", size, size ^ 0xFFFF_FFFF)
    return framed.seal(SALT, head + payload)


def with_byte(at: int, value: int) -> bytes:
    """The stored job, with another byte."""
    data = bytearray(jobs.encode(COPY))
    data[at] = value
    return bytes(data)


def layout(version: bytes) -> bytes:
    """A file of another layout, of which only the header can be known."""
    start = framed.MAGIC.replace(b"1", version) + SALT.to_bytes(4, "little")
    return start + struct.pack("<I", google_crc32c.extend(0, start)) + b"anything else"


RECORDS: Final = {
    "a kind of record": record(b"ZZ", b"whatever"),
    "a job state": record(b"LJ", with_byte(44, 5)),
    "a longer record of a known kind": record(b"DJ", COPY.id + b"more"),
    "a field with another length": record(
        b"LX",
        struct.pack("<I", len(jobs.encode(COPY)) + 2) + jobs.encode(COPY)[4:] + b"\1\0\0\0\0\0",
    ),
}
"""Sound records that are not known here, by what is new in them."""
