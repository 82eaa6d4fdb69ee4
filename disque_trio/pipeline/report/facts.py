"""The figures of the report, from queries on a lake."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from disque_trio.pipeline.lake import asking
from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.lake.views.words import QUEUEING
from disque_trio.pipeline.report import sweeps
from disque_trio.pipeline.report.sweeps import Facts, Rows

QUANTILES: Final = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999, 1.0)
_STRETCHES: Final = 150
"""How many intervals a curve over time has."""
USED: Final = "runs jobs seeds causes failures coverage violations"
"""The views that the queries name."""


@attrs.frozen
class Curve:
    """Undelivered jobs of one scenario over time."""

    scenario: str
    runs: int
    points: Sequence[tuple[float, float]]
    """Seconds since the run began, and the mean number of undelivered jobs over all runs."""
    left: int
    """Jobs of all runs that were neither delivered nor ended otherwise when their run ended."""
    healed: float | None
    """Seconds until all faults were healed: the mean over all runs."""


@attrs.frozen
class Latency:
    """One stage of the jobs of one scenario."""

    scenario: str
    stage: str
    jobs: int
    at: Sequence[float]
    """Milliseconds at each of `QUANTILES`."""


@attrs.frozen(kw_only=True)
class ReportFacts:
    """Everything on the page."""

    lake: str
    rows: int
    runs: int
    live: int
    """How many of the runs are of live clusters."""
    added: int
    """Jobs whose ids producers received, in all traces."""
    seeds: Sequence[Facts]
    failures: Sequence[Facts]
    violations: Sequence[Facts]
    """What the judge finds in traces of runs that no sweep has judged, by property."""
    causes: Sequence[Facts]
    coverage: Sequence[Facts]
    unseen: Sequence[Curve]
    latency: Sequence[Latency]
    stages: Sequence[Facts] = ()
    """Where the time of jobs goes (`sweeps.TIMES`)."""
    families: Sequence[Facts] = ()
    """Duplicates by kind of fault (`sweeps.RATES`)."""
    missed: Sequence[tuple[str, int, Sequence[str]]] = ()
    """Scenarios whose latest code hit some expected marks in none of so many seeds."""

    @property
    def is_empty(self) -> bool:
        """Has the lake neither rows nor results?"""
        return not self.rows and not self.seeds


def ask(spark: Any, lake: Lake, tell: Callable[[str], object] = lambda _: None) -> ReportFacts:
    """All figures, from about ten queries. `tell` is told what runs are judged for it. Raises
    `LakeError`."""
    asking.attach(spark, lake, USED, tell)
    jobs = spark.table("jobs").cache()  # several queries use it
    try:
        return figures(
            lambda sql: [row.asDict(recursive=True) for row in spark.sql(sql).collect()], lake
        )
    finally:
        jobs.unpersist()


def figures(rows: Rows, lake: Lake) -> ReportFacts:
    """The figures from queries that somebody answers who knows the views of `USED`."""
    (whole,) = rows(
        "SELECT coalesce(sum(events), 0) AS events, count(*) AS runs, count_if(is_live) AS live, "
        "coalesce(sum(added), 0) AS added FROM runs"
    )
    return ReportFacts(
        lake=lake.path,
        rows=whole["events"],
        runs=whole["runs"],
        live=whole["live"],
        added=whole["added"],
        seeds=rows("SELECT * FROM seeds ORDER BY scenario, since"),
        failures=rows("SELECT * FROM failures ORDER BY seeds DESC, scenario, property"),
        violations=rows(_VIOLATIONS),
        causes=rows("SELECT * FROM causes ORDER BY scenario, cause"),
        coverage=_coverage(rows),
        unseen=list(map(_curve, rows(_UNSEEN))),
        latency=[
            Latency(row["scenario"], row["stage"], row["jobs"], [at / 1_000 for at in row["at"]])
            for row in rows(_LATENCY)
        ],
        stages=rows(sweeps.TIMES),
        families=rows(sweeps.RATES),
        missed=[(row["scenario"], row["seeds"], row["marks"]) for row in rows(_MISSED)],
    )


_MISSED: Final = """
WITH latest AS (
  SELECT scenario, max_by(version, at) AS version FROM results GROUP BY scenario
), met AS (
  SELECT scenario, marks FROM results LEFT SEMI JOIN latest USING (scenario, version)
), hits AS (
  SELECT scenario, each.key AS mark, sum(each.value) AS times
  FROM (SELECT scenario, explode(map_entries(marks)) AS each FROM met)
  GROUP BY scenario, each.key
)
SELECT scenario, seeds, sort_array(collect_list(mark)) AS marks
FROM hits JOIN (SELECT scenario, count(*) AS seeds FROM met GROUP BY scenario) USING (scenario)
WHERE times = 0 GROUP BY scenario, seeds ORDER BY scenario
"""
"""Sweeps store marks that their scenarios expect with 0 if a seed has not hit them."""


_VIOLATIONS: Final = """
SELECT property, scenario, count(DISTINCT run) AS runs, count(*) AS times, min(seed) AS seed,
  min_by(detail, struct(seed, time, detail)) AS text
