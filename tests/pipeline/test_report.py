"""The report: what is on the page, and what is said where there is nothing to show."""

import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.report import charts, facts, page
from disque_trio.pipeline.report.facts import QUANTILES, Curve, Latency, ReportFacts

SEEDS: dict[str, Any] = {
    "scenario": "calm", "sweep": "s", "commit": "abc", "since": 1_790_000_000_000_000,
    "until": 1_790_000_060_000_000, "first": 3, "last": 7, "seeds": 4, "failed": 1,
    "jobs": 1000, "deliveries": 1010, "lost": 2, "duplicates": 10, "per_million": 10_000.0,
    "simulated": 4e8, "seconds": 2.0, "cost": 500.0, "dearest": 900.0,
    "dearest_seed": 5,
}  # fmt: skip
TOLD = ReportFacts(
    lake="/data/<lake>",
    rows=12_345,
    runs=3,
    live=1,
    added=1000,
    seeds=[SEEDS],
    failures=[
        {"scenario": "calm", "property": "S5", "seeds": 1, "seed": 7, "text": "served <2> times"}
    ],
    violations=None,
    causes=[
        {"scenario": "calm", "cause": cause, "per_million": rate}
        for cause, rate in (("D1", 9_000.0), ("D5", 0.5), ("DX", 1_000.0))
    ],
    coverage=[{"message": "setack", "state": "queued", "times": 1_500}],
    unseen=[Curve("calm", 3, [(0, 0.0), (30, 4.0), (60, 1.0)], 3, 40.0)],
    latency=[Latency("calm", "queued", 900, [0.0, *(2.0**n for n in range(len(QUANTILES) - 1))])],
)


def text(html: str) -> str:
    """What is read on the page."""
    return " ".join(re.sub(r"<[^>]+>", " ", html.partition("</style>")[2]).split())


def test_the_page_says_at_its_head_what_came_of_it() -> None:
    read = text(page.render(TOLD))

    assert read.startswith(
        "1 FAILED /data/&lt;lake&gt; "
        "Swept from 2026-09-21 14:13 to 2026-09-21 14:14 UTC: calm 3 to 7; code abc. "
        "4 seeds 1 failed 1,000 jobs 2 lost"
    )
    assert "10,000 duplicates per million" in read
    assert "12.7 years simulated" in read


def test_every_part_is_there() -> None:
    read = text(page.render(TOLD))

    assert "calm 3 runs · 3 left" in read
    assert "S5 calm 1 7 served &lt;2&gt; times" in read
    assert "calm 9,000 0.5 1,000" in read
    assert "SETACK never never 1.5k never" in read
    assert "calm 4 500 900 5" in read
    assert "From sweep to sweep" not in read
    assert "queued: half within 2 ms" in read


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
    assert "calm 2026-09-21 14:13 abc 4 1 10,000 500 2026-09-22 14:13 def 4 0 5,000 250" in read


def test_the_head_names_the_first_of_many_scenarios() -> None:
    many = [{**SEEDS, "scenario": f"s{number:02}", "last": 3} for number in range(11)]

    read = text(page.render(attrs.evolve(TOLD, seeds=many)))

    assert "s00 3; s01 3; s02 3; s03 3; s04 3; s05 3; s06 3; s07 3; 3 other scenarios" in read


def test_the_page_needs_nothing_else() -> None:
    html = page.render(TOLD)

    assert not re.search(r"(src|href)=|url\(|@import|<script", html)
    assert html.count("<svg") == html.count("</svg>") == 2


def test_an_empty_lake_has_a_page_that_says_how_to_fill_it(spark: Any, tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path / "lake"), create=True)

    read = text(page.render(facts.ask(spark, lake)))

    assert read.startswith("EMPTY LAKE")
    assert "disque-trio pipeline ingest LAKE FILE…" in read


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 10, ["0", "2", "4", "6", "8", "10"]),
        (0, 7, ["0", "2", "4", "6", "8"]),
        (0, 0, ["0"]),
        (0, 2_300, ["0", "500", "1k", "1.5k", "2k", "2.5k"]),
    ],
)
def test_an_axis_has_round_numbers(low: float, high: float, ticks: list[str]) -> None:
    assert [name for _, name in charts.linear(low, high).ticks] == ticks


def test_what_is_off_the_axis_by_nothing_is_drawn_all_the_same() -> None:
    axis = charts.linear(0, 0)

    drawing = charts.plot([charts.Line("l", "ok", [(0, 0)])], axis, axis, says="nothing")

    assert "nan" not in drawing
