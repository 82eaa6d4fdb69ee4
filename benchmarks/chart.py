"""Charts: bars for the terminal, and a page with lines that needs nothing from anywhere."""

import html
import math
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

BAR: Final = 40
"""Columns of the longest bar."""
WIDE: Final = 420
HIGH: Final = 260
LEFT: Final = 64
BELOW: Final = 40
MARGIN: Final = 16

_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  color: #1c2733; background: #fff; }}
h1 {{ font-size: 1.3rem; }}
figure {{ display: inline-block; margin: 0 1.5rem 1.5rem 0; }}
figcaption {{ font-weight: 600; }}
svg text {{ font: 12px system-ui, sans-serif; fill: #51606f; }}
.value {{ fill: #1c2733; font-weight: 600; }}
.grid {{ stroke: #dde3e8; }}
.line {{ stroke: #0b6bcb; stroke-width: 2; fill: none; }}
circle {{ fill: #0b6bcb; }}
@media (prefers-color-scheme: dark) {{
  body {{ color: #e4e9ee; background: #14191f; }}
  svg text {{ fill: #9aa8b5; }} .value {{ fill: #e4e9ee; }}
  .grid {{ stroke: #2b343d; }} .line {{ stroke: #6bb3ff; }} circle {{ fill: #6bb3ff; }}
}}
</style>
<h1>{title}</h1>
<p>Both axes are logarithmic: what grows with the number of nodes is a line, and a steeper one
grows faster.</p>
{figures}
</html>
"""


@attrs.frozen
class Panel:
    """One measure, with a value for each place on the axis."""

    title: str
    values: Sequence[float]


def bars(title: str, points: Sequence[tuple[str, float]], unit: str) -> Iterator[str]:
    """A bar for each point, the longest for the largest."""
    yield title
    largest = max((value for _, value in points), default=0) or 1
    width = max((len(name) for name, _ in points), default=0)
    for name, value in points:
        yield f"  {name:>{width}}  {'█' * max(1, round(value / largest * BAR))} {value:,.0f} {unit}"


def page(title: str, axis: str, places: Sequence[float], panels: Sequence[Panel]) -> str:
    """An HTML page with one figure for each panel."""
    figures = "\n".join(
        f"<figure><figcaption>{html.escape(panel.title)}</figcaption>\n"
        f"{_svg(axis, places, panel.values)}</figure>"
        for panel in panels
    )
    return _PAGE.format(title=html.escape(title), figures=figures)


def _svg(axis: str, places: Sequence[float], values: Sequence[float]) -> str:
    across = _scale(places, LEFT, WIDE - MARGIN - 24)
    up = _scale([max(value, 1e-9) for value in values], HIGH - BELOW, MARGIN + 14)
    bottom = HIGH - BELOW
    dots = list(zip(across, up, strict=True))
    parts = [f'<svg viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" height="{HIGH}" role="img">']
    for x, place in zip(across, places, strict=True):
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{MARGIN}" y2="{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{place:,g}</text>')
    parts.append(
        f'<text x="{(LEFT + WIDE) / 2:.0f}" y="{HIGH - 6}" text-anchor="middle">'
        f"{html.escape(axis)}</text>"
    )
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
    parts.append(f'<polyline class="line" points="{path}"/>')
    for (x, y), value in zip(dots, values, strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>')
        parts.append(
            f'<text class="value" x="{x:.1f}" y="{y - 9:.1f}" text-anchor="middle">'
            f"{_short(value)}</text>"
        )
    parts.append("</svg>")
    return "\n".join(parts)


def _scale(values: Sequence[float], start: float, end: float) -> list[float]:
    """Logarithms, spread from `start` to `end`."""
    if not values:
        return []
    logs = [math.log10(value) for value in values]
    low, high = min(logs), max(logs)
    span = high - low or 1
    return [start + (log - low) / span * (end - start) for log in logs]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
