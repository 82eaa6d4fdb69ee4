"""The commands about lakes, as people meet them."""

import errno
import json
import os
import signal
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import duckdb
import pytest

from disque_trio.__main__ import main
from disque_trio.cli.frame import INTERRUPTED
from disque_trio.cli.pipeline import query, report
from disque_trio.pipeline.lake import ingestion, reading, shape
from disque_trio.pipeline.lake.duck import Answer, Duck
from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.lake.views import VIEWS
from disque_trio.pipeline.report import facts
from disque_trio.tracing.jsonlines import line_of
from disque_trio.tracing.rows import Row
from tests.pipeline.test_report import TOLD

Capture = pytest.CaptureFixture[str]
ROWS = [Row(number, "hold", "a1", f"J{number}", "q", cause="add") for number in range(30)]


def pipeline(*words: str) -> int:
    spark = [] if words[0] == "query" and "--columns" in words else ["--master", "local[2]"]
    return main(["pipeline", *words, *spark])


def test_what_was_ingested_can_be_asked_for(spark: Any, tmp_path: Path, capsys: Capture) -> None:
    lake, trace, bad = str(tmp_path / "lake"), tmp_path / "t.jsonl", tmp_path / "bad.jsonl"
    trace.write_bytes(b"".join(line_of(row) for row in ROWS))
    bad.write_text("no trace\n")

    assert pipeline("ingest", lake, str(trace), str(bad)) == 1
    told = capsys.readouterr()
    assert told.out.startswith("1 file, 30 rows in ")
    assert f"{bad}: line 1: not JSON" in told.err

    assert pipeline("ingest", lake, str(trace)) == 0
    assert capsys.readouterr().out == "0 files, 0 rows; 1 already known\n"

    assert pipeline("query", lake, "SELECT job, time FROM rows ORDER BY time", "--most", "2") == 0
    assert capsys.readouterr().out.split() == [
        "job", "time", "J0", "0", "J1", "1", "…", "and", "more:", "--most", "shows", "them,",
        "--json", "all",
    ]  # fmt: skip

    assert pipeline("query", lake, "SELECT max(time) AS t FROM rows", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"t": 29}

    assert pipeline("compact", lake, "--grace", "0") == 0
    assert capsys.readouterr().out == "3 files merged into 3; 0 old files deleted\n"


def test_views_and_their_columns_are_listed_without_spark(tmp_path: Path, capsys: Capture) -> None:
    lake = str(tmp_path)
    Lake.open(lake, create=True)
    assert pipeline("query", lake) == 0
    told = capsys.readouterr().out
    assert "under_replication  one row for each time during which" in told.replace("One", "one")
    assert "verdicts" in told

    assert pipeline("query", lake, "jobs", "--columns") == 0
    assert "retry           RETRY in microseconds" in capsys.readouterr().out


