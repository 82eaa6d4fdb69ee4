"""The report: what is on the page, and what is said where there is nothing to show."""

import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from disque_trio.cli.pipeline.reruns import Reruns
from disque_trio.cli.sim.sources import scenario_digest, scenario_from
from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.report import charts, facts, page, sweeps
from disque_trio.pipeline.report.facts import QUANTILES, Curve, Latency, ReportFacts
from disque_trio.sim.scenarios.marks import MARKS
from tests.pipeline.test_sweep_on_cluster import scenario

SEEDS: dict[str, Any] = {
    "scenario": "calm", "sweep": "s", "commit": "abc", "since": 1_790_000_000_000_000,
    "until": 1_790_000_060_000_000, "first": 3, "last": 7, "seeds": 4, "failed": 1,
    "jobs": 1000, "deliveries": 1010, "lost": 2, "duplicates": 10, "per_million": 10_000.0,
    "simulated": 4e8, "seconds": 2.0, "cost": 500.0, "dearest": 900.0,
    "dearest_seed": 5, "version": "1.0-heap-c0de-d16e57",
}  # fmt: skip
TOLD = ReportFacts(
    lake="/data/<lake>",
    rows=12_345,
    runs=3,
    live=1,
    added=1000,
    seeds=[SEEDS],
    failures=[
        {
            "scenario": "calm", "property": "S5", "commit": "abc", "seeds": 1, "seed": 7,
            "text": "served <2> times", "version": "1.0-heap-c0de-d16e57",
        }
    ],
    violations=[],
    causes=[
        {"scenario": "calm", "cause": cause, "per_million": rate}
        for cause, rate in (("D1", 9_000.0), ("D5", 0.5), ("DX", 1_000.0))
    ],
    coverage=[{"message": "setack", "state": "queued", "times": 1_500}],
    unseen=[Curve("calm", 3, [(0, 0.0), (30, 4.0), (60, 1.0)], 3, 40.0)],
    latency=[Latency("calm", "queued", 900, [0.0, *(2.0**n for n in range(len(QUANTILES) - 1))])],
    stages=[
        {
            "scenario": "calm", "jobs": 900, "took": 1_100.0, "adding": 5.0, "delayed": 0.0,
            "waiting": 20.0, "repeating": 1_000.0, "working": 75.0,
        }
    ],
    families=[
        {"family": "clocks", "seeds": 3, "cause": "D1", "per_million": 8_000.0},
        {"family": sweeps.NO_FAULT, "seeds": 1, "cause": None, "per_million": None},
    ],
)  # fmt: skip


def text(html: str) -> str:
    """What is read on the page."""
    return " ".join(re.sub(r"<[^>]+>", " ", html.partition("</style>")[2]).split())


def test_the_page_says_at_its_head_what_came_of_it() -> None:
    read = text(page.render(TOLD))

    assert read.startswith(
        "1 FAILED &lt;lake&gt; "
        "Swept from 2026-09-21 14:13 to 2026-09-21 14:14 UTC: calm 3 to 7; code abc. "
        "4 seeds 1 failed 1,000 jobs 2 lost"
    )
    assert "10,000 duplicates per million" in read
    assert "12.7 years simulated" in read


def test_every_part_is_there() -> None:
    read = text(page.render(TOLD, lambda *what: f"again {what}"))

    assert "calm 3 runs · 3 left" in read
    assert "calm abc 1 7 served &lt;2&gt; times again (&#x27;calm&#x27;, 7, " in read
    assert "calm 9,000 0.5 1,000" in read
    assert "clocks 3 8,000 · ·" in read
    assert f"{sweeps.NO_FAULT} 1 · · ·" in read
    assert "SETACK never never 1.5k never" in read
    assert "calm 4 500 900 5 again (&#x27;calm&#x27;, 5, " in read
    assert "From sweep to sweep" not in read
    assert "queued 2 ms 64 ms 2.05 s" in read
    assert "calm 900 1.1 s 5 ms – 20 ms 1 s 75 ms" in read


def test_jobs_that_a_live_cluster_still_has_are_no_failure() -> None:
    left = [Curve("live", 1, [(0, 0.0), (400, 4.0)], 4, None)]

    html = page.render(attrs.evolve(TOLD, unseen=left))

    assert "<span>1 run · 4 waiting</span>" in html
    assert "live 1 run · 4 waiting 0 1 min 2 min" in text(html)


def test_marks_that_no_seed_has_hit_are_named() -> None:
    assert "Not seen" not in text(page.render(TOLD))

    read = text(page.render(attrs.evolve(TOLD, missed=[("calm", 4, ["crash", "cut"])])))

    assert "scenario seeds marks calm 4 crash, cut" in read


