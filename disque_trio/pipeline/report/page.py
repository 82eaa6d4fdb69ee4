"""Renders the figures as one HTML file."""

import html
from collections.abc import Iterable
from importlib import resources
from typing import Final

from disque_trio.pipeline.report import curves, tables, trends
from disque_trio.pipeline.report.facts import ReportFacts
from disque_trio.pipeline.report.markup import short
from disque_trio.pipeline.report.tables import Rerun
from disque_trio.sim.picture import html_page

_STYLE: Final = resources.files("disque_trio.pipeline.report") / "page.css"


def render(facts: ReportFacts, rerun: Rerun = lambda *_: "") -> str:
    """The whole page."""
    parts = (
        _head(facts),
        tables.failures(facts, rerun),
        tables.missed(facts),
        tables.violations(facts),
        trends.trends(facts),
        curves.stages(facts),
        curves.unseen(facts),
        curves.latency(facts),
        tables.duplicates(facts),
        tables.coverage(facts),
        tables.cost(facts, rerun),
    )
    body = "\n".join(part for part in parts if part)
    return html_page.html_page(
        f"Report on {_name(facts.lake)}", html_page.dark() + html_page.text(_STYLE), body
    )


# The head.


def _head(facts: ReportFacts) -> str:
    seeds = sum(row["seeds"] for row in facts.seeds)
    failed = sum(row["failed"] for row in facts.seeds)
    kind, word = ("fail", f"{failed:,} FAILED") if failed else ("pass", "PASSED")
    if not seeds:
        kind, word = "", "NO SWEEP" if facts.rows else "EMPTY LAKE"
    figures = list(_figures(facts, seeds, failed))
    shown = "".join(
        f'<div class="{css}"><b>{value}</b>{html.escape(name)}</div>'
        for name, value, css in figures
    )
    empty = "" if not facts.is_empty else (
        "<p>There is nothing in this lake yet. <code>disque-trio pipeline ingest LAKE FILE…</code> "
        "takes in traces, and <code>disque-trio sim sweep … --lake LAKE</code> a sweep.</p>"
    )  # fmt: skip
    return (
        f'<header><div class="verdict {kind}">{word}</div>'
        f'<h1 title="{html.escape(facts.lake)}">{html.escape(_name(facts.lake))}</h1>'
        f"{trends.swept(facts.seeds)}"
        f'<div class="figures">{shown}{empty}</div></header>'
    )


def _name(lake: str) -> str:
    """A lake by the last part of its path, which says which it is to those who have some."""
    return lake.rstrip("/").rpartition("/")[2] or lake


def _figures(facts: ReportFacts, seeds: int, failed: int) -> Iterable[tuple[str, str, str]]:
    if seeds:
        total = {
            name: sum(row[name] or 0 for row in facts.seeds)
            for name in ("jobs", "deliveries", "lost", "duplicates", "simulated", "seconds")
        }
        yield "seeds", f"{seeds:,}", ""
        yield "failed", f"{failed:,}", "bad" if failed else ""
        yield "jobs", f"{total['jobs']:,}", ""
        yield "lost", f"{total['lost']:,}", "bad" if total["lost"] else ""
        rate = 1e6 * total["duplicates"] / total["jobs"] if total["jobs"] else 0
        yield "duplicates per million", f"{rate:,.0f}", ""
        yield "simulated", _duration(total["simulated"]), ""
        yield "of a processor", _duration(total["seconds"]), ""
        yield "for each seed", f"{1e3 * total['seconds'] / seeds:,.0f} ms", ""
    if facts.rows:
        yield "trace rows", short(facts.rows), ""
        runs = f"traced runs, {facts.live} live" if facts.live else "traced runs"
        yield runs, f"{facts.runs:,}", ""
        yield "jobs in traces", f"{facts.added:,}", ""


def _duration(seconds: float) -> str:
    for size, unit in ((31_557_600, "years"), (86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"
