"""Rows that become jobs, without Spark."""

from typing import Any

import pyarrow as pa
import pytest

from disque_trio.pipeline.connector import options
from disque_trio.pipeline.connector.rows import Rows
from disque_trio.pipeline.errors import PipelineError


def words(row: dict[str, Any], **given: str) -> list[bytes]:
    """The options of the ADDJOB of this row, without what each has."""
    rows = Rows(options.sink({"queue": "q", "hold": "0", **given}))
    (job,) = rows.of(pa.RecordBatch.from_pylist([{"body": "b", **row}]))
    return list(job.terms.words[2:])


def test_back_off_may_be_an_option_or_a_column() -> None:
    assert words({}, backoff="5", maxbackoff="60") == [b"BACKOFF", b"5", b"MAXBACKOFF", b"60"]
    assert words({"backoff": 7}, backoff="5") == [b"BACKOFF", b"7"]
    assert words({"backoff": 7, "maxbackoff": 9}) == [b"BACKOFF", b"7", b"MAXBACKOFF", b"9"]


def test_a_row_that_does_not_back_off_needs_no_limit_of_it() -> None:
    assert words({"backoff": None}, maxbackoff="60") == []


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"backoff": 0}, "its backoff is 0, and must be from 1 to 316224000"),
        ({"backoff": 70}, "its maxbackoff is 60, and its backoff 70"),
        ({"backoff": 5, "maxbackoff": -1}, "its maxbackoff is -1"),
    ],
)
def test_a_row_whose_back_off_contradicts_itself_is_refused(row: dict[str, int], said: str) -> None:
    with pytest.raises(PipelineError, match=said):
        words(row, maxbackoff="60")


def test_sync_may_be_an_option_or_a_column() -> None:
    assert words({}, replicate="3", sync="2")[:2] == [b"SYNC", b"2"]
    assert words({"sync": 1}, replicate="3", sync="2")[:2] == [b"SYNC", b"1"]
    with pytest.raises(PipelineError, match="its sync is 3, and its replicate 2"):
        words({"sync": 3}, replicate="2")


def test_long_times_are_sent_beside_an_option_of_ours() -> None:
    year = {"delay": 31_536_000, "ttl": 63_072_000}

    assert words(year)[-2:] == [b"PRIORITY", b"0"]
    assert words({**year, "priority": 2})[-2:] == [b"PRIORITY", b"2"]
    assert words({"retry": 3_000_000}, ttl="4000000")[-2:] == [b"PRIORITY", b"0"]
    with pytest.raises(PipelineError, match="its retry is 400000000"):
        words({"retry": 400_000_000})
