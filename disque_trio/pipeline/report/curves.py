"""Parts of the report about time: unseen jobs, latency, and where the time of jobs goes."""

import html
import math
from collections.abc import Sequence
from typing import Final

from disque_trio.pipeline.lake.shape import LIVE
from disque_trio.pipeline.report import charts
from disque_trio.pipeline.report.charts import Line
from disque_trio.pipeline.report.facts import QUANTILES, Curve, Latency, ReportFacts
from disque_trio.pipeline.report.markup import (
    PLOTS_MOST,
    figure,
    left_out,
    legend,
    plots,
    section,
    table,
    time,
)
from disque_trio.pipeline.report.sweeps import STAGES, Facts
from disque_trio.terminal.counting import counted

_NINES: Final = 5.0
"""The position of the maximum on an axis of percentiles, after 99.99."""
_FLOOR: Final = 0.01
"""Milliseconds; lower values are drawn at the bottom of the logarithmic axis."""
_STEPS: Final = {
    "answered": ("told-to", (2, 2), "ADDJOB to its answer"),
    "queued": ("d5", (7, 3), "ADDJOB to the queue, without DELAY"),
    "delivered": ("accent", (), "queue to consumer"),
    "acked": ("good", (), "consumer to ACKJOB"),
}
_TIMES: Final = (
    (-2, "10 µs"), (-1, "0.1 ms"), (0, "1 ms"), (1, "10 ms"), (2, "0.1 s"), (3, "1 s"), (4, "10 s"),
    (5, "100 s"), (6, "17 min"), (7, "3 h"), (8, "1 day"), (9, "12 days"),
)  # fmt: skip
_PARTS: Final = (
    (0.3, "50 %"), (1.0, "90"), (2.0, "99"), (3.0, "99.9"), (4.0, "99.99"), (_NINES, "max"),
)  # fmt: skip
_COLOURS: Final = {
    "adding": "told-to",
    "delayed": "down",
    "waiting": "accent",
    "repeating": "requeue",
    "working": "good",
}


def unseen(facts: ReportFacts) -> str:
    """Undelivered jobs over time."""
    curves = [curve for curve in facts.unseen if any(value for _, value in curve.points)]
    if not curves:
        return ""
    chosen = sorted(curves, key=lambda curve: -max(value for _, value in curve.points))
    drawn = sorted(chosen[:PLOTS_MOST], key=lambda curve: curve.scenario)
    return section(
        "Unseen jobs",
        "Jobs that were added and not yet delivered to a consumer, over time: the mean of all "
        "traced runs. A simulated run may have none left at the end, except jobs of which faults "
        f"destroyed as many copies as were promised.{left_out(curves)}",
        plots(_unseen_plot(curve) for curve in drawn),
    )


def _unseen_plot(curve: Curve) -> str:
    last = curve.points[-1][0]
    size, unit = (3600, "h") if last > 7200 else (60, "min") if last > 300 else (1, "s")
    line = Line("accent", [(second / size, value) for second, value in curve.points])
    across = {
        "axis": {"tickCount": 6, "labelExpr": f"datum.value ? datum.label + ' {unit}' : '0'"},
        "scale": {"domain": [0, last / size], "nice": False},
    }
    parts = [charts.area(line), charts.curve(line, across, {"axis": {"tickCount": 4}})]
    healed = curve.healed
    if healed is not None and healed <= last:
        parts.append(charts.mark_at(healed / size, "healed", is_late=healed > 0.6 * last))
    most = max(value for _, value in curve.points)
    label = (
        f"unseen jobs of {curve.scenario} over {last / size:.3g} {unit}: "
        f"{most:,.3g} at most, {curve.left / curve.runs:,.3g} at the end"
    )
    drawing = charts.draw(charts.layers(*parts), label)
    return figure(curve.scenario, f"{counted(curve.runs, 'run')} · {_end(curve)}", drawing)


def _end(curve: Curve) -> str:
    """What is left. Only a run that has ended must have none."""
    if curve.scenario == LIVE:
        return f"{curve.left:,} waiting"
    if curve.left:
        return f'<span class="bad">{curve.left:,} left</span>'
    return '<span class="good">none left</span>'


