"""Small files in both formats, for the tests of their readers."""

from hypothesis import strategies as st

from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from disque_trio.wire.journal import Format, Reader, Writer
from tests.strategies import job_copies, job_ids

SALT = 0x5EA50D1E


def records(min_size: int = 0) -> st.SearchStrategy[list[Record]]:
    """What a node may write down."""
    loads = job_copies().map(LoadJob)
    return st.lists(loads | job_ids().map(DeleteJob), min_size=min_size, max_size=8)


def file_of(records: list[Record], format_: Format, salt: int = SALT) -> bytes:
    """A whole file."""
    writer = Writer(format_, salt)
    return writer.header + b"".join([writer.encode(record) for record in records])


def read(data: bytes, chunk: int = 1 << 20) -> tuple[list[Record], int]:
    """The records of a file, and how many bytes at its end are no whole record."""
    reader = Reader()
    found: list[Record] = []
    for at in range(0, len(data), chunk):
        found += reader.feed(data[at : at + chunk])
    return found, reader.finish()
