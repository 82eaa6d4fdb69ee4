"""Renders the figures as one HTML file."""

import html
import math
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Final

from disque_trio.pipeline.report import charts, sweeps
from disque_trio.pipeline.report.charts import Line, short
from disque_trio.pipeline.report.facts import QUANTILES, Curve, Facts, Latency, ReportFacts
from disque_trio.sim.checkers.duplicates import CAUSES, UNAVOIDABLE
from disque_trio.sim.checkers.properties import PROPERTIES
from disque_trio.sim.picture import sheet
from disque_trio.sim.scenarios.vocabulary import MESSAGES

_STYLE: Final = resources.files("disque_trio.pipeline.report") / "page.css"
_PLOTS_MOST: Final = 12
"""Of one kind; scenarios with the most jobs come first."""
_STATES: Final = ("unknown", "held", "queued", "acked")
_ABOUT_JOBS: Final = tuple(
    name
    for name in MESSAGES
    if name not in {"ping", "pong", "meet", "fail", "needjobs", "pause", "waiting", "havejobs"}
)
_STAGES: Final = {"answered": "told-to", "queued": "d5", "delivered": "accent", "acked": "good"}
_NINES: Final = 5.0
"""The position of the maximum on an axis of percentiles, after 99.99."""
_FLOOR: Final = 0.01
"""Milliseconds; lower values are drawn at the bottom of the logarithmic axis."""


def render(told: ReportFacts) -> str:
    """The whole page."""
    sections = (
        _head, _failures, _violations, _trends, _unseen, _duplicates, _latency, _coverage, _cost,
    )  # fmt: skip
    body = "\n".join(part for each in sections if (part := each(told)))
    return sheet.sheet(f"Report on {told.lake}", sheet.dark() + sheet.text(_STYLE), body)


def _section(title: str, about: str, content: str) -> str:
    return f"<section><h2>{title}</h2><p>{about}</p>{content}</section>"


# The head.


def _head(told: ReportFacts) -> str:
    seeds = sum(row["seeds"] for row in told.seeds)
    failed = sum(row["failed"] for row in told.seeds)
    kind, word = ("fail", f"{failed:,} FAILED") if failed else ("pass", "PASSED")
    if not seeds:
        kind, word = "", "NO SWEEP" if told.rows else "EMPTY LAKE"
    figures = list(_figures(told, seeds, failed))
    shown = "".join(
        f'<div class="{css}"><b>{value}</b>{html.escape(name)}</div>'
        for name, value, css in figures
    )
    empty = "" if not told.is_empty else (
        "<p>There is nothing in this lake yet. <code>disque-trio pipeline ingest LAKE FILE…</code> "
        "takes in traces, and <code>disque-trio sim sweep … --lake LAKE</code> a sweep.</p>"
    )  # fmt: skip
    return (
        f'<header><div class="verdict {kind}">{word}</div>'
        f"<h1>{html.escape(told.lake)}</h1>{sweeps.swept(told.seeds)}"
        f'<div class="figures">{shown}{empty}</div></header>'
    )


