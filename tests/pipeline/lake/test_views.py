"""The views, on hand-written rows and on runs of the simulator."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from disque_trio.pipeline.lake import asking
from disque_trio.pipeline.lake.ingestion import ingest
from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.lake.views import TABLES, VIEWS, lines
from disque_trio.pipeline.report import facts
from disque_trio.tracing.jsonlines import line_of
from disque_trio.tracing.rows import Row
from tests.pipeline.lake.conftest import Ask
from tests.pipeline.lake.runs import TracedRun

SECOND = 1_000_000
WALL = 1_790_000_000_000
JOB = "D-aaaaaaaa-000000000000000000000000-05a1"


def at(seconds: float, kind: str, node: str = "a", job: str = JOB, **rest: Any) -> Row:
    time = WALL * 1_000 + round(seconds * SECOND)
    return Row(time, kind, node, job, mono=time // 1_000, wall=time // 1_000, **rest)


ROWS = [
    at(0, "start", job="", cause="fresh"),
    at(0, "start", "b", job="", cause="fresh"),
    at(1, "add.invoke", job="", queue="q", client="p", ref=1,
       detail="timeout=0 replicate=2 retry=5 ttl=60 body=x"),
    at(1.001, "hold", queue="q", cause="add"),
    at(1.001, "send", queue="q", peer="b", cause="repljob"),
    at(1.003, "recv", "b", queue="q", peer="a", cause="repljob"),
    at(1.003, "hold", "b", queue="q", cause="repljob"),
    at(1.004, "send", "b", peer="a", cause="gotjob"),
    at(1.006, "recv", peer="b", cause="gotjob"),
    at(1.006, "queue", queue="q", cause="first"),
    at(1.006, "add.ok", queue="q", client="p", ref=1),
    at(1.5, "unqueue", queue="q", cause="given"),
    at(1.5, "give", queue="q", peer="b", cause="given"),
    at(1.51, "queue", "b", queue="q", cause="import"),
    at(2, "unqueue", "b", queue="q", cause="served"),
    at(2, "serve", "b", queue="q", client="c"),
    at(3, "start", job="", cause="empty"),
    at(7.5, "queue", "b", queue="q", cause="retry"),
    at(8, "serve", "b", queue="q", client="d"),
    at(8.2, "ack.invoke", "b", client="d", ref=2),
    at(8.2, "acked", "b", queue="q", cause="ackjob"),
    at(8.2, "ack.ok", "b", client="d", ref=2),
    at(8.4, "drop", "b", queue="q", cause="collected"),
]  # fmt: skip


@pytest.fixture(scope="module")
def views(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Two live nodes, one of which is killed, and one job that comes twice."""
    folder = tmp_path_factory.mktemp("views")
    for node in "ab":
        rows = [row for row in ROWS if row.node == node]
        Path(folder, f"{node}.jsonl").write_bytes(b"".join(line_of(row) for row in rows))
    lake = Lake.open(str(folder / "lake"), create=True)
    assert not ingest(spark, lake, [str(folder / f"{node}.jsonl") for node in "ab"]).bad
    return Ask(spark, lake)


def since(row: Any, name: str) -> float:
    return float(row[name] - WALL * 1_000) / SECOND


def test_the_life_of_a_job_is_one_row(views: Ask) -> None:
    (job,) = views("SELECT * FROM jobs")

    assert (job.scenario, job.run, job.job, job.queue) == ("live", "live", JOB, "q")
    assert (job.producer, job.origin, job.queued_on, job.queued_by) == ("p", "a", "a", "first")
    assert (job.replicate, job.retry, job.ttl, job.delay) == (2, 5 * SECOND, 60 * SECOND, 0)
    assert (job.at_least_once, job.is_async, job.is_promised) == (True, False, True)
    stages = ("asked", "confirmed", "queued", "delivered", "acked")
    assert [since(job, name) for name in stages] == [1, 1.006, 1.006, 2, 8.2]
    assert (job.deliveries, job.retries, job.moves, job.held) == (2, 1, 1, 2)
    assert job.ended_by == "ackjob"


def test_a_delivery_has_its_reason_and_a_duplicate_its_cause(views: Ask) -> None:
    first, second = views("SELECT * FROM deliveries ORDER BY number")

    assert (first.number, first.node, first.client, first.cause) == (1, "b", "c", None)
    assert (first.queued_by, since(first, "queued")) == ("first", 1.006), "before it moved"
    assert (second.number, second.client, second.queued_by, second.cause) == (2, "d", "retry", "D1")
    assert (since(second, "leased"), second.after_ack) == (2, False)
    (cause,) = views("SELECT * FROM causes")
    assert (cause.cause, cause.duplicates, cause.jobs, cause.per_million) == ("D1", 1, 1, 1e6)


