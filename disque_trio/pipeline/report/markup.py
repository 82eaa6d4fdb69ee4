"""The pieces of HTML of which the report consists."""

import html
import math
from collections.abc import Iterable, Sequence
from typing import Final

from disque_trio.terminal.counting import counted

PLOTS_MOST: Final = 12
"""Of one kind; scenarios with the most jobs come first."""


def section(title: str, about: str, content: str) -> str:
    """A part of the page with a heading. `about` and `content` are HTML."""
    return f"<section><h2>{title}</h2><p>{about}</p>{content}</section>"


def plots(figures: Iterable[str]) -> str:
    """Figures side by side, as many as there is room for."""
    return f'<div class="plots">{"".join(figures)}</div>'


def figure(title: str, more: str, drawing: str) -> str:
    """A chart under its title; `more`, which is HTML, stands beside the title."""
    caption = f"<figcaption>{html.escape(title)}<span>{more}</span></figcaption>"
    return f"<figure>{caption}{drawing}</figure>"


def legend(names: Iterable[tuple[str, str]]) -> str:
    """What colours mean: names of CSS variables with texts."""
    items = "".join(
        f'<span><i style="background:var(--{colour})"></i>{html.escape(text)}</span>'
        for colour, text in names
    )
    return f'<div class="legend">{items}</div>'


def table(about: str, columns: Sequence[str], rows: Iterable[Sequence[str]], css: str = "") -> str:
    """A table. A column's name may have a class before a colon: `number:seeds`; the first cell of a
    row is its heading. Cells are HTML; one that begins with `<td` is taken as it is."""
    kinds = [column.rpartition(":")[::2] for column in columns]
    head = "".join(f'<th scope="col"{_class(css)}>{name}</th>' for css, name in kinds)
    body = "".join(
        "<tr>"
        + "".join(
            _cell(cell, kind, is_first=not number)
            for number, (cell, (kind, _)) in enumerate(zip(row, kinds, strict=True))
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{html.escape(about)}">'
        f"<table{_class(css)}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(cell: str, kind: str, *, is_first: bool) -> str:
    if cell.startswith("<td"):
        return cell
    name = 'th scope="row"' if is_first else "td"
    return f"<{name}{_class(kind)}>{cell}</{name[:2]}>"


def _class(css: str) -> str:
    return f' class="{css}"' if css else ""


def shade(value: float, largest: float, colour: str) -> str:
    """The background of a cell: the strength grows with the logarithm of the value."""
    if value <= 0 or largest <= 0:
        return ""
    part = math.log1p(value) / math.log1p(largest)
    return f"background:color-mix(in srgb,var(--{colour}) {8 + 32 * part:.0f}%,transparent)"


def short(value: float) -> str:
    """A number with a unit prefix: 1.2k, 3M."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{sign}"
    return f"{value:.3g}"


def time(millis: float) -> str:
    """A time in the unit that suits it."""
    for size, unit in ((3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms")):
        if millis >= size:
            return f"{millis / size:,.3g} {unit}"
    return f"{1000 * millis:,.3g} µs"


def left_out(whole: Sequence[object]) -> str:
    """A sentence about scenarios that are not drawn."""
    more = len(whole) - PLOTS_MOST
    if more <= 0:
        return ""
    verb = "is" if more == 1 else "are"
    return f" {counted(more, 'scenario')} with fewer jobs {verb} left out."
