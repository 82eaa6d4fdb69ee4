"""What was swept and when, and how scenarios have changed from sweep to sweep."""

import html
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from disque_trio.pipeline.report import charts
from disque_trio.pipeline.report.facts import Facts

_NAMED_MOST: Final = 8
"""Scenarios that the head names."""
_LATEST: Final = 14
"""Sweeps of one scenario that are shown."""


def swept(seeds: Sequence[Facts]) -> str:
    """When, what, and which code: a sentence."""
    if not seeds:
        return ""
    since, until = min(row["since"] for row in seeds), max(row["until"] for row in seeds)
    in_order = sorted(seeds, key=lambda row: row["since"])
    code = dict.fromkeys(row["commit"][:10] for row in in_order if row["commit"])
    what = [*_scenarios(seeds), *(["code " + ", ".join(code)] if code else [])]
    says = f"Swept from {_time(since)} to {_time(until)} UTC: {'; '.join(what)}."
    return f"<p>{html.escape(says)}</p>"


def _scenarios(seeds: Sequence[Facts]) -> Iterator[str]:
    names = sorted({row["scenario"] for row in seeds})
    for name in names[:_NAMED_MOST]:
        rows = [row for row in seeds if row["scenario"] == name]
        first, last = min(row["first"] for row in rows), max(row["last"] for row in rows)
        yield f"{name} {first}" if first == last else f"{name} {first} to {last}"
    if len(names) > _NAMED_MOST:
        yield f"{len(names) - _NAMED_MOST} other scenarios"


def trends(seeds: Sequence[Facts]) -> str:
    """A table of the sweeps of each scenario that was swept more than once."""
    by_scenario: dict[str, list[Facts]] = {}
    for row in sorted(seeds, key=lambda row: (row["scenario"], row["since"])):
        by_scenario.setdefault(row["scenario"], []).append(row)
    again = {name: rows[-_LATEST:] for name, rows in by_scenario.items() if len(rows) > 1}
    body = "".join(_row(row, rows) for rows in again.values() for row in rows)
    return body and (
        '<div class="wide"><table><thead><tr><th>scenario</th><th>swept</th><th>code</th>'
        '<th class="number">seeds</th><th class="number">failed</th>'
        '<th class="number">duplicates per million</th><th></th>'
        '<th class="number">ms for each seed</th><th></th></tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(row: Facts, rows: Sequence[Facts]) -> str:
    name = html.escape(row["scenario"]) if row is rows[0] else ""
    failed = f'<span class="bad">{row["failed"]:,}</span>' if row["failed"] else "0"
    bars = [
        f'<td class="number">{row[each] or 0:,.0f}</td><td>{_bar(row, rows, each)}</td>'
        for each in ("per_million", "cost")
    ]
    return (
        f"<tr><th>{name}</th><td>{_time(row['since'])}</td>"
        f"<td><code>{html.escape((row['commit'] or '')[:10])}</code></td>"
        f'<td class="number">{row["seeds"]:,}</td><td class="number">{failed}</td>'
        + "".join(bars)
        + "</tr>"
    )


def _bar(row: Facts, rows: Sequence[Facts], name: str) -> str:
    most = max(each[name] or 0 for each in rows)
    return charts.bar((row[name] or 0) / most) if most else ""


def _time(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).strftime("%Y-%m-%d %H:%M")