def test_copies_end_with_their_node_and_leave_the_job_short(views: Ask) -> None:
    copies = {row.node: row for row in views("SELECT * FROM copies")}
    assert (since(copies["a"], "until"), copies["a"].ended_by) == (3, "start")
    assert (since(copies["b"], "until"), copies["b"].ended_by) == (8.4, "collected")

    (low,) = views("SELECT * FROM under_replication")
    assert (low.wanted, low.copies, since(low, "since"), since(low, "until")) == (2, 1, 3, 8.2)
    assert (low.seconds, low.is_over) == (5.2, True)

    seconds = views("SELECT * FROM copies_over_time ORDER BY second")
    seen = [(row.second - WALL // 1_000, row.jobs, row.copies, row.wanted) for row in seconds]
    assert seen == [(1, 1, 2, 2), (3, 1, 1, 2), (8, 0, 0, 0)]


def test_latency_is_told_by_stage(views: Ask) -> None:
    stages = {row.stage: row for row in views("SELECT * FROM latency")}

    assert {name: row.p50 for name, row in stages.items()} == {
        "answered": 6.0, "queued": 6.0, "delivered": 994.0, "acked": 6200.0, "whole": 7200.0,
    }  # fmt: skip
    assert {row.jobs for row in stages.values()} == {1}


def test_a_delay_that_enqueue_ends_is_no_negative_latency(spark: Any, tmp_path: Path) -> None:
    rows = [
        at(1, "add.invoke", job="", queue="q", client="p", ref=1, detail="delay=300 body=x"),
        at(1.001, "hold", queue="q", cause="add"),
        at(1.002, "add.ok", queue="q", client="p", ref=1),
        at(4, "queue", queue="q", cause="enqueue"),
    ]
    Path(tmp_path, "a.jsonl").write_bytes(b"".join(line_of(row) for row in rows))
    lake = Lake.open(str(tmp_path / "lake"), create=True)
    ingest(spark, lake, [str(tmp_path / "a.jsonl")])
    ask = Ask(spark, lake)

    (stage,) = ask("SELECT * FROM latency WHERE stage = 'queued'")

    assert (stage.jobs, stage.p50, stage.longest) == (1, 0.0, 0.0)
    assert all(each.at[0] >= 0 for each in ask(facts._LATENCY))


def test_federation_throughput_and_clocks(views: Ask) -> None:
    (flow,) = views("SELECT * FROM federation")
    assert (flow.giver, flow.taker, flow.given, flow.taken, flow.p50) == ("a", "b", 1, 1, 10.0)

    done = {(r.node, r.second - WALL // 1_000): r for r in views("SELECT * FROM throughput")}
    assert (done["a", 1].added, done["a", 1].given, done["b", 8].served) == (1, 1, 1)

    clocks = {row.node: row for row in views("SELECT * FROM clock_error")}
    assert clocks["a"].against_others == 0.0, "as long there as back"
    assert (clocks["a"].stepped, clocks["a"].fastest) == (0, None)


def test_a_run_is_told_with_what_its_traces_have(views: Ask) -> None:
    (run,) = views("SELECT * FROM runs")

    assert (run.is_live, run.events, run.nodes, run.made, run.added) == (True, len(ROWS), 2, 1, 1)
    assert (run.has_node_rows, run.has_messages, run.healed) == (True, True, None)
    assert (run.last - run.first) == 8.4 * SECOND


def test_coverage_counts_pairs_of_message_and_state(views: Ask) -> None:
    met = {(row.message, row.state): row.times for row in views("SELECT * FROM coverage")}

    assert met == {("repljob", "unknown"): 1, ("gotjob", "held"): 1}


def test_views_have_the_columns_that_are_told(ask: Ask) -> None:
    for name, view in VIEWS.items():
        assert ask.columns(name) == list(view.columns), name


def test_a_large_lake_has_the_same_views(
    spark: Any, ask: Ask, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There they are made only when they are asked for."""
    monkeypatch.setattr(asking, "_SMALL_LAKE", 0)
    asking.attach(spark, lake, "deliveries")

    sql = "SELECT cause, count(*) AS times FROM deliveries GROUP BY cause ORDER BY cause"
    assert spark.sql(sql).collect() == ask(sql)


def test_of_a_query_only_what_it_needs_is_made() -> None:
    assert list(asking.needed("SELECT latency FROM Runs")) == ["runs", "adds", "jobs", "latency"]
    assert list(asking.needed("runs")) == ["runs"], "which has a column latency"
    assert list(asking.needed("violations")) == ["runs", "verdicts", "violations"]
    assert list(asking.needed("SELECT 1")) == []


def test_every_view_and_table_has_a_line() -> None:
    traced = lines()

    assert list(traced) == [*TABLES, *VIEWS]
    assert all(line and len(line) < 200 for line in traced.values())


def test_jobs_are_those_that_the_judge_counts(ask: Ask, runs: dict[str, TracedRun]) -> None:
    found = {row.run: row for row in ask(_COUNTS)}

    for run, case in runs.items():
        metrics = case.verdict.metrics
        assert found[run].born == metrics.jobs, case.name
        assert found[run].deliveries == case.verdict.deliveries, case.name
        assert found[run].seen == case.verdict.distinct, case.name


_COUNTS = """
SELECT run, count(born) AS born, sum(deliveries) AS deliveries, count(delivered) AS seen
FROM jobs GROUP BY run
"""


def test_an_empty_lake_has_all_views_without_rows(spark: Any, tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path / "empty"), create=True)
    ask = Ask(spark, lake)

    found: Sequence[Any] = ask("SELECT * FROM jobs")

    assert not found
    assert not ask("SELECT * FROM causes")