def _figures(told: ReportFacts, seeds: int, failed: int) -> Iterable[tuple[str, str, str]]:
    if seeds:
        total = {
            name: sum(row[name] or 0 for row in told.seeds)
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
    if told.rows:
        yield "trace rows", short(told.rows), ""
        runs = f"traced runs, {told.live} live" if told.live else "traced runs"
        yield runs, f"{told.runs:,}", ""
        yield "jobs in traces", f"{told.added:,}", ""


def _duration(seconds: float) -> str:
    for size, unit in ((31_557_600, "years"), (86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"


# Curves.


def _unseen(told: ReportFacts) -> str:
    curves = [curve for curve in told.unseen if any(value for _, value in curve.points)]
    if not curves:
        return ""
    chosen = sorted(curves, key=lambda curve: -max(value for _, value in curve.points))
    drawn = sorted(chosen[:_PLOTS_MOST], key=lambda curve: curve.scenario)
    return _section(
        "Unseen jobs",
        "Jobs that were added and not yet delivered to a consumer, over time: the mean of all "
        "traced runs. None may be left at the end, except jobs of which faults destroyed as many "
        f"copies as were promised.{_left_out(curves)}",
        _plots(_unseen_plot(curve) for curve in drawn),
    )


def _unseen_plot(curve: Curve) -> str:
    last = curve.points[-1][0]
    scale, unit = (3600, "h") if last > 7200 else (60, "min") if last > 300 else (1, "s")
    across = charts.linear(0, last / scale, unit)
    up = charts.linear(0, max(value for _, value in curve.points), most=4)
    points = [(second / scale, value) for second, value in curve.points]
    mark = None if curve.healed is None else (curve.healed / scale, "healed")
    says = f"unseen jobs of {curve.scenario} over time"
    drawing = charts.plot([Line("unseen", "accent", points)], across, up, says=says, mark=mark)
    end = (
        f'<span class="bad">{curve.left:,} left</span>'
        if curve.left
        else '<span class="good">none left</span>'
    )
    return _figure(curve.scenario, f"{_runs(curve.runs)} · {end}", drawing)


def _latency(told: ReportFacts) -> str:
    by_scenario: dict[str, list[Latency]] = {}
    for each in told.latency:
        by_scenario.setdefault(each.scenario, []).append(each)
    if not by_scenario:
        return ""
    chosen = sorted(by_scenario.values(), key=lambda stages: -max(s.jobs for s in stages))
    drawn = sorted(chosen[:_PLOTS_MOST], key=lambda stages: stages[0].scenario)
    names = {
        "answered": "ADDJOB to its answer",
        "queued": "ADDJOB to the queue, without DELAY",
        "delivered": "queue to consumer",
        "acked": "consumer to ACKJOB",
    }
    legend = "".join(
        f'<span><i style="background:var(--{_STAGES[stage]})"></i>{stage}: {name}</span>'
        for stage, name in names.items()
    )
    return _section(
        "Latency",
        "The time that jobs took from stage to stage, by percentile. Both axes are logarithmic: "
        "each step to the right adds a nine to the percentile; the right end is the "
        f"maximum.{_left_out(chosen)}",
        f'<div class="legend">{legend}</div>' + _plots(_latency_plot(each) for each in drawn),
    )


def _latency_plot(stages: Sequence[Latency]) -> str:
    places = [_NINES if part == 1 else -math.log10(1 - part) for part in QUANTILES]
    lines = [
        Line(
            f"{each.stage}: half within {each.at[2]:,.3g} ms, 99 % within {each.at[7]:,.4g} ms",
            _STAGES[each.stage],
            [
                (place, math.log10(max(value, _FLOOR)))
                for place, value in zip(places, each.at, strict=True)
            ],
        )
        for each in stages
    ]
    values = [y for line in lines for _, y in line.points]
    up = charts.decades(min(values), max(values), _TIMES)
    across = charts.Axis(0, _NINES, _PARTS)
    scenario = stages[0].scenario
    drawing = charts.plot(lines, across, up, says=f"latency of {scenario} by percentile")
    return _figure(scenario, f"{max(each.jobs for each in stages):,} jobs", drawing)


_TIMES: Final = (
    (-2, "10 µs"), (-1, "0.1 ms"), (0, "1 ms"), (1, "10 ms"), (2, "0.1 s"), (3, "1 s"), (4, "10 s"),
    (5, "100 s"), (6, "17 min"), (7, "3 h"), (8, "1 day"), (9, "12 days"),
)  # fmt: skip
_PARTS: Final = (
    (-math.log10(0.5), "50 %"), (1.0, "90"), (2.0, "99"), (3.0, "99.9"), (4.0, "99.99"),
    (_NINES, "max"),
)  # fmt: skip


def _plots(figures: Iterable[str]) -> str:
    return f'<div class="plots">{"".join(figures)}</div>'


def _figure(title: str, more: str, drawing: str) -> str:
    caption = f"<figcaption>{html.escape(title)}<span>{more}</span></figcaption>"
    return f"<figure>{caption}{drawing}</figure>"


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count:,} runs"


def _left_out(whole: Sequence[object]) -> str:
    more = len(whole) - _PLOTS_MOST
    return f" {more} scenarios with fewer jobs are left out." if more > 0 else ""


# Tables.


def _duplicates(told: ReportFacts) -> str:
    if not told.causes:
        return ""
    found = {(row["scenario"], row["cause"]): row["per_million"] or 0 for row in told.causes}
    scenarios = sorted({scenario for scenario, _ in found})
    order = [*CAUSES, "D2-D12"]
    causes = [cause for cause in order if any((each, cause) in found for each in scenarios)]
    largest = max(found.values())
    head = "".join(
        f'<th class="number" title="{html.escape(CAUSES.get(cause, _REST))}">{cause}</th>'
        for cause in causes
    )
    body = "".join(
        f"<tr><th>{html.escape(scenario)}</th>"
        + "".join(_rate(found.get((scenario, cause), 0), largest, cause) for cause in causes)
        + "</tr>"
        for scenario in scenarios
    )
    meanings = "; ".join(f"{cause} {CAUSES.get(cause, _REST)}" for cause in causes)
    return _section(
        "Duplicates per million jobs, by cause",
        "Blue: unavoidable, or requested by a client. Orange: a better queue would avoid it. "
        f"Red: unexplained. {html.escape(meanings)}.",
        f'<div class="wide"><table class="heat"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>",
    )


_REST: Final = "some other cause, which the rows alone do not show"


def _rate(value: float, largest: float, cause: str) -> str:
    if not value:
        return '<td class="none">·</td>'
    hue = "dx" if cause == "DX" else "accent" if cause in UNAVOIDABLE else "d4"
    if cause == "D2-D12":
        hue = "muted"
    shown = f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
    return f'<td style="{charts.shade(value, largest, hue)}">{shown}</td>'


def _trends(told: ReportFacts) -> str:
    table = sweeps.trends(told.seeds)
    return table and _section(
        "From sweep to sweep",
        "Scenarios that were swept more than once, the oldest sweep first. Bars compare the sweeps "
        "of one scenario.",
        table,
    )


def _failures(told: ReportFacts) -> str:
    if not told.seeds:
        return ""
    if not told.failures:
        return _section("Failures by property", "No seed has violated any property.", "")
    by_property: dict[str, int] = {}
    for row in told.failures:
        by_property[row["property"]] = by_property.get(row["property"], 0) + row["seeds"]
    most = max(by_property.values())
    bars = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(_meaning(name))}</td>"
        f'<td class="number">{count:,}</td><td>{charts.bar(count / most, "bad")}</td></tr>'
        for name, count in sorted(by_property.items(), key=lambda item: -item[1])
    )
    firsts = "".join(
        f"<tr><th>{html.escape(row['property'])}</th><td>{html.escape(row['scenario'])}</td>"
        f'<td class="number">{row["seeds"]:,}</td><td class="number">{row["seed"]}</td>'
        f'<td class="text">{html.escape(row["text"] or "")}</td></tr>'
        for row in told.failures[:40]
    )
    return _section(
        "Failures by property",
        "How many seeds violated each property, with the first seed of each scenario: "
        "<code>disque-trio sim run scenarios/NAME.toml --seed N</code> runs it again.",
        f'<div class="wide"><table><tbody>{bars}</tbody></table><br><table><thead><tr>'
        '<th>property</th><th>scenario</th><th class="number">seeds</th>'
        f'<th class="number">first</th><th>the finding of the checker</th></tr></thead>'
        f"<tbody>{firsts}</tbody></table></div>",
    )


