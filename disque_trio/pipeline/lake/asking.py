"""Makes a lake's tables and views known to a Spark session."""

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from disque_trio.pipeline.lake import verdicts
from disque_trio.pipeline.lake.files import LakeError, LakeFiles, Part, is_local
from disque_trio.pipeline.lake.shape import TABLES, VERDICTS, for_spark, plain, stored
from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.lake.views import VIEWS
from disque_trio.terminal.counting import counted

MADE: Final = {view.name: view.sql for view in VIEWS.values()}
"""The SQL of each view, in order."""
_SMALL: Final = 50_000
"""Most rows of a view that is computed at once."""
_SMALL_LAKE: Final = 500_000
"""Rows of a lake in which planning a view takes longer than computing it."""
JOINED: Final = ("runs", "adds", "jobs", "deliveries", "copies")
"""Views that others are made of. In a small lake they are computed at once."""
_WORD: Final = re.compile(r"\w+")
_GLOB: Final = re.compile(r"([\[\]{}*?\\])")


def attach(
    spark: Any,
    lake: Lake,
    text: str | None = None,
    report: Callable[[str], object] = lambda _: None,
) -> None:
    """Make the lake, as it is now, known to the session: its tables, and the views that this query
    names, or all. If one of them needs verdicts, runs without one are judged first, which is
    reported. Raises `LakeError`."""
    parts = lake.snapshot()
    for table in TABLES:
        _table(spark, lake, table, parts[table]).createOrReplaceTempView(table)
    spark.sql(ONE_TRACE).createOrReplaceTempView("traces")
    spark.sql(ONE_RESULT).createOrReplaceTempView("results")
    wanted = needed(text) if text is not None else dict.fromkeys(MADE)
    at_once = JOINED if sum(part.rows for part in parts["rows"]) <= _SMALL_LAKE else ("runs",)
    for name in wanted:
        if name == "verdicts":
            _judge_missing(spark, lake, report)
        view = spark.sql(MADE[name])
        if name in at_once:
            view = _small(spark, view)
        view.createOrReplaceTempView(name)


PENDING: Final = """
SELECT r.scenario, r.run, r.seed, r.events, r.is_live, t.plan
FROM runs r LEFT JOIN traces t USING (scenario, run, seed) LEFT ANTI JOIN verdicts v
  ON v.scenario = r.scenario AND v.run = r.run AND v.judge = '{judge}' AND v.events = r.events
"""
"""Runs without a verdict, and those whose trace has grown since: of live nodes, and of simulated
runs that an earlier release has ingested before they had ended."""


def judging(runs: int, events: int) -> str:
    """What is said before runs are judged."""
    which = f"{counted(runs, 'run')}, {counted(events, 'row')}"
    return f"judging {which}, without a verdict of this version yet"


def _judge_missing(spark: Any, lake: Lake, report: Callable[[str], object]) -> None:
    """Judge each run that this judge has not judged yet, and keep its verdict."""
    table = spark.table("verdicts")
    pending = spark.sql(PENDING.format(judge=verdicts.judge_digest())).cache()
    ((runs, events),) = pending.selectExpr("count(*)", "sum(events)").collect()
    if runs:
        report(judging(runs, events))
        tasks = min(runs, _TASKS * spark.sparkContext.defaultParallelism)
        rows = spark.table("rows").join(pending.select(*_KEYS), [*_KEYS], "left_semi")
        grouped = (each.repartition(tasks, *_KEYS).groupBy(*_KEYS) for each in (rows, pending))
        found = (
            next(grouped)
            .cogroup(next(grouped))
            .applyInArrow(_judged, for_spark(stored("verdicts")))
            .toArrow()
        )
        spark.createDataFrame(found).unionByName(table).createOrReplaceTempView("verdicts")
        keep(lake, found)
    pending.unpersist()


_KEYS: Final = ("scenario", "run", "seed")
_TASKS: Final = 4
"""For each processor: runs differ in length."""


def _judged(rows: pa.Table, runs: pa.Table) -> pa.Table:
    """On an executor."""
    (run,) = runs.to_pylist()
    found = verdicts.judge_table(rows, run).cast(plain(VERDICTS))
    return found.append_column("scenario", [[run["scenario"]]])


def keep(lake: Lake, found: pa.Table) -> None:
    """Keep verdicts, which have a column `scenario`, if the lake can be written to."""
    with suppress(LakeError):
        parts = []
        for scenario in found.column("scenario").unique().to_pylist():
            mine = found.filter(pc.equal(found.column("scenario"), scenario))
            name = f"judged-{uuid.uuid4().hex[:16]}"
            content = mine.select(VERDICTS.names).cast(VERDICTS)
            parts.append(lake.write("verdicts", scenario, name, content))
        lake.commit(parts)


def _small(spark: Any, view: Any) -> Any:
    """The view's present rows, if it is small, so that views that join it need not compute it."""
    found = view.limit(_SMALL + 1).toArrow()
    return view if found.num_rows > _SMALL else spark.createDataFrame(found, view.schema)


def needed(text: str) -> dict[str, None]:
    """The views that a query names, and those that they are made of. Spark takes a tenth of a
    second to plan each."""
    names = list(MADE)
    wanted = _named_in(text, names)
    for place, name in reversed(list(enumerate(names))):
        if name in wanted:  # later views may have the names of its columns
            wanted |= _named_in(MADE[name], names[:place])
    return {name: None for name in names if name in wanted}


def _named_in(text: str, names: Sequence[str]) -> dict[str, None]:
    words = dict.fromkeys(_WORD.findall(text.lower()))
    return {name: None for name in names if name in words}


ONE_TRACE: Final = """
SELECT * EXCEPT (number) FROM (
  SELECT *, row_number() OVER (PARTITION BY scenario, run ORDER BY seed) AS number FROM traces
) WHERE number = 1
"""
"""Each node of a live cluster has a trace, and all of them are one run."""

ONE_RESULT: Final = """
SELECT r.* EXCEPT (at), unix_micros(r.at) AS at FROM results r LEFT ANTI JOIN (
  SELECT scenario, sweep, seed, version FROM results
  WHERE NOT ok AND size(filter(findings, each -> each.property = 'determinism')) > 0
) again ON r.ok AND r.scenario = again.scenario AND r.seed = again.seed
  AND (r.version = again.version OR r.sweep = again.sweep AND r.version <=> again.version)
"""
"""A seed whose second run differs has a second row, which replaces the first, whichever of two
sweeps has stored it."""


def _table(spark: Any, lake: Lake, table: str, parts: Sequence[Part]) -> Any:
    columns = stored(table)
    if not parts:
        # Not an empty list: Spark would start a Python process to read it, in each query.
        nulls = ", ".join(
            f"CAST(NULL AS {field.dataType.simpleString()}) AS `{field.name}`"
            for field in for_spark(columns)
        )
        return spark.sql(f"SELECT {nulls} WHERE false")
    if not is_local(lake.path):  # Spark lacks what it would need to read there
        return _read_by_python(spark, LakeFiles(lake.path), columns, parts)
    paths = [_GLOB.sub(r"\\\1", lake.where(part)) for part in parts]
    reader = spark.read.schema(for_spark(columns)).option("basePath", lake.path)
    return reader.parquet(*paths).select(columns.names)


def _read_by_python(spark: Any, lake: LakeFiles, columns: pa.Schema, parts: Sequence[Part]) -> Any:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from lake.read(parts[number], columns.names).to_batches()

    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(work, for_spark(columns))