def test_a_view_that_there_is_not_is_told_before_spark_starts(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    Lake.open(str(tmp_path), create=True)
    monkeypatch.setattr(query, "started", lambda _: pytest.fail("Spark was started"))

    assert pipeline("query", str(tmp_path), "job") == 2
    assert "there is no view job, did you mean jobs? 'query LAKE' lists" in capsys.readouterr().err
    assert pipeline("query", str(tmp_path), "xyz") == 2
    assert "there is no view xyz; 'query LAKE' lists them" in capsys.readouterr().err


def test_views_become_tables_of_a_duckdb_file_that_replaces_the_last_one(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, file = Lake.open(str(tmp_path / "lake"), create=True), str(tmp_path / "lake.duckdb")
    lake.commit([lake.write("rows", "calm", "p", shape.rows_table(ROWS, "r", 0))])
    export = ["pipeline", "export", lake.path, file]

    assert main(export) == 0
    assert capsys.readouterr().out.startswith(f"{file}: {len(VIEWS)} tables, ")
    with closing(duckdb.connect(file, read_only=True)) as early:
        assert main([*export, "copies", "RUNS"]) == 0
        assert capsys.readouterr().out == f"{file}: 2 tables, 31 rows\n"
        assert len(early.execute("SHOW TABLES").fetchall()) == len(VIEWS)
    with closing(duckdb.connect(file, read_only=True)) as late:
        assert late.execute("SHOW TABLES").fetchall() == [("copies",), ("runs",)]
    assert sorted(os.listdir(tmp_path)) == ["lake", "lake.duckdb"]

    assert main([*export, "job"]) == 2
    assert "there is no view job, did you mean jobs?" in capsys.readouterr().err
    assert main([*export[:3], str(tmp_path / "no" / "file")]) == 2
    assert f"the directory {tmp_path}/no does not exist" in capsys.readouterr().err
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path, tmp_path / "pipe"):
        assert main([*export[:3], str(other)]) == 2
        assert f"cannot write {other}: it is not a file" in capsys.readouterr().err
        assert other.exists()
        assert not other.is_file()


def test_without_anything_to_take_no_lake_is_made(tmp_path: Path, capsys: Capture) -> None:
    lake, missing, empty = (tmp_path / name for name in ("lake", "missing.jsonl", "empty"))
    empty.mkdir()

    assert pipeline("ingest", str(lake), str(missing)) == 2
    assert f"there is no file {missing}" in capsys.readouterr().err
    assert pipeline("ingest", str(lake), str(empty)) == 2
    assert f"there are no traces or results in {empty}" in capsys.readouterr().err
    assert not lake.exists()


@pytest.mark.parametrize("sql", ["SELECT nothing FROM jobs", "SELEC 1"])
def test_a_query_that_cannot_be_answered_is_explained(
    spark: Any, tmp_path: Path, capfd: Capture, sql: str
) -> None:
    lake, trace = str(tmp_path / "lake"), tmp_path / "t.jsonl"
    trace.write_bytes(line_of(ROWS[0]))
    assert pipeline("ingest", lake, str(trace)) == 0

    assert pipeline("query", lake, sql) == 2

    told = capfd.readouterr().err
    assert told.startswith("disque-trio pipeline: Spark cannot run the query: ")
    assert told.count("\n") == 1


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A lake for which Spark must not start."""
    lake = Lake.open(str(tmp_path / "lake"), create=True)
    lake.commit([lake.write("rows", "live", "p", shape.rows_table(ROWS, "r", 0))])
    for command in (query, report):
        monkeypatch.setattr(command, "started", lambda _: pytest.fail("Spark was started"))
    return lake.path


def test_options_may_stand_between_the_lake_and_the_query(small: str, capsys: Capture) -> None:
    assert (
        main(["pipeline", "query", small, "--engine", "duckdb", "SELECT 1 AS one", "--json"]) == 0
    )

    assert json.loads(capsys.readouterr().out) == {"one": 1}


def test_a_small_lake_is_asked_without_spark(small: str, tmp_path: Path, capsys: Capture) -> None:
    asked = ["pipeline", "query", small, "SELECT job, time FROM rows ORDER BY time"]
    assert main([*asked, "--most", "1"]) == 0
    assert capsys.readouterr().out.split()[:5] == ["job", "time", "J0", "0", "…"]

    assert main([*asked, "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert told == [{"job": f"J{number}", "time": number} for number in range(30)]

    assert main(["pipeline", "report", small, "--html", str(tmp_path / "o.html")]) == 0
    assert "30 rows of 1 run, 0 sweeps" in capsys.readouterr().out
    assert main(["pipeline", "query", small, "SELECT sed FROM runs"]) == 2
    assert 'Referenced column "sed" not found' in capsys.readouterr().err
    assert main(["pipeline", "query", small, "SELEC 1 1", "--engine", "duckdb"]) == 2
    assert "DuckDB cannot run the query: " in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_times_are_in_utc(
    spark: Any, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    lake = Lake.open(str(tmp_path / "lake"), create=True)
    rows = reading.write_rows(lake, shape.LIVE, "p", [shape.rows_table([Row(1, "start")], "r", 0)])
    lake.commit(rows)
    asked = "SELECT at, struct(at AS at) AS s, array(at) AS a, map('at', at) AS m FROM rows"
    instant = "1970-01-01 00:00:00.000001+00:00"
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        command = ["pipeline", "query", lake.path, asked, "--engine", engine]
        assert main([*command, "--master", "local[2]", "--json"]) == 0
        assert main([*command, "--master", "local[2]"]) == 0
    finally:
        monkeypatch.undo()
        time.tzset()

    facts, *table = capsys.readouterr().out.splitlines()
    assert json.loads(facts) == {
        "at": instant, "s": {"at": instant}, "a": [instant], "m": {"at": instant}
    }  # fmt: skip
    assert instant in "".join(table)


def test_ctrl_c_ends_a_long_step_of_duckdb_at_once(
    small: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = Duck.ask

    def interrupted(duck: Duck, sql: str, most: int | None = None) -> Answer:
        threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
        return asks(duck, sql, most)

    monkeypatch.setattr(Duck, "ask", interrupted)
    others = ", ".join(f"rows r{number}" for number in range(9))
    sql = f"SELECT count(DISTINCT r0.time + r8.time) AS n FROM {others}"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    try:
        assert main(["pipeline", "query", small, sql]) == INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, before)

    assert capsys.readouterr().err == "disque-trio pipeline: interrupted\n"


def test_rows_without_room_for_their_words_are_shown_a_line_for_each_column(
    small: str, capsys: Capture
) -> None:
    word = "w" * 40
    names = ", ".join(f"'{word}' AS c{number}" for number in range(6))
    sql = f"SELECT time, {names} FROM rows ORDER BY time"

    assert main(["pipeline", "query", small, sql, "--most", "2"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["row 1", "  time  0", f"  c0    {word}"]
    assert lines[8:10] == ["row 2", "  time  1"]
    assert lines[16] == "… and more: --most shows them, --json all"


@pytest.mark.parametrize(
    ("rows", "more"),
    [
        (10_000_001, []),
        (30, ["--engine", "spark"]),
        (30, ["--master", "local[2]"]),
        (30, ["SELECT java_method('a', 'b')"]),
    ],
)
def test_what_is_not_for_duckdb_is_for_spark(
    small: str, monkeypatch: pytest.MonkeyPatch, rows: int, more: list[str]
) -> None:
    lake = Lake.open(small)
    (part,) = lake.parts("rows")
    monkeypatch.setattr(Lake, "parts", lambda *_: [attrs.evolve(part, rows=rows)])
    sql = [] if more and more[0].startswith("SELECT") else ["runs"]

    with pytest.raises(pytest.fail.Exception, match="Spark was started"):
        main(["pipeline", "query", small, *sql, *more])


@pytest.mark.parametrize(
    "words",
    [
        ["query", "LAKE", "jobs"],
        ["query", "LAKE"],
        ["compact", "LAKE"],
        ["report", "LAKE", "--html", "o"],
    ],
)
def test_what_is_no_lake_is_named(tmp_path: Path, capsys: Capture, words: list[str]) -> None:
    path = str(tmp_path / "none")

    assert pipeline(*(path if word == "LAKE" else word for word in words)) == 2

    assert f"{path} is not a lake" in capsys.readouterr().err


def test_a_report_is_written_whole_or_not_at_all(
    spark: Any, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, out = str(tmp_path / "lake"), tmp_path / "pages" / "night.html"
    Lake.open(lake, create=True)
    monkeypatch.setattr(facts, "ask", lambda *_, **__: TOLD)
    words = ("report", lake, "--html", str(out))

    assert pipeline(*words) == 2
    assert (
        f"cannot write {out}: the directory {out.parent} does not exist" in capsys.readouterr().err
    )

    out.parent.mkdir()
    assert pipeline("report", lake, "--html", str(out.parent)) == 2
    assert f"cannot write {out.parent}: Is a directory" in capsys.readouterr().err

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", disk_full)
        assert pipeline(*words) == 2
    assert f"cannot write {out}: No space left on device" in capsys.readouterr().err
    assert list(out.parent.iterdir()) == []

    assert pipeline(*words) == 0
    assert list(out.parent.iterdir()) == [out]


def disk_full(path: Path, _text: str, _encoding: str) -> None:
    path.touch()
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--spark-conf", "cores=2"], "'cores=2' is not a setting"),
        (["--run", " "], "' ' is not the name of a cluster, such as berlin"),
        (["--memory", "much"], "much is not a memory size for Spark, such as 512m or 2g"),
    ],
)
def test_options_are_checked(tmp_path: Path, capsys: Capture, words: list[str], said: str) -> None:
    trace = tmp_path / "t.jsonl"
    trace.touch()

    assert pipeline("ingest", str(tmp_path / "lake"), str(trace), *words) == 2

    assert said in capsys.readouterr().err


def test_an_executor_that_lacks_a_package_is_told_apart(
    spark: Any, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_bytes(line_of(ROWS[0]))
    monkeypatch.setattr(ingestion, "_attempt", lacks)

    assert pipeline("ingest", str(tmp_path / "lake"), str(trace)) == 2
    assert (
        "an executor cannot import what it needs: ModuleNotFoundError: No module named 'y'. Its "
        "Python must have what disque-trio depends on: pip install 'disque-trio[spark]' there"
    ) in capsys.readouterr().err


def lacks(*_: object) -> None:
    raise ModuleNotFoundError("No module named 'y'")