FROM violations LEFT ANTI JOIN results USING (scenario, run)
GROUP BY property, scenario ORDER BY property, scenario
"""


def _coverage(rows: Rows) -> list[Facts]:
    """By message and state: the counts of sweeps if there are any, else those of traces."""
    counted: list[Facts] = rows(
        "SELECT split_part(each.key, '/', 1) AS message, split_part(each.key, '/', 2) AS state, "
        "sum(each.value) AS times "
        "FROM (SELECT explode(map_entries(coverage)) AS each FROM results) GROUP BY ALL"
    )
    if counted:
        return counted
    shown: list[Facts] = rows(
        "SELECT message, state, sum(times) AS times FROM coverage GROUP BY message, state"
    )
    return shown


_UNSEEN: Final = f"""
WITH spans AS (
  SELECT scenario, first, last, is_live, healed,
    min(CASE WHEN is_live THEN first END) OVER (PARTITION BY scenario) AS zero, run
  FROM runs
), scales AS (
  SELECT scenario, run, coalesce(zero, 0) AS zero, healed,
    greatest(max(last) OVER (PARTITION BY scenario) - coalesce(zero, 0), 1) AS span
  FROM spans
), waits AS (
  SELECT scenario, confirmed - zero AS since,
    coalesce(least(delivered, ended), delivered, ended) - zero AS until, span
  FROM jobs JOIN scales USING (scenario, run)
  WHERE confirmed IS NOT NULL AND at_least_once
), steps AS (
  SELECT scenario, each.* FROM (
    SELECT scenario, explode(array(
      struct(ceil(since * {_STRETCHES} / span) AS stretch, 1 AS change),
      struct(ceil(until * {_STRETCHES} / span) AS stretch, -1 AS change))) AS each
    FROM waits WHERE until IS NULL OR until > since
  )
), sums AS (
  SELECT scenario, sort_array(collect_list(struct(stretch, change))) AS changes
  FROM (
    SELECT scenario, stretch, sum(change) AS change FROM steps
    WHERE stretch IS NOT NULL GROUP BY scenario, stretch
  ) GROUP BY scenario
)
SELECT scenario, count(*) AS runs, max(span) AS span, avg(healed - zero) AS healed,
  first(changes) AS changes
FROM scales LEFT JOIN sums USING (scenario) GROUP BY scenario ORDER BY scenario
"""


def _curve(row: Facts) -> Curve:
    changes = {each["stretch"]: each["change"] for each in row["changes"] or ()}
    unseen, points = 0, []
    for stretch in range(_STRETCHES + 1):
        unseen += changes.get(stretch, 0)
        points.append((stretch * row["span"] / _STRETCHES / 1e6, unseen / row["runs"]))
    healed = None if row["healed"] is None else row["healed"] / 1e6
    return Curve(row["scenario"], row["runs"], points, unseen, healed)


_LATENCY: Final = f"""
WITH stages AS (
  SELECT scenario, each.* FROM (SELECT scenario, explode(array(
      struct(1 AS step, 'answered' AS stage, confirmed - asked AS took),
      struct(2 AS step, 'queued' AS stage, {QUEUEING} AS took),
      struct(3 AS step, 'delivered' AS stage, delivered - queued AS took),
      struct(4 AS step, 'acked' AS stage, acked - delivered AS took))) AS each FROM jobs)
)
SELECT scenario, step, stage, count(*) AS jobs,
  percentile_approx(took, array{QUANTILES}, 1000) AS at
FROM stages WHERE took IS NOT NULL GROUP BY scenario, step, stage ORDER BY scenario, step
"""
