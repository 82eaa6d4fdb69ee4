"""Small SVG charts, as text."""

import html
import math
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

WIDE: Final = 360
HIGH: Final = 170
_LEFT: Final = 46
_RIGHT: Final = 12
_TOP: Final = 8
_BELOW: Final = 24


@attrs.frozen
class Line:
    """One curve. `colour` names a CSS variable of the page."""

    name: str
    colour: str
    points: Sequence[tuple[float, float]]


@attrs.frozen
class Axis:
    """Maps values to positions on an axis. A tick is a value and its label."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]

    def at(self, value: float) -> float:
        """The position of a value: 0 at `low`, 1 at `high`."""
        return (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0


def linear(low: float, high: float, unit: str = "", most: int = 5) -> Axis:
    """An axis with ticks at round numbers; the last tick is its end."""
    step = _round_step((high - low) / most or 1.0)
    last = math.ceil(high / step - 1e-9) * step
    count = round((last - low) / step)
    ticks = [(low + number * step, short(low + number * step)) for number in range(count + 1)]
    if unit and ticks:
        ticks[-1] = (ticks[-1][0], f"{ticks[-1][1]} {unit}")
    return Axis(low, last, ticks)


def decades(low: float, high: float, names: Sequence[tuple[float, str]]) -> Axis:
    """A logarithmic axis over whole decades; values are given as decimal logarithms."""
    first, last = math.floor(low), max(math.ceil(high - 1e-9), math.floor(low) + 1)
    ticks = [(at, name) for at, name in names if first <= at <= last]
    return Axis(first, last, ticks)


def _round_step(rough: float) -> float:
    power: float = 10 ** math.floor(math.log10(rough))
    return power * next(each for each in (1, 2, 2.5, 5, 10) if each * power >= rough * 0.999)


def short(value: float) -> str:
    """A number with a unit prefix: 1.2k, 3M."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{sign}"
    return f"{value:.3g}"


def plot(
    lines: Sequence[Line],
    across: Axis,
    up: Axis,
    *,
    says: str,
    mark: tuple[float, str] | None = None,
) -> str:
    """A line chart. `says` is its text alternative; `mark` is a labelled vertical line."""
    parts = [
        f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{html.escape(says)}">',
        *_grid(across, up),
    ]
    if mark is not None and across.low <= mark[0] <= across.high:
        x = _x(across, mark[0])
        side = ("end", -4) if across.at(mark[0]) > 0.6 else ("start", 4)
        parts.append(
            f'<line class="mark" x1="{x}" x2="{x}" y1="{_TOP}" y2="{HIGH - _BELOW}"/>'
            f'<text class="mark" x="{x + side[1]}" y="{_TOP + 10}" text-anchor="{side[0]}">'
            f"{html.escape(mark[1])}</text>"
        )
    parts += [_curve(line, across, up) for line in lines]
    return "".join([*parts, "</svg>"])


def _grid(across: Axis, up: Axis) -> Iterator[str]:
    for at, name in up.ticks:
        y = _y(up, at)
        yield f'<line class="grid" x1="{_LEFT}" x2="{WIDE - _RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{html.escape(name)}</text>'
    for at, name in across.ticks:
        x = _x(across, at)
        anchor = "end" if across.at(at) > 0.93 else "middle"
        yield f'<text x="{x}" y="{HIGH - 8}" text-anchor="{anchor}">{html.escape(name)}</text>'


def _curve(line: Line, across: Axis, up: Axis) -> str:
    points = " ".join(f"{_x(across, x)},{_y(up, y)}" for x, y in line.points)
    return (
        f'<polyline style="stroke:var(--{line.colour})" points="{points}">'
        f"<title>{html.escape(line.name)}</title></polyline>"
    )


def _x(axis: Axis, value: float) -> float:
    return round(_LEFT + axis.at(value) * (WIDE - _LEFT - _RIGHT), 1)


def _y(axis: Axis, value: float) -> float:
    return round(_TOP + (1 - axis.at(value)) * (HIGH - _TOP - _BELOW), 1)


# Bars and shaded cells, for tables.


def bar(share: float, colour: str = "accent", end: float = 0.0) -> str:
    """A bar of this share of the full width; a thin line continues to `end`."""
    return (
        f'<span class="bar"><i style="width:{_percent(share)};background:var(--{colour})"></i>'
        f'<u style="left:{_percent(share)};width:{_percent(max(end - share, 0))}"></u></span>'
    )


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.1f}%"


def shade(value: float, largest: float, colour: str) -> str:
    """The background of a cell: the strength grows with the logarithm of the value."""
    if value <= 0 or largest <= 0:
        return ""
    part = math.log1p(value) / math.log1p(largest)
    return f"background:color-mix(in srgb,var(--{colour}) {8 + 62 * part:.0f}%,transparent)"
