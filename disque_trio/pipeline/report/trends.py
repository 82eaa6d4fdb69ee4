"""What was swept and when, and how scenarios have changed from sweep to sweep."""

import html
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from disque_trio.pipeline.report import charts
from disque_trio.pipeline.report.facts import ReportFacts
from disque_trio.pipeline.report.markup import PLOTS_MOST, figure, left_out, plots, section, table
from disque_trio.pipeline.report.sweeps import Facts
from disque_trio.terminal.counting import counted

_NAMED_MOST: Final = 8
"""Scenarios that the head names."""
_LATEST: Final = 14
"""Sweeps of one scenario that are shown."""
_ALL: Final = "all scenarios"
_AMOUNT: Final = "datum.value ? format(datum.value, '~s') : '0'"
_PANELS: Final = (
    ("failed", "seeds that failed, %", "bad", "bar"),
    ("per_million", "duplicates per million jobs", "d5", "line"),
    ("cost", "processor time of a seed, ms", "accent", "line"),
)


def swept(seeds: Sequence[Facts]) -> str:
    """When, what, and which code: a sentence."""
    if not seeds:
        return ""
    since, until = min(row["since"] for row in seeds), max(row["until"] for row in seeds)
    in_order = sorted(seeds, key=lambda row: row["since"])
    code = dict.fromkeys(row["commit"][:10] for row in in_order if row["commit"])
    what = [*_scenarios(seeds), *(["code " + ", ".join(code)] if code else [])]
    label = f"Swept from {_time(since)} to {_time(until)} UTC: {'; '.join(what)}."
    return f"<p>{html.escape(label)}</p>"


def _scenarios(seeds: Sequence[Facts]) -> Iterator[str]:
    names = sorted({row["scenario"] for row in seeds})
    for name in names[:_NAMED_MOST]:
        rows = [row for row in seeds if row["scenario"] == name]
        first, last = min(row["first"] for row in rows), max(row["last"] for row in rows)
        yield f"{name} {first}" if first == last else f"{name} {first} to {last}"
    if len(names) > _NAMED_MOST:
        yield counted(len(names) - _NAMED_MOST, "other scenario")


def trends(facts: ReportFacts) -> str:
    """Failures, duplicates and cost of each scenario that was swept more than once."""
    by_scenario: dict[str, list[Facts]] = {}
    for row in sorted(facts.seeds, key=lambda row: (row["scenario"], row["since"])):
        by_scenario.setdefault(row["scenario"], []).append(row)
    again = {name: rows[-_LATEST:] for name, rows in by_scenario.items() if len(rows) > 1}
    if not again:
        return ""
    drawn = sorted(again, key=lambda name: -sum(row["jobs"] or 0 for row in again[name]))
    figures = [_figure(name, again[name]) for name in sorted(drawn[:PLOTS_MOST])]
    if len(again) > 1:
        figures.insert(
            0, _figure(_ALL, _together([row for rows in again.values() for row in rows]))
        )
    return section(
        "From sweep to sweep",
        "Scenarios that were swept more than once, each sweep at the time of its start."
        f"{left_out(list(again))}",
        plots(figures) + f"<details><summary>The figures</summary>{_table(again)}</details>",
    )


def _together(rows: Sequence[Facts]) -> list[Facts]:
    """A row for each sweep, of all its scenarios."""
    by_sweep: dict[str, list[Facts]] = {}
    for row in rows:
        by_sweep.setdefault(row["sweep"], []).append(row)
    whole = [_sum(each) for each in by_sweep.values()]
    return sorted(whole, key=lambda row: int(row["since"]))[-_LATEST:]


def _sum(rows: Sequence[Facts]) -> Facts:
    seeds, jobs, failed = (
        sum(row[name] or 0 for row in rows) for name in ("seeds", "jobs", "failed")
    )
    return {
        "since": min(row["since"] for row in rows),
        "seeds": seeds,
        "failed": failed,
        "per_million": 1e6 * sum(row["duplicates"] or 0 for row in rows) / jobs if jobs else 0,
        "cost": 1e3 * sum(row["seconds"] or 0 for row in rows) / seeds,
    }


def _figure(name: str, rows: Sequence[Facts]) -> str:
    seeds, failed = sum(row["seeds"] for row in rows), sum(row["failed"] for row in rows)
    kind = "bad" if failed else "good"
    parts = counted(len(rows), "sweep"), counted(seeds, "seed")
    more = f'{" · ".join(parts)} · <span class="{kind}">{failed:,} failed</span>'
    label = f"{name} from sweep to sweep: seeds that failed, duplicates, and cost; see the table"
    return figure(name, more, charts.draw(_chart(rows), label))


def _chart(rows: Sequence[Facts]) -> charts.Spec:
    days = [_time(row["since"])[5:10] for row in rows]
    is_nightly = len(set(days)) == len(days)
    names = days if is_nightly else [_time(row["since"])[5:] for row in rows]
    shown = [
        {
            "sweep": number,
            "failed": 100 * row["failed"] / row["seeds"],
            **{name: row[name] or 0 for name in ("per_million", "cost")},
        }
        for number, row in enumerate(rows)
    ]
    label = f"{list(names)}[datum.value]"
    return {
        "data": charts.data(shown),
        "spacing": 10,
        "vconcat": [
            _panel(*panel, _top([row[panel[0]] for row in shown]), label if is_last else None)
            for panel, is_last in zip(_PANELS, (False, False, True), strict=True)
        ],
    }


def _panel(
    name: str, title: str, colour: str, kind: str, top: float, label: str | None
) -> charts.Spec:
    paint = f"var(--{colour})"
    mark: charts.Spec = {"type": "bar", "fill": paint, "width": 14}
    if kind == "line":
        mark = {"type": "line", "stroke": paint, "point": {"fill": paint, "stroke": None}}
    below = {"labelExpr": label, "labelAngle": 0, "labelOverlap": True} if label else None
    up = {"values": [0, top], "labelExpr": _AMOUNT, "minExtent": 34, "maxExtent": 34}
    return {
        "width": charts.WIDE - 52,
        "height": 46,
        "title": title,
        "mark": mark,
        "encoding": {
            "x": charts.field("sweep", "ordinal", axis=below),
            "y": charts.field(name, axis=up, scale={"domain": [0, top]}),
        },
    }


def _top(values: Sequence[float]) -> float:
    """The end of an axis from 0 on: a round number."""
    most = max(values) or 1
    power = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in (1, 1.5, 2, 3, 5, 7, 10) if step * power >= most * 0.999)


def _table(again: dict[str, list[Facts]]) -> str:
    return table(
        "all sweeps",
        (
            "scenario", "swept", "code", "number:seeds", "number:failed",
            "number:duplicates per million", "number:ms for each seed",
        ),
        (_row(row) for rows in again.values() for row in rows),
    )  # fmt: skip


def _row(row: Facts) -> list[str]:
    return [
        html.escape(row["scenario"]),
        _time(row["since"]),
        f"<code>{html.escape((row['commit'] or '')[:10])}</code>",
        f"{row['seeds']:,}",
        f'<span class="bad">{row["failed"]:,}</span>' if row["failed"] else "0",
        *(f"{row[name] or 0:,.0f}" for name in ("per_million", "cost")),
    ]


def _time(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).strftime("%Y-%m-%d %H:%M")
