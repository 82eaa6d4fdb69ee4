"""A comparison as a picture: an SVG without external parts."""

import html
import math
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from benchmarks import report as reports
from benchmarks.case import Case
from benchmarks.contenders import OURS
from benchmarks.report import Report, number

TITLE: Final = "disque_trio beside other servers"
LEFT: Final = 380
RIGHT: Final = 940
_ROW: Final = 22
_TOP: Final = 124
_VALUES: Final = 960
_WIDE: Final = 1180
_LOWEST: Final = 1 / 32
_HIGHEST: Final = 32.0
_TICKS: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16)
_COLOURS: Final = (
    "#0b6bcb", "#c4442b", "#7a8a00", "#8a3fc4", "#00897b", "#c77700", "#d0358c", "#6d5c4e",
)  # fmt: skip
"""Of the contenders, in their order."""

_STYLE: Final = """<style>
text { font: 12.5px system-ui, sans-serif; fill: #1c2733; }
.title { font-size: 18px; font-weight: 600; } .dim { fill: #51606f; }
.ground { fill: #fff; } .band { fill: #f4f6f8; }
.grid { stroke: #dde3e8; } .one { stroke: #51606f; } .stem { stroke: #b7c2cc; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e9ee; } .dim { fill: #9aa8b5; }
  .ground { fill: #14191f; } .band { fill: #1a2128; }
  .grid { stroke: #2b343d; } .one { stroke: #9aa8b5; } .stem { stroke: #46525d; }
}
</style>"""


@attrs.frozen
class Row:
    """A line of the picture."""

    case: str
    unit: str
    ours: float
    ratios: dict[str, float]
    """By contender."""


def picture(report: Report, cases: Sequence[Case], title: str = TITLE) -> str:
    """An SVG with the ratios of all cases."""
    cases = [case for case in cases if not case.is_by_server]
    names = [name for name in reports.names(report, cases) if name != OURS]
    rows = list(_rows(report, cases, names))
    return "\n".join(_svg(rows, names, title, _about(report))) + "\n"


def _about(report: Report) -> list[str]:
    machine = report.machine
    shape = f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}"
    direction = "How many times better disque_trio is than each other: more is to the right."
    return [
        f"{direction} The value at the right is its own.",
        f"{report.compared}; commit {report.commit}, {report.date}; {shape}.",
    ]


def _rows(report: Report, cases: Sequence[Case], names: Sequence[str]) -> Iterator[Row]:
    for case in cases:
        for figure in case.figures:
            ours = report.median(case.name, figure.name, OURS)
            if ours is None:
                continue
            found = {name: report.ratio(case.name, figure, name) for name in names}
            ratios = {name: ratio for name, ratio in found.items() if ratio is not None}
            title = case.title if figure is case.figures[0] else ""
            yield Row(title, figure.unit, ours, ratios)


def _svg(
    rows: Sequence[Row], names: Sequence[str], title: str, about: Sequence[str]
) -> Iterator[str]:
    bottom = _TOP + _ROW * len(rows)
    high = bottom + 30
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {high}" '
        f'width="{_WIDE}" height="{high}" role="img">'
    )
    yield _STYLE
    yield f'<rect class="ground" x="0" y="0" width="{_WIDE}" height="{high}"/>'
    yield f'<text class="title" x="4" y="24">{html.escape(title)}</text>'
    for index, line in enumerate(about):
        yield f'<text class="dim" x="4" y="{46 + 18 * index}">{html.escape(line)}</text>'
    step = min(190, (_WIDE - LEFT) // max(1, len(names)))
    for index, name in enumerate(names):
        x = LEFT + step * index
        yield f'<circle cx="{x}" cy="86" r="5" fill="{_COLOURS[index % len(_COLOURS)]}"/>'
        yield f'<text x="{x + 10}" y="90">{html.escape(name)}</text>'
    for top in range(_TOP, bottom, 2 * _ROW):
        yield f'<rect class="band" x="0" y="{top}" width="{_WIDE}" height="{_ROW}"/>'
    for tick in _TICKS:
        place = _across(tick)
        style = "one" if tick == 1 else "grid"
        ends = f'y1="{_TOP - 8}" y2="{bottom}"'
        yield f'<line class="{style}" x1="{place:.1f}" x2="{place:.1f}" {ends}/>'
        for y in (_TOP - 12, bottom + 16):
            where = f'x="{place:.1f}" y="{y}" text-anchor="middle"'
            yield f'<text class="dim" {where}>{_label(tick)}</text>'
    for index, row in enumerate(rows):
        yield from _line(row, names, _TOP + _ROW * index + _ROW / 2)
    yield "</svg>"


def _label(tick: float) -> str:
    return f"{tick:g}" if tick >= 1 else f"1/{1 / tick:g}"


def _line(row: Row, names: Sequence[str], y: float) -> Iterator[str]:
    yield f'<text x="4" y="{y + 4}">{html.escape(row.case)}</text>'
    yield f'<text class="dim" x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{row.unit}</text>'
    places = [_across(ratio) for ratio in row.ratios.values()]
    if places:
        ends = [*places, _across(1)]
        yield (f'<line class="stem" x1="{min(ends):.1f}" x2="{max(ends):.1f}" y1="{y}" y2="{y}"/>')
    for index, name in reversed(list(enumerate(names))):
        if name in row.ratios:
            ratio = row.ratios[name]
            yield (
                f'<circle cx="{_across(ratio):.1f}" cy="{y}" r="5" '
                f'fill="{_COLOURS[index % len(_COLOURS)]}">'
                f"<title>{html.escape(name)}: {ratio:.2f}</title></circle>"
            )
    yield f'<text x="{_VALUES}" y="{y + 4}">{number(row.ours)} {html.escape(row.unit)}</text>'


def _across(ratio: float) -> float:
    """The position on the axis; ratios beyond it are drawn at its end."""
    low, high = math.log(_LOWEST), math.log(_HIGHEST)
    place = (math.log(min(max(ratio, _LOWEST), _HIGHEST)) - low) / (high - low)
    return LEFT + place * (RIGHT - LEFT)
