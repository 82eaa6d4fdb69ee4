"""The verdicts of a lake: those of the judge, once for each run."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import attrs
import pytest

from disque_trio.cli.sim.execution import execute
from disque_trio.pipeline.lake import asking, verdicts
from disque_trio.pipeline.lake.ingestion import ingest
from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.run_writer import RunWriter
from disque_trio.sim.checkers.recorded import judged
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.traces import files as traces_files
from disque_trio.sim.traces import merge_live
from disque_trio.tracing.jsonlines import line_of
from disque_trio.tracing.rows import Row
from tests.pipeline.lake.conftest import Ask
from tests.pipeline.lake.runs import TracedRun
from tests.pipeline.lake.test_views import ROWS
from tests.sim.mutants.plans import conditions

COLUMNS = "property, job, node, time, detail"


def test_a_lake_accuses_whom_the_judge_accuses_in_the_same_words(
    ask: Ask, runs: dict[str, TracedRun]
) -> None:
    found = defaultdict(list)
    for run, *violation in ask(f"SELECT run, {COLUMNS} FROM violations"):
        found[run].append(tuple(violation))

    assert sum(not case.verdict.ok for case in runs.values()) >= 9
    for run, case in runs.items():
        judged = [
            (each.property, each.job, each.node, each.time, each.detail)
            for each in case.verdict.violations
        ]
        assert found[run] == judged, case.name


def test_a_delivery_that_is_repeated_has_the_cause_that_the_judge_finds(
    ask: Ask, runs: dict[str, TracedRun]
) -> None:
    found = defaultdict(list)
    for row in ask("SELECT * FROM deliveries WHERE number > 1 ORDER BY job, number"):
        found[row.run].append((row.job, row.time, row.node, row.client, row.leased, row.cause))

    for run, case in runs.items():
        judged = [
            (each.job, each.time, each.node, each.client, each.leased, each.cause)
            for each in case.verdict.records
        ]
        assert found[run] == sorted(judged), case.name
    assert any(found.values())


@pytest.mark.slow
def test_duplicates_of_two_holders_in_a_run_without_faults_are_no_violation(
    spark: Any, tmp_path: Path
) -> None:
    """Checks in SQL could not tell D5 from an unexplained duplicate."""
    plan = expand(load("scenarios/careless-clients.toml"), 1)
    writer = traces_files.create(str(tmp_path / "run.parquet"), plan)
    run = execute(plan, watchers=[lambda row: writer.write([row])])
    writer.close()
    lake = Lake.open(str(tmp_path / "lake"), create=True)
    ingest(spark, lake, [str(tmp_path / "run.parquet")])
    ask = Ask(spark, lake)

    assert run.verdict
    assert run.verdict.ok
    assert run.verdict.duplicates["D5"]
    assert not ask("SELECT * FROM violations")
    causes = {row.cause: row.duplicates for row in ask("SELECT * FROM causes")}
    assert causes == run.verdict.duplicates


class Telling:
    """Asks as a command does, and keeps what is told meanwhile."""

    def __init__(self, spark: Any, lake: Lake) -> None:
        self._spark, self._lake = spark.newSession(), lake
        self.told: list[str] = []

    def __call__(self, sql: str) -> list[Any]:
        self.told.clear()
        asking.attach(self._spark, self._lake, sql, self.told.append)
        found: list[Any] = self._spark.sql(sql).collect()
        return found


@pytest.fixture
def fresh(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"), create=True)


def swept(lake: Lake, number: int, *, is_judged: bool = True) -> list[Row]:
    """A run as a sweep stores it."""
    plan, rows = conditions.calm(number), list[Row]()
    verdict = execute(plan, watchers=[rows.append]).verdict
    with RunWriter(lake.path, plan.scenario, f"p{number}") as writer:
        writer.write(plan, f"r{number}", rows, verdict if is_judged else None)
    lake.commit(writer.parts)
    return rows


def test_what_a_sweep_has_judged_is_not_judged_again(spark: Any, fresh: Lake) -> None:
    swept(fresh, 0)
    ask = Telling(spark, fresh)

    (verdict,) = ask("SELECT * FROM verdicts")

    assert ask.told == []
    assert (verdict.run, verdict.ok, verdict.judge) == ("r0", True, verdicts.judge_digest())


def test_a_run_without_a_verdict_is_judged_once_and_this_is_told(spark: Any, fresh: Lake) -> None:
    rows = swept(fresh, 0, is_judged=False)
    swept(fresh, 1)
    ask = Telling(spark, fresh)

    assert len(ask("SELECT * FROM verdicts WHERE ok")) == 2
    assert ask.told == [f"judging 1 run, {len(rows):,} rows, without a verdict of this version yet"]
    assert len(ask("SELECT * FROM verdicts WHERE ok")) == 2
    assert ask.told == []


def test_another_judge_judges_again(
    spark: Any, fresh: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept(fresh, 0)
    monkeypatch.setattr(verdicts, "judge_digest", lambda: "another")
    ask = Telling(spark, fresh)

    assert len(ask("SELECT * FROM verdicts")) == 1
    assert len(ask.told) == 1


def test_a_run_that_is_there_twice_is_judged_as_one(spark: Any, fresh: Lake) -> None:
    """Two sweeps of the same seeds at once."""
    for name in "ab":
        plan, rows = conditions.calm(0), list[Row]()
        execute(plan, watchers=[rows.append])
        with RunWriter(fresh.path, plan.scenario, name) as writer:
            writer.write(plan, "r0", rows, None)
        fresh.commit(writer.parts)

    assert [row.ok for row in Telling(spark, fresh)("SELECT * FROM verdicts")] == [True]


def test_live_nodes_are_judged_with_their_names_and_times_and_again_when_traces_grow(
    spark: Any, fresh: Lake, tmp_path: Path
) -> None:
    wrong = [attrs.evolve(row, job="D-x", queue="q") for row in ROWS if row.kind == "serve"]
    rows = [*ROWS, *(attrs.evolve(row, time=row.time + 9_000_000) for row in wrong)]
    of_node = {node: [row for row in rows if row.node == node] for node in "ab"}
    ask = Telling(spark, fresh)
    for part in (slice(5), slice(None)):
        for node, some in of_node.items():
            Path(tmp_path, f"{node}.jsonl").write_bytes(b"".join(map(line_of, some[part])))
        assert not ingest(spark, fresh, [str(tmp_path / f"{node}.jsonl") for node in "ab"]).bad
        found = ask("SELECT * FROM verdicts")
        assert len(ask.told) == len(found) == 1

    history = merge_live.history(list(of_node.values()))
    judge = judged(merge_live.plan_of(history.rows), history.rows, is_live=True)
    assert judge.verdict
    assert found[0].delivered == judge.verdict.deliveries
    assert [each.property for each in judge.violations] == [
        row.property for row in ask("SELECT * FROM violations")
    ]


def test_a_lake_of_an_earlier_release_is_judged_when_it_is_asked(spark: Any, fresh: Lake) -> None:
    swept(fresh, 0, is_judged=False)
    ask = Telling(spark, fresh)

    assert not fresh.parts("verdicts")
    assert [row.ok for row in ask("SELECT * FROM verdicts")] == [True]
    assert sum(part.rows for part in fresh.parts("verdicts")) == 1


def test_rows_that_no_run_has_are_a_violation_and_no_end_of_the_question(
    spark: Any, fresh: Lake
) -> None:
    plan = conditions.calm(0)
    rows = [Row(1, "queue", "n1", "no id", cause="retry"), Row(2, "recv", cause="gotjob", ref=-1)]
    with RunWriter(fresh.path, plan.scenario, "p") as writer:
        writer.write(plan, "r", rows, None)
    fresh.commit(writer.parts)
    expected = judged(plan, rows, is_live=False)

    found = Telling(spark, fresh)("SELECT * FROM violations")

    assert [row.property for row in found] == [each.property for each in expected.violations]
