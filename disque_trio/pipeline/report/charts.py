"""Charts by Vega-Lite as SVG, which needs no script to be seen.

Colours are CSS variables of the page, so that a chart is dark where the page is. Each chart has the
same width, and is scaled with the column that it stands in.
"""

import html
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import vl_convert

WIDE: Final = 380
_HIGH: Final = 180
Spec = dict[str, Any]
"""A part of a chart in the words of Vega-Lite (https://vega.github.io/vega-lite/docs/)."""
_VEGA_LITE: Final = "6.1"
_ROOT: Final = re.compile(r'^<svg .*?(viewBox="[^"]*")>')
_QUIET: Final = re.compile(r' (?:aria-hidden|pointer-events|role|aria-roledescription)="[^"]*"')
_AXIS: Final = {
    "labelColor": "var(--muted)",
    "labelFontSize": 11,
    "gridColor": "var(--line)",
    "domainColor": "var(--line)",
    "domain": False,
    "ticks": False,
    "labelPadding": 6,
    "title": None,
}
_CONFIG: Final = {
    "aria": False,  # the whole is one picture with one text
    "background": None,
    "font": "sans-serif",
    "padding": {"left": 2, "right": 6, "top": 6, "bottom": 2},
    "axis": _AXIS,
    "axisX": {"grid": False},
    "text": {"color": "var(--muted)", "fontSize": 11},
    "title": {
        "anchor": "start",
        "color": "var(--muted)",
        "fontSize": 11,
        "fontWeight": "normal",
        "offset": 4,
    },
    "view": {"stroke": None},
}


@attrs.frozen
class Line:
    """One curve. `colour` names a CSS variable of the page."""

    colour: str
    points: Sequence[tuple[float, float]]
    dash: tuple[int, ...] = ()


def draw(chart: Spec, label: str) -> str:
    """The SVG of a chart. `label` is its text alternative."""
    fit = {} if "vconcat" in chart else {"width": WIDE, "autosize": _FIT}
    whole = json.dumps({**fit, **chart, "config": _CONFIG})
    drawn = _QUIET.sub("", vl_convert.vegalite_to_svg(whole, vl_version=_VEGA_LITE))
    named = f'<svg role="img" aria-label="{html.escape(label)}"'
    return _ROOT.sub(lambda root: f"{named} {root[1]}>", drawn)


_FIT: Final = {"type": "fit", "contains": "padding"}


def layers(*each: Spec) -> Spec:
    """Several charts over each other."""
    return {"height": _HIGH, "layer": list(each)}


def curve(line: Line, across: Spec, up: Spec) -> Spec:
    """A line through points. `across` and `up` are its axes."""
    stroke = f"var(--{line.colour})"
    return {
        "data": data([{"x": x, "y": y} for x, y in line.points]),
        "mark": {"type": "line", "stroke": stroke, "strokeWidth": 2, "strokeDash": [*line.dash]},
        "encoding": {"x": field("x", **across), "y": field("y", **up)},
    }


def area(line: Line) -> Spec:
    """What is below such a line."""
    return {
        "data": data([{"x": x, "y": y} for x, y in line.points]),
        "mark": {"type": "area", "fill": f"var(--{line.colour})", "opacity": 0.14},
        "encoding": {"x": field("x"), "y": field("y")},
    }


def mark_at(x: float, name: str, *, is_late: bool) -> Spec:
    """A vertical line with its name, on the side where there is room."""
    side = {"align": "right", "dx": -4} if is_late else {"align": "left", "dx": 4}
    return {
        "data": data([{"x": x, "name": name}]),
        "encoding": {"x": field("x")},
        "layer": [
            {"mark": {"type": "rule", "stroke": "var(--good)", "strokeDash": [4, 3]}},
            {
                "mark": {"type": "text", "y": 4, "fill": "var(--good)", **side},
                "encoding": {"text": {"field": "name"}},
            },
        ],
    }


def field(name: str, kind: str = "quantitative", **more: Any) -> Spec:
    """What is read off an axis: a field of the data."""
    return {"field": name, "type": kind, "title": None, **more}


def names(field_name: str, **more: Any) -> Spec:
    """What is read off a vertical axis of names, which may be as long as those of scenarios."""
    axis = {"labelLimit": 150, "minExtent": 112}
    return field(field_name, "nominal", axis=axis, **more)


def data(rows: Sequence[Mapping[str, Any]]) -> Spec:
    """The rows that a chart shows."""
    return {"values": list(rows)}


def named_ticks(ticks: Sequence[tuple[float, str]]) -> Spec:
    """An axis with names at these places."""
    names = json.dumps({f"{place:g}": name for place, name in ticks})
    return {
        "values": [place for place, _ in ticks],
        "labelExpr": f"{names}[format(datum.value, '~r')]",
        "labelOverlap": False,
    }
