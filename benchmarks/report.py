"""The report of a comparison: medians, ratios, targets; as a table and as JSON."""

import itertools
import statistics
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs
from rich.table import Table

from benchmarks import meters
from benchmarks.case import Case, Demand, Figure, Sample, Target
from benchmarks.compare import Rows
from benchmarks.contenders import OURS, PURE, Contender
from benchmarks.programs import DisqueServer

SCHEMA: Final = 1


@attrs.frozen
class Report:
    """The samples of a comparison, and its circumstances."""

    rows: Rows
    machine: dict[str, Any]
    versions: dict[str, str]
    """By contender; the first is ours."""
    original: str
    """The original's name, or empty."""
    commit: str
    date: str
    size: float

    @property
    def compared(self) -> str:
        """All contenders with their versions."""
        return ", ".join(f"{name} {version}" for name, version in self.versions.items())

    def median(self, case: str, figure: str, contender: str) -> float | None:
        """The median of all rounds; None if there is no sample."""
        found = values(self.rows.get(case, {}).get(contender, ()), figure)
        return statistics.median(found) if found else None

    def ratio(self, case: str, figure: Figure, contender: str) -> float | None:
        """How many times better ours is."""
        ours = self.median(case, figure.name, OURS)
        theirs = self.median(case, figure.name, contender)
        return None if ours is None or theirs is None else figure.ratio(ours, theirs)


def values(samples: Iterable[Sample], figure: str) -> list[float]:
    """The values of one figure."""
    return [sample[figure] for sample in samples if figure in sample]


def make(
    rows: Rows, contenders: Sequence[Contender], size: float, earlier: Report | None = None
) -> Report:
    """A report with the present date and machine, and the other cases of an earlier one."""
    versions = {each.name: each.version for each in contenders}
    disques = [each.name for each in contenders if each.kind is DisqueServer]
    original = [name for name in disques if name not in (OURS, PURE)]
    return Report(
        rows={**earlier.rows, **rows} if earlier else rows,
        machine=meters.machine(),
        versions={**(earlier.versions if earlier else {}), **versions},
        original="".join(original) or (earlier.original if earlier else ""),
        commit=meters.commit(),
        date=time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        size=size,
    )


# For people.


def tables(report: Report, cases: Sequence[Case], what: str = "server") -> list[Table]:
    """All figures. `what` says what the contenders are."""
    measured = [case for case in cases if case.name in report.rows]
    groups = itertools.groupby(measured, key=lambda case: (case.is_by_server, case.figures))
    by_server = [
        by_server_table(report, list(group), what) for (is_so, _), group in groups if is_so
    ]
    return [table(report, [case for case in measured if not case.is_by_server]), *by_server]


def names(report: Report, cases: Sequence[Case]) -> list[str]:
    """The contenders of these cases."""
    rows = [report.rows.get(case.name, {}) for case in cases]
    return [name for name in report.versions if any(name in row for row in rows)]


def by_server_table(report: Report, cases: Sequence[Case], what: str) -> Table:
    """A row for each contender in each case."""
    drawn = Table("case", what, title="medians, ± half their range")
    for figure in cases[0].figures:
        drawn.add_column(figure.unit, justify="right")
    for case in cases:
        for number, name in enumerate(names(report, [case])):
            cells = [_cell(report, case, figure, name) for figure in case.figures]
            drawn.add_row("" if number else case.title, name, *cells)
    return drawn


def table(report: Report, cases: Sequence[Case]) -> Table:
    """A row for each figure of each case."""
    title = "medians, ± half their range; a ratio above 1: disque_trio is so many times better"
    drawn = Table("case", "figure", title=title)
    drawn.add_column(OURS, justify="right")
    others = [name for name in names(report, cases) if name != OURS]
    for name in others:
        drawn.add_column(name, justify="right")
        drawn.add_column("ratio", justify="right")
    for case in cases:
        for figure in case.figures:
            first = figure is case.figures[0]
            cells = [_cell(report, case, figure, OURS)]
            for name in others:
                ratio = report.ratio(case.name, figure, name)
                cells += [_cell(report, case, figure, name), "" if ratio is None else _times(ratio)]
            drawn.add_row(case.title if first else "", figure.unit, *cells)
    return drawn


def _cell(report: Report, case: Case, figure: Figure, name: str) -> str:
    found = values(report.rows[case.name].get(name, ()), figure.name)
    if not found:
        return ""
    median = statistics.median(found)
    if len(found) == 1 or not median:
        return number(median)
    half_range = 50 * (max(found) - min(found)) / median
    return f"{number(median)} [dim]±{half_range:2.0f} %[/dim]"