def latency(facts: ReportFacts) -> str:
    """Percentiles of the time from stage to stage."""
    by_scenario: dict[str, list[Latency]] = {}
    for each in facts.latency:
        by_scenario.setdefault(each.scenario, []).append(each)
    if not by_scenario:
        return ""
    chosen = sorted(by_scenario.values(), key=lambda stages: -max(s.jobs for s in stages))
    drawn = sorted(chosen[:PLOTS_MOST], key=lambda stages: stages[0].scenario)
    return section(
        "Latency",
        "The time that jobs took from stage to stage, by percentile. Both axes are logarithmic: "
        "each step to the right adds a nine to the percentile; the right end is the "
        f"maximum.{left_out(chosen)}",
        legend((colour, f"{step}: {name}") for step, (colour, _, name) in _STEPS.items())
        + plots(_latency_plot(each) for each in drawn),
    )


def _latency_plot(stages: Sequence[Latency]) -> str:
    lines = [_line(each) for each in stages]
    values = [y for line in lines for _, y in line.points]
    low, high = math.floor(min(values)), math.ceil(max(values))
    high = max(high, low + 1)
    across = {
        "axis": charts.named_ticks(_PARTS),
        "scale": {"domain": [0, _NINES], "nice": False},
    }
    up = {
        "axis": charts.named_ticks([tick for tick in _TIMES if low <= tick[0] <= high]),
        "scale": {"domain": [low, high], "nice": False, "zero": False},
    }
    scenario = stages[0].scenario
    drawing = charts.draw(
        charts.layers(*(charts.curve(line, across, up) for line in lines)),
        f"latency of {scenario} by percentile; the table below has the figures",
    )
    figures = table(
        f"latency of {scenario}",
        ("", "number:half", "number:99 %", "number:longest"),
        ([each.stage, *(time(each.at[at]) for at in (2, 7, -1))] for each in stages),
    )
    return figure(scenario, counted(max(each.jobs for each in stages), "job"), drawing + figures)


def _line(each: Latency) -> Line:
    colour, dash, _ = _STEPS[each.stage]
    places = [_NINES if part == 1 else -math.log10(1 - part) for part in QUANTILES]
    heights = [math.log10(max(value, _FLOOR)) for value in each.at]
    return Line(colour, list(zip(places, heights, strict=True)), dash)


def stages(facts: ReportFacts) -> str:
    """Where the time from ADDJOB to the ack goes."""
    if not facts.stages:
        return ""
    drawing = charts.draw(
        _stages_chart(facts.stages), "the shares of each stage, which the table has as times"
    )
    figures = table(
        "mean time of jobs by stage",
        ("scenario", "number:jobs", "number:whole", *(f"number:{name}" for name in STAGES)),
        (_stages_row(row) for row in facts.stages),
    )
    return section(
        "Where the time goes",
        "The mean time from ADDJOB to the ack, by what the job was waiting for: all jobs of traced "
        "runs that were acknowledged.",
        legend((_COLOURS[name], f"{name}: {text}") for name, text in STAGES.items())
        + f'<div class="beside"><figure>{drawing}</figure>{figures}</div>',
    )


def _stages_row(row: Facts) -> list[str]:
    return [
        html.escape(row["scenario"]),
        f"{row['jobs']:,}",
        time(row["took"]),
        *(time(row[name]) if row[name] else "–" for name in STAGES),
    ]


def _stages_chart(rows: Sequence[Facts]) -> charts.Spec:
    shares = [
        {"scenario": row["scenario"], "stage": name, "took": row[name], "place": place}
        for row in rows
        for place, name in enumerate(STAGES)
    ]
    colours = [f"var(--{_COLOURS[name]})" for name in STAGES]
    return {
        "height": 30 + 24 * len(rows),
        "data": charts.data(shares),
        "mark": {"type": "bar", "height": {"band": 0.7}},
        "encoding": {
            "x": charts.field(
                "took", stack="normalize", axis={"tickCount": 4, "format": "%", "grid": True}
            ),
            "y": charts.names("scenario"),
            "color": charts.field(
                "stage", "nominal", scale={"domain": list(STAGES), "range": colours}, legend=None
            ),
            "order": charts.field("place"),
        },
    }
