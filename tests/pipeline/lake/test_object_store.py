"""A lake in an object store: the same rows, two writers, a writer that is killed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from disque_trio.pipeline.lake import asking
from disque_trio.pipeline.lake.compaction import compact
from disque_trio.pipeline.lake.duck import Duck
from disque_trio.pipeline.lake.files import reason
from disque_trio.pipeline.lake.ingestion import ingest
from disque_trio.pipeline.lake.store import Lake, LakeError
from tests.pipeline.lake.store_server import object_store
from tests.pipeline.lake.test_ingestion import ROWS, content, lines
from tests.pipeline.lake.test_killed import WRITE
from tests.pipeline.test_lakestore import piece, seeds_in, store


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The address of a bucket."""
    with object_store() as found:
        yield found


QUESTION = "SELECT run, node, kind, job, time, date, at FROM rows ORDER BY time"


def test_a_lake_there_equals_one_on_disk_row_for_row(
    spark: Any, bucket: str, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    lakes = [Lake.open(path, create=True) for path in (f"{bucket}/same", str(tmp_path / "lake"))]
    answers = []
    for lake in lakes:
        for count in (20, 50):  # it grows
            lines(trace, ROWS[:count])
            assert ingest(spark, lake, [str(trace)], run="berlin").rows in (20, 30)
        assert ingest(spark, lake, [str(trace)]).known == (str(trace),)
        assert content(lake) == ROWS
        duck = Duck(lake, QUESTION)
        answers.append([tuple(row) for row in duck.ask(QUESTION).rows])
        duck.close()
        session = spark.newSession()
        asking.attach(session, lake, QUESTION)
        (told,) = session.sql("SELECT count(*), sum(time), max(date) FROM rows").collect()
        assert tuple(map(str, told)) == ("50", str(sum(range(50))), "1970-01-01")

    assert len(answers[0]) == 50
    assert answers[0] == answers[1]


def test_there_too_two_sweeps_store_each_seed_once_and_a_compaction_changes_nothing(
    bucket: str,
) -> None:
    folder: Any = _Folder(f"{bucket}/sweeps")
    one, other = store(folder, "one"), store(folder, "other")
    piece(one, folder, "one", range(3))
    piece(other, folder, "other", range(2, 5))
    one.close()
    other.close()

    for _ in range(2):
        assert seeds_in(folder, "results") == seeds_in(folder, "traces") == list(range(5))
        assert (one.elsewhere, other.elsewhere) == (0, 1)
        removed = compact(Lake.open(f"{bucket}/sweeps/lake"), grace_s=0).removed
    assert removed == 0


def test_what_the_store_refuses_is_said_in_its_words(bucket: str) -> None:
    with pytest.raises(LakeError, match=r"s3://none/lake: The specified bucket does not exist$"):
        Lake.open("s3://none/lake", create=True)


def test_without_credentials_the_error_says_where_they_are_read() -> None:
    asked = "Error performing PUT http://169.254.169.254/latest/api/token in 6.6ms - 403 Forbidden"

    said = reason(OSError(f"Generic S3 error\n ↳ {asked}"))

    assert said.startswith("found no credentials: set AWS_ACCESS_KEY_ID")
    assert "AWS_FORCE_CREDENTIAL_LOAD" in said


class _Folder:
    """An address, to which names can be added."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __truediv__(self, name: str) -> str:
        return f"{self._address}/{name}"


def test_there_too_what_was_committed_outlives_a_kill_and_nothing_is_there_by_halves(
    bucket: str,
) -> None:
    path = f"{bucket}/killed"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, path, str(each)],
            stdout=subprocess.PIPE, text=True, env=dict(os.environ),
        )
        for each in range(2)
    ]  # fmt: skip
    said = set[str]()
    for writer in writers:
        assert writer.stdout is not None
        said |= {writer.stdout.readline().strip() for _ in range(2)}
        writer.kill()
        said.update(line for line in writer.communicate()[0].split() if line)

    found = Lake.open(path).snapshot()
    rows, traces = (
        {part.path.rpartition("/")[2].rpartition("-")[0] for part in found[name]}
        for name in ("rows", "traces")
    )
    assert rows == traces >= said
    assert len(said) >= 4