def number(value: float) -> str:
    """Three digits, or all before the point."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _times(ratio: float) -> str:
    colour = "green" if ratio >= 1 else "yellow" if ratio >= 0.8 else "red"
    return f"[{colour}]{ratio:.2f}[/{colour}]"


# Targets.


@attrs.frozen
class Verdict:
    """Whether a target is met. `found` is None if it was not measured."""

    what: str
    wanted: str
    found: float | None
    is_met: bool


def verdicts(report: Report, cases: Sequence[Case], targets: Sequence[Target]) -> list[Verdict]:
    """The verdicts on all targets whose cases ran."""
    by_name = {case.name: case for case in cases}
    return [
        _verdict(report, by_name[target.case], target)
        for target in targets
        if target.case in report.rows
    ]


def _verdict(report: Report, case: Case, target: Target) -> Verdict:
    figure = next(each for each in case.figures if each.name == target.figure)
    what = f"{case.title}, {figure.unit}"
    ours = report.median(case.name, figure.name, OURS)
    other = target.against or report.original
    theirs = report.median(case.name, figure.name, other)
    bound = target.bound
    match target.demand:
        case Demand.RATIO:
            found = report.ratio(case.name, figure, other)
            wanted = f"≥ {bound:.2f} × {target.against or 'the original'}"
            is_met = found is not None and found >= bound
        case Demand.EXCESS:
            found = None if ours is None or theirs is None else ours - theirs
            wanted, is_met = f"≤ the original + {bound:g}", found is not None and found <= bound
        case Demand.GROWTH:
            before = report.median(target.since, figure.name, OURS)
            found = ours / before if ours and before else None
            wanted = f"≤ {bound:g} × {target.since}"
            is_met = found is not None and found <= bound
        case Demand.VALUE:
            found = ours
            wanted, is_met = f"≥ {bound:,.0f}", found is not None and found >= bound
        case Demand.LIMIT:
            found = ours
            wanted, is_met = f"< {bound:g}", found is not None and found < bound
    return Verdict(what, wanted, found, is_met)


def targets_table(found: Sequence[Verdict]) -> Table:
    """The verdicts as a table."""
    drawn = Table("must be shown", "wanted", title="targets")
    drawn.add_column("found", justify="right")
    drawn.add_column("")
    for verdict in found:
        if verdict.found is None:
            drawn.add_row(verdict.what, verdict.wanted, "", "[dim]not measured[/dim]")
            continue
        said = "[green]met[/green]" if verdict.is_met else "[red]not met[/red]"
        drawn.add_row(verdict.what, verdict.wanted, number_of(verdict.found), said)
    return drawn


def number_of(value: float) -> str:
    """A ratio or a value."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"


# For programs.


def as_json(report: Report, cases: Sequence[Case]) -> dict[str, Any]:
    """The whole report, with medians and ratios."""
    medians: dict[str, dict[str, dict[str, float]]] = {}
    for case in cases:
        for name, samples in report.rows.get(case.name, {}).items():
            medians.setdefault(case.name, {})[name] = {
                figure.name: statistics.median(found)
                for figure in case.figures
                if (found := values(samples, figure.name))
            }
    return {
        "schema": SCHEMA,
        "date": report.date,
        "commit": report.commit,
        "machine": report.machine,
        "versions": report.versions,
        "original": report.original,
        "size": report.size,
        "ratios": ratios(report, cases),
        "medians": medians,
        "samples": report.rows,
    }


def ratios(report: Report, cases: Sequence[Case]) -> dict[str, dict[str, float]]:
    """By contender, and by case and figure as `case/figure`."""
    found: dict[str, dict[str, float]] = {}
    for name in report.versions:
        if name == OURS:
            continue
        for case in cases:
            for figure in case.figures:
                ratio = report.ratio(case.name, figure, name)
                if ratio is not None:
                    found.setdefault(name, {})[f"{case.name}/{figure.name}"] = round(ratio, 3)
    return found


def from_json(facts: dict[str, Any]) -> Report:
    """The report that `as_json` wrote."""
    if facts.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {facts.get('schema')}, and not {SCHEMA}")
    return Report(
        rows=facts["samples"],
        machine=facts["machine"],
        versions=facts["versions"],
        original=facts["original"],
        commit=facts["commit"],
        date=facts["date"],
        size=facts["size"],
    )
