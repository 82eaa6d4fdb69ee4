"""The append-only file's records, as bytes and back (reference 7.1). Reads and writes no files.

A record is a command as a client would send it, in canonical form; there are two. LOADJOB carries
a whole job in storage form, DELJOB an id.
"""

from disque_trio.statemachine.base import JOB_ID_LENGTH
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from disque_trio.wire import jobs
from disque_trio.wire.jobs import DamagedError
from disque_trio.wire.resp import RequestParser, encode_request


def encode(record: Record) -> bytes:
    """A record's bytes."""
    if isinstance(record, LoadJob):
        return encode_request([b"LOADJOB", jobs.encode(record.copy)])
    return encode_request([b"DELJOB", record.id])


def decode(data: bytes) -> list[Record]:
    """The records of a file. Raises DamagedError if there is anything else, or half of one."""
    parser = RequestParser()
    records = [_record(request) for request in parser.feed(data)]
    if parser.error is not None:
        raise DamagedError("not a journal")
    if parser.buffered:
        raise DamagedError("record cut short")
    return records


def _record(request: list[bytes]) -> Record:
    match request:
        case [b"LOADJOB", serialized]:
            copy, end = jobs.decode(serialized)
            if end != len(serialized):
                raise DamagedError("job lengths do not add up")
            return LoadJob(copy)
        case [b"DELJOB", job_id] if len(job_id) == JOB_ID_LENGTH:
            return DeleteJob(job_id)
        case _:
            raise DamagedError("record unknown")
