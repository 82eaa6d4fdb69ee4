"""Small questions: DuckDB gives the answers of Spark."""

import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.duck import Duck, QuestionError
from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.lake.translation import OtherSqlError
from disque_trio.pipeline.lake.views import TABLES, VIEWS
from disque_trio.pipeline.report import facts
from disque_trio.pipeline.run_writer import RunWriter
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row
from tests.pipeline.lake.conftest import Ask
from tests.pipeline.lake.runs import TracedRun
from tests.pipeline.test_lakestore import done, store

NAMES = [*VIEWS, *(name for name in TABLES if name not in VIEWS)]


def plainly(value: Any) -> Any:
    """A value of either, to be compared: in the last digits sums may differ."""
    if isinstance(value, dict):
        return {key: plainly(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [plainly(each) for each in value]
    return float(f"{value:.12g}") if isinstance(value, float) and math.isfinite(value) else value


def in_any_order(value: Any) -> Any:
    return sorted(map(repr, plainly(value))) if isinstance(value, list) else value


@pytest.fixture(scope="module")
def duck(lake: Lake) -> Iterator[Duck]:
    with closing(Duck(lake, " ".join(VIEWS))) as found:
        yield found


@pytest.mark.parametrize("name", NAMES)
def test_each_view_has_the_rows_that_spark_finds(ask: Ask, duck: Duck, name: str) -> None:
    theirs = [row.asDict(recursive=True) for row in ask(f"SELECT * FROM {name}")]
    ours = duck.ask(f"SELECT * FROM {name}")

    assert sorted(ours.columns) == sorted(ask.columns(name))
    assert in_any_order(ours.facts()) == in_any_order(theirs)
    assert theirs or name in ("seeds", "failures", "results")


@pytest.mark.parametrize(
    "question",
    [
        "SELECT queue, max(seconds), count(*), count_if(is_over) FROM under_replication GROUP BY 1",
        "SELECT max(time) - min(time), count(*) / 2, round(avg(time) * (1 + 2), 1) FROM rows",
        "SELECT cast(time / 1000000 AS int) AS second, count(*) AS n FROM rows GROUP BY 1",
        "SELECT int(-1.5) a, cast(cast(7 AS double) / 2 AS bigint) b, cast('12' AS int) c",
        "SELECT cast(timestamp_micros(1999999) AS bigint) a, hour(timestamp_micros(3600000000)) b",
        "SELECT cast(seed AS string), cast(true AS int) b FROM runs",
        "SELECT cast(9007199254740993 AS bigint) a",
        r"SELECT x FROM VALUES ('a_b'), ('axb') AS t(x) WHERE x LIKE 'a\_b'",
        "SELECT x FROM VALUES ('a_b'), ('axb') AS t(x) WHERE x ILIKE 'A/_b' ESCAPE '/'",
        "SELECT 'it''s' AS a",
    ],
)
def test_an_answer_is_that_of_spark(ask: Ask, duck: Duck, question: str) -> None:
    theirs = [row.asDict(recursive=True) for row in ask(question)]

    assert in_any_order(duck.ask(question).facts()) == in_any_order(theirs)


@pytest.mark.parametrize(
    "call", ["dayofweek(at)", "weekday(at)", "extract(dow FROM at)", "hash(1)", "soundex('a')"]
)
def test_a_function_that_differs_in_duckdb_is_left_to_spark(duck: Duck, call: str) -> None:
    with pytest.raises(OtherSqlError):
        duck.ask(f"SELECT {call} FROM rows")


def test_the_stages_of_latency_are_in_order(duck: Duck) -> None:
    rows = duck.ask("SELECT scenario, queue, step FROM latency").rows
    found = [tuple(row) for row in rows]

    assert found == sorted(found)
    assert len(found) > 2


@pytest.mark.slow
def test_the_report_has_the_same_figures(spark: Any, lake: Lake, tmp_path: Path) -> None:
    keeping = store(tmp_path)
    for seed in range(4):
        keeping.add("calm", done(seed))
    keeping.add("calm", attrs.evolve(done(2, is_ok=False), collected=None))
    keeping.close()

    for each in (lake, Lake.open(str(tmp_path / "lake"))):
        theirs = attrs.asdict(facts.ask(spark.newSession(), each))
        with closing(Duck(each, facts.USED)) as duck:
            ours = attrs.asdict(facts.figures(duck.facts, each))
        for name, value in theirs.items():
            assert in_any_order(ours[name]) == in_any_order(value), name


def test_a_seed_whose_second_run_differs_counts_once(tmp_path: Path) -> None:
    keeping = store(tmp_path)
    keeping.add("calm", done(2))
    keeping.add("calm", attrs.evolve(done(2, is_ok=False), collected=None))
    keeping.close()

    with closing(Duck(Lake.open(str(tmp_path / "lake")), "seeds")) as duck:
        assert duck.ask("SELECT seeds, failed FROM seeds").rows == [(1, 1)]


@pytest.mark.parametrize("name", ["calm", "a/b=ö [1]*?", "it's"])
def test_names_of_scenarios_and_folders_may_be_anything(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name.replace("/", "-")
    folder.mkdir()
    lake = Lake.open(str(folder), create=True)
    rows = shape.rows_table([Row(1, "hold", job="J", cause="add"), Row(2, "end")], "r'1", 7)
    plan = shape.traces_table(Plan(scenario=name, seed=7, nodes=1), "r'1")
    lake.commit([lake.write("rows", name, "p", rows), lake.write("traces", name, "p", plan)])

    with closing(Duck(lake, "verdicts")) as duck:
        assert duck.ask("SELECT scenario, run, seed FROM runs").rows == [(name, "r'1", 7)]
        assert duck.ask("SELECT scenario, run FROM verdicts").rows == [(name, "r'1")]


def test_verdicts_are_kept_and_made_once(tmp_path: Path, cases: dict[str, TracedRun]) -> None:
    lake = Lake.open(str(tmp_path / "lake"), create=True)
    case = cases["S3"]
    with RunWriter(lake.path, case.name, "p") as writer:
        writer.write(case.plan, "r", list(case.rows), None)
    lake.commit(writer.parts)
    told: list[str] = []

    for _ in range(2):
        with closing(Duck(lake, "violations", told.append)) as duck:
            found = duck.ask("SELECT property, job FROM violations").rows
        assert found == [(each.property, each.job) for each in case.verdict.violations]

    assert len(told) == 1
    assert told[0].startswith("judging 1 run,")
    assert len(lake.parts("verdicts")) == 1


def test_an_empty_lake_has_all_views_without_rows(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path / "lake"), create=True)

    with closing(Duck(lake, " ".join(VIEWS))) as duck:
        for name in NAMES:
            assert duck.ask(f"SELECT * FROM {name}").rows == []


def test_what_is_not_there_is_told_and_other_sql_is_left_to_spark(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path / "lake"), create=True)

    with closing(Duck(lake, "runs")) as duck:
        with pytest.raises(QuestionError, match='column "sed" not found'):
            duck.ask("SELECT sed FROM runs")
        with pytest.raises(QuestionError, match="rans does not exist"):
            duck.ask("SELECT * FROM rans")
        for sql in ("SELECT java_method('a', 'b')", "SELEC 1 1", "", "SELECT 1; SELECT 2"):
            with pytest.raises(OtherSqlError):
                duck.ask(sql)
