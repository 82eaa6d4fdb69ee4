import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from disque_trio.wire.jobs import DamagedError
from disque_trio.wire.journal import decode, encode
from tests.conformance import CONFORMANCE, needs_conformance
from tests.strategies import job_copies, job_ids
from tests.wire.test_jobs import COPY, STORED

ID = b"D-aeecadd2-dNZ9vS2xMWHExBW39zgS0gOV-05a1"
LOADJOB = b"*2\r\n$7\r\nLOADJOB\r\n$131\r\n" + STORED + b"\r\n"
DELJOB = b"*2\r\n$6\r\nDELJOB\r\n$40\r\n" + ID + b"\r\n"


def test_records_are_commands() -> None:
    records = decode(LOADJOB + DELJOB)

    assert records == [LoadJob(COPY), DeleteJob(ID)]
    assert [encode(record) for record in records] == [LOADJOB, DELJOB]


def test_an_empty_file_has_no_records() -> None:
    assert decode(b"") == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (LOADJOB[:-1], "record cut short"),
        (LOADJOB + DELJOB[:5], "record cut short"),
        (b"*1\r\nx\r\n", "not a journal"),
        (b"*1\r\n$4\r\nPING\r\n", "record unknown"),
        (b"*2\r\n$6\r\nDELJOB\r\n$1\r\nD\r\n", "record unknown"),
        (LOADJOB.replace(b"$131", b"$132") + b"\r\n", "job lengths do not add up"),
        (b"*2\r\n$7\r\nLOADJOB\r\n$5\r\nabcde\r\n", "job cut short"),
    ],
)
def test_anything_else_is_damage(data: bytes, reason: str) -> None:
    with pytest.raises(DamagedError) as raised:
        decode(data)

    assert raised.value.reason == reason


@needs_conformance
def test_the_files_of_original_nodes_are_written_back_byte_for_byte() -> None:
    for path in sorted((CONFORMANCE / "aof").glob("*.aof")):
        data = path.read_bytes()

        records = decode(data)

        assert records
        assert b"".join(encode(record) for record in records) == data


@given(st.lists(job_copies().map(LoadJob) | job_ids().map(DeleteJob)))
def test_records_are_read_as_written(records: list[Record]) -> None:
    assert decode(b"".join(encode(record) for record in records)) == records


@given(st.lists(job_copies().map(LoadJob) | job_ids().map(DeleteJob), min_size=1), st.data())
def test_damage_is_found_or_gives_records(records: list[Record], draw: st.DataObject) -> None:
    data = bytearray(b"".join(encode(record) for record in records))
    data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    del data[draw.draw(st.integers(0, len(data))) :]

    with contextlib.suppress(DamagedError):
        decode(bytes(data))
