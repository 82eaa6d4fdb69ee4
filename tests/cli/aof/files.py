"""Small files to look at and to mend."""

import time

import attrs

from disque_trio.statemachine.base import ACKED, QUEUED
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from disque_trio.wire.journal import Format
from tests.wire.journals import file_of
from tests.wire.test_jobs import COPY


def load(
    number: int,
    queue: bytes = b"q1",
    body: bytes = b"body1",
    state: int = QUEUED,
    nacks: int = 0,
    left_s: int = 3600,
) -> LoadJob:
    """A job that expires in so many seconds."""
    job_id = b"D-8f3c6c1a-%024d-05a1" % number
    etime = int(time.time()) + left_s
    return LoadJob(
        attrs.evolve(COPY, id=job_id, queue=queue, body=body, state=state, nacks=nacks, etime=etime)
    )


def delete(number: int) -> DeleteJob:
    return DeleteJob(load(number).copy.id)


RECORDS: list[Record] = [
    load(1),
    load(2, queue=b"other"),
    delete(1),
    load(2, queue=b"other", nacks=1),
    load(3, body=b"\xff\n"),
    load(4, left_s=-5),
    load(5, state=ACKED),
]
"""Two jobs are alive, one is deleted, one has expired, one is acknowledged."""


def framed(records: list[Record] = RECORDS) -> bytes:
    return file_of(records, Format.FRAMED)


def disque(records: list[Record] = RECORDS) -> bytes:
    return file_of(records, Format.DISQUE)