def _meaning(property: str) -> str:
    return PROPERTIES.get(property) or CAUSES.get(property, "")


def _violations(told: ReportFacts) -> str:
    if told.violations is None:
        return ""
    if not told.violations:
        return _section(
            "Checks on traces", "The queries find no violation of S3 to S7, L1, L3.", ""
        )
    body = "".join(
        f"<tr><th>{html.escape(row['property'])}</th><td>{html.escape(row['scenario'])}</td>"
        f'<td class="number">{row["runs"]:,}</td><td class="number">{row["times"]:,}</td>'
        f'<td class="number">{row["seed"]}</td>'
        f'<td class="text">{html.escape(row["text"])}</td></tr>'
        for row in told.violations
    )
    return _section(
        "Checks on traces",
        "Violations that queries find in rows, also of runs that no checker has seen.",
        '<div class="wide"><table><thead><tr><th>property</th><th>scenario</th>'
        '<th class="number">runs</th><th class="number">times</th><th class="number">seed</th>'
        f"<th>the first</th></tr></thead><tbody>{body}</tbody></table></div>",
    )


def _coverage(told: ReportFacts) -> str:
    if not told.coverage:
        return ""
    found = {(row["message"], row["state"]): row["times"] for row in told.coverage}
    largest = max(found.values())
    states = [*_STATES, *sorted({state for _, state in found} - set(_STATES))]
    messages = [*_ABOUT_JOBS, *sorted({message for message, _ in found} - set(_ABOUT_JOBS))]
    head = "".join(f'<th class="number">{html.escape(state)}</th>' for state in states)
    body = "".join(
        f"<tr><th>{html.escape(message.upper())}</th>"
        + "".join(_cell(found.get((message, state), 0), largest) for state in states)
        + "</tr>"
        for message in messages
    )
    hit = sum(1 for value in found.values() if value)
    return _section(
        "Coverage",
        "How often each message about a job arrived at a node, by the state of the job there. "
        f"{hit} pairs occurred; the striped ones never did.",
        f'<div class="wide"><table class="heat"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>",
    )


def _cell(value: int, largest: int) -> str:
    if not value:
        return '<td class="never">never</td>'
    return f'<td style="{charts.shade(value, largest, "good")}">{short(value)}</td>'


def _cost(told: ReportFacts) -> str:
    if not told.seeds:
        return ""
    most = max(row["dearest"] or row["cost"] for row in told.seeds) or 1
    has_sweeps = len({row["sweep"] for row in told.seeds}) > 1
    body = "".join(_cost_row(row, most, has_sweeps) for row in told.seeds)
    sweep = "<th>code</th>" if has_sweeps else ""
    return _section(
        "Cost per seed",
        "Processor time in milliseconds: the bar is the mean, the line the most expensive seed.",
        f'<div class="wide"><table><thead><tr><th>scenario</th>{sweep}<th class="number">seeds</th>'
        '<th class="number">mean ms</th><th class="number">dearest</th>'
        '<th class="number">seed</th><th></th></tr></thead>'
        f"<tbody>{body}</tbody></table></div>",
    )


def _cost_row(row: Facts, most: float, has_sweeps: bool) -> str:
    code = f"<td><code>{html.escape((row['commit'] or '')[:10])}</code></td>" if has_sweeps else ""
    return (
        f"<tr><th>{html.escape(row['scenario'])}</th>{code}"
        f'<td class="number">{row["seeds"]:,}</td><td class="number">{row["cost"]:,.0f}</td>'
        f'<td class="number">{row["dearest"]:,.0f}</td>'
        f'<td class="number">{row["dearest_seed"]}</td>'
        f"<td>{charts.bar(row['cost'] / most, end=row['dearest'] / most)}</td></tr>"
    )
