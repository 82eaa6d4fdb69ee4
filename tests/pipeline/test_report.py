"""The report: what is on the page, and what is said where there is nothing to show."""

import re
from pathlib import Path
from typing import Any

import pytest

from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.report import charts, facts, page
from disque_trio.pipeline.report.facts import QUANTILES, Curve, Latency, ReportFacts

SEEDS = {
    "scenario": "calm", "sweep": "s", "commit": "abc", "since": 1, "seeds": 4, "failed": 1,
    "jobs": 1000, "deliveries": 1010, "lost": 2, "duplicates": 10, "per_million": 10_000.0,
    "simulated": 4e8, "seconds": 2.0, "cost": 500.0, "dearest": 900.0,
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

    assert read.startswith("1 FAILED /data/&lt;lake&gt; 4 seeds 1 failed 1,000 jobs 2 lost")
    assert "10,000 duplicates per million" in read
    assert "12.7 years simulated" in read


def test_every_part_is_there() -> None:
    read = text(page.render(TOLD))

    assert "calm 3 runs · 3 left" in read
    assert "S5 calm 1 7 served &lt;2&gt; times" in read
    assert "calm 9,000 0.5 1,000" in read
    assert "SETACK never never 1.5k never" in read
    assert "calm 4 500 900" in read
    assert "queued: half within 2 ms" in read


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