def test_what_was_swept_again_is_compared() -> None:
    day = 86_400_000_000
    later = {
        **SEEDS, "sweep": "t", "commit": "def", "since": SEEDS["since"] + day,
        "until": SEEDS["until"] + day, "failed": 0, "per_million": 5_000.0, "cost": 250.0,
    }  # fmt: skip

    read = text(page.render(attrs.evolve(TOLD, seeds=[later, SEEDS])))

    assert (
        "Swept from 2026-09-21 14:13 to 2026-09-22 14:14 UTC: calm 3 to 7; code abc, def." in read
    )
    assert (
        "calm 2026-09-21 14:13 abc 4 1 10,000 500 calm 2026-09-22 14:13 def 4 0 5,000 250" in read
    )


def test_the_head_names_the_first_of_many_scenarios() -> None:
    many = [{**SEEDS, "scenario": f"s{number:02}", "last": 3} for number in range(11)]

    read = text(page.render(attrs.evolve(TOLD, seeds=many)))

    assert "s00 3; s01 3; s02 3; s03 3; s04 3; s05 3; s06 3; s07 3; 3 other scenarios" in read


def test_the_page_needs_nothing_else() -> None:
    html = page.render(TOLD)

    assert not re.search(r"(src|href)=|url\(|@import|<script", html)
    assert html.count("<svg") == html.count("</svg>") == 3


def test_an_empty_lake_has_a_page_that_says_how_to_fill_it(spark: Any, tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path / "lake"), create=True)

    read = text(page.render(facts.ask(spark, lake)))

    assert read.startswith("EMPTY LAKE")
    assert "disque-trio pipeline ingest LAKE FILE…" in read


def test_every_chart_has_a_text_and_the_colours_of_the_page() -> None:
    line = charts.Line("accent", [(0, 0), (1, 2)])
    drawing = charts.draw(charts.layers(charts.curve(line, {}, {})), 'curve of <calm> & "all"')

    assert drawing.startswith('<svg role="img" aria-label="curve of &lt;calm&gt; &amp; &quot;all')
    assert 'stroke="var(--accent)"' in drawing
    assert not re.search(r"#[0-9a-f]{6}|rgb|hsl", drawing)


def test_what_is_zero_throughout_is_drawn_all_the_same() -> None:
    line = charts.Line("accent", [(0, 0)])

    assert "NaN" not in charts.draw(charts.layers(charts.curve(line, {}, {})), "nothing")


def test_every_mark_of_a_kind_of_fault_is_a_mark() -> None:
    assert {mark for marks in sweeps.FAMILIES.values() for mark in marks} <= set(MARKS)


def test_the_time_of_a_job_is_divided_among_its_stages(spark: Any) -> None:
    spark.sql(
        """
        SELECT 'calm' AS scenario, 1000L AS asked, 1000L AS born, 3000L AS delay, 6000L AS queued,
          10000L AS delivered, 30000L AS last_delivered, 80000L AS acked
        """
    ).createOrReplaceTempView("jobs")

    (row,) = spark.sql(sweeps.TIMES).collect()

    assert [row[name] for name in sweeps.STAGES] == [2, 3, 4, 20, 50]
    assert row["took"] == 79


def test_duplicates_count_for_each_kind_of_fault_of_their_seed(spark: Any) -> None:
    spark.sql(
        """
        SELECT 100L AS added, map('D1', 3L) AS duplicates,
          map('cut', 2L, 'cut.one_way', 1L, 'clock.step', 1L, 'crash', 0L) AS marks
        UNION ALL SELECT 300L, map('D1', 1L, 'D5', 4L), map('cut', 1L)
        UNION ALL SELECT 50L, map(), map('duplicate.any', 1L)
        """
    ).createOrReplaceTempView("results")

    rows = spark.sql(sweeps.RATES).collect()

    assert list(map(tuple, rows)) == [
        ("clocks", 1, "D1", 30_000.0),
        ("links cut", 2, "D1", 10_000.0),
        ("links cut", 2, "D5", 10_000.0),
        (sweeps.NO_FAULT, 1, None, None),
    ]


def test_a_seed_is_run_again_from_the_file_that_was_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my scenarios"
    folder.mkdir()
    (folder / "other.toml").write_text("no scenario", "utf-8")
    found = scenario_from(scenario(folder, "calm"))
    version = f"1.0-rc-trio-c0de-{scenario_digest(found)}"

    reruns = Reruns.among(["my scenarios", "missing"])

    again = "disque-trio sim run 'my scenarios/calm.toml' --seed 7"
    assert reruns.command("calm", 7, version) == f"{again} --engine trio"
    assert (
        reruns.command("calm", 7, "1.0-heap-c0de-d16e57")
        == f"{again}  # the file has changed since"
    )
    assert reruns.command("unknown", 7, version) == ""
