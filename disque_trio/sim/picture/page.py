"""The HTML page of a run: one file that loads nothing else.

`content` returns the data of the page; `render` joins it with the scripts and styles.
"""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from importlib import resources

from disque_trio.sim.checkers.duplicates import CAUSES
from disque_trio.sim.checkers.verdict import Verdict
from disque_trio.sim.picture import findings, links, plan_words, scripts, strips
from disque_trio.sim.picture.curves import Curves, Point, thinned
from disque_trio.sim.picture.findings import Repeats
from disque_trio.sim.picture.html_page import filled, html_page, text
from disque_trio.sim.picture.table import Table, from_zero
from disque_trio.sim.scenarios.plan import Micros, Plan
from disque_trio.tracing.rows import Row

FILES = resources.files("disque_trio.sim.picture")
STYLES = ("page.css", "timeline/timeline.css")
DATA = "<!-- put:data -->"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FAULTS_MOST = 500
ROWS_MOST = 250_000
"""Longer runs are shown without messages that concern no job."""


def render(plan: Plan, rows: Sequence[Row], verdict: Verdict | None, *, replay: str = "") -> str:
    """Return the run as one HTML file. `replay` is the command that repeats the run."""
    return page_of(plan, content(plan, rows, verdict, replay or plan_words.replay(plan)))


def page_of(plan: Plan, shown: dict[str, object]) -> str:
    """Return the file for `content`."""
    return _file(f"{plan.scenario} · seed {plan.seed}", embedded(shown))


def frame(title: str) -> str:
    """Return the file without its data: `DATA` marks the place of `content`, as `embedded` writes
    it."""
    return _file(title, DATA)


def _file(title: str, data: str) -> str:
    body = filled(text(FILES / "page.html"), {"data": data, "script": scripts.joined()})
    return html_page(title, "".join(text(FILES / name) for name in STYLES), body)


def embedded(value: object) -> str:
    """Return compact JSON that cannot end the script element around it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def content(
    plan: Plan, rows: Sequence[Row], verdict: Verdict | None, replay: str
) -> dict[str, object]:
    """Return everything that the page shows."""
    zero, shown = from_zero(_shown(rows))
    table = Table(
        plan.nodes,
        links.node_names(plan, shown),
        links.agent_names(plan, shown),
        Repeats(findings.delivery_kind(shown), findings.causes(verdict, zero)),
        Curves(findings.delivery_kind(shown)),
    )
    run = table.extend(shown, 0 if shown else plan.chaos)
    end = run["end"]
    run["operations"] += table.open_operations(end)
    run["words"] = table.words.since(0)
    return {
        "head": {
            **_head(plan, verdict, replay),
            "counts": _counts(rows, run["repeats"], verdict),
            "findings": findings.violations(verdict, zero),
            "left_out": len(rows) - len(shown),
            "zero": _calendar(zero),
        },
        "marks": {row.kind: row.time for row in shown if row.kind in {"chaos.end", "heal.end"}},
        "clocks": strips.clock_errors(shown, table.nodes),
        "curves": _curves(table.curves, end),
        "causes": CAUSES,
        "run": run,
    }


def _shown(rows: Sequence[Row]) -> Sequence[Row]:
    if len(rows) <= ROWS_MOST:
        return rows
    return [row for row in rows if row.job or row.kind not in {"send", "recv"}]


def _calendar(zero: Micros) -> str:
    return f"{EPOCH + timedelta(microseconds=zero):%Y-%m-%d %H:%M:%S} UTC" if zero else ""


def _curves(curves: Curves, end: int) -> dict[str, list[Point]]:
    return {
        "unseen": thinned(curves.unseen, end, worst=lambda point: point[1]),
        "unacked": thinned(curves.unacked, end, worst=lambda point: point[1]),
        "copies": thinned(curves.copies, end, worst=lambda point: -point[1]),
    }


def _head(plan: Plan, verdict: Verdict | None, replay: str) -> dict[str, object]:
    return {
        "scenario": plan.scenario,
        "seed": plan.seed,
        "ok": None if verdict is None else verdict.ok,
        "properties": findings.properties(verdict),
        "doubts": findings.doubts(verdict),
        "replay": replay,
        "plan": plan_words.in_words(plan),
        "faults": [plan_words.fault_in_words(fault) for fault in plan.faults[:FAULTS_MOST]],
    }


def _counts(
    rows: Sequence[Row], repeats: Sequence[tuple[int, int, int, str]], verdict: Verdict | None
) -> list[tuple[str, int, str]]:
    """Return figures of the run: name, number, and a remark."""
    kinds = Counter(row.kind for row in rows)
    delivery = findings.delivery_kind(rows)
    delivered = dict.fromkeys(row.job for row in rows if row.kind == delivery)
    causes = Counter(cause for *_, cause in repeats if cause)
    by_cause = ", ".join(f"{cause} × {count}" for cause in CAUSES if (count := causes[cause]))
    return [
        ("jobs added", kinds["add.ok"], ""),
        ("refused", kinds["add.refused"], ""),
        ("unknown", kinds["add.unknown"], ""),
        ("delivered", len(delivered), ""),
        ("duplicates", len(repeats), by_cause),
        ("lost", verdict.lost if verdict else 0, ""),
        ("excused", verdict.excused if verdict else 0, "copies were destroyed by faults"),
        ("messages", kinds["send"], f"{kinds['lost']} lost" if kinds["lost"] else ""),
        ("events", len(rows), ""),
    ]
