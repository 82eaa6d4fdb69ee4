"""The HTML page of a run: one file that loads nothing else.

`content` gives the data of the page; `render` joins it with the scripts and styles.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from importlib import resources

import attrs

from disque_trio.sim.checkers.duplicates import CAUSES
from disque_trio.sim.checkers.obligations import read_options
from disque_trio.sim.checkers.verdict import Verdict
from disque_trio.sim.picture import findings, links, plan_words, strips
from disque_trio.sim.picture.curves import Curves, Point, thinned
from disque_trio.sim.picture.findings import Repeat
from disque_trio.sim.picture.links import Links
from disque_trio.sim.picture.sheet import filled, sheet, text
from disque_trio.sim.picture.table import Table
from disque_trio.sim.scenarios.plan import Micros, Plan
from disque_trio.tracing.rows import Row

FILES = resources.files("disque_trio.sim.picture")
STYLES = ("page.css", "job.css")
SCRIPTS = (
    "run.js",
    "axis.js",
    "overview.js",
    "marks.js",
    "scene.js",
    "arrows.js",
    "diagram.js",
    "replay.js",
    "main.js",
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
A_YEAR = 31_536_000_000_000
FAULTS_MOST = 500
ROWS_MOST = 250_000
"""In longer runs messages that concern no job are left out."""


def render(plan: Plan, rows: Sequence[Row], verdict: Verdict | None, *, replay: str = "") -> str:
    """The run as one HTML file. `replay` is the command that runs it again."""
    parts = {
        "data": embedded(content(plan, rows, verdict, replay or plan_words.replay(plan))),
        "script": _files(SCRIPTS),
    }
    body = filled(text(FILES / "page.html"), parts)
    return sheet(f"{plan.scenario} · seed {plan.seed}", _files(STYLES), body)


def _files(names: Iterable[str]) -> str:
    return "".join(text(FILES / name) for name in names)


def embedded(value: object) -> str:
    """Compact JSON that cannot end the script element around it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def content(
    plan: Plan, rows: Sequence[Row], verdict: Verdict | None, replay: str
) -> dict[str, object]:
    """All that the page shows."""
    shown = _shown(rows)
    repeats = findings.repeats(shown, verdict)
    zero = _zero(shown)
    if zero:
        shown = [attrs.evolve(row, time=row.time - zero) for row in shown]
    nodes, agents = links.node_names(plan, shown), links.agent_names(plan, shown)
    table = Table({name: number for number, name in enumerate((*nodes, *agents))})
    curves, linked = Curves(findings.delivery_kind(shown)), links.link(shown)
    table.fill(shown, linked, curves)
    end = shown[-1].time if shown else plan.chaos
    return {
        "head": {
            **_head(plan, verdict, replay),
            "counts": _counts(rows, repeats, verdict),
            "findings": findings.violations(verdict, zero),
            "left_out": len(rows) - len(shown),
            "zero": _calendar(zero),
        },
        "end": end,
        "marks": {row.kind: row.time for row in shown if row.kind in {"chaos.end", "heal.end"}},
        "nodes": nodes,
        "agents": agents,
        "words": table.words.all(),
        "rows": table.columns,
        "jobs": _jobs(plan, shown, linked, table),
        "shared": table.shared,
        "moves": table.moves,
        "operations": table.operations,
        "bars": [attrs.astuple(bar) for bar in strips.bars(shown, nodes, end)],
        "clocks": strips.clock_errors(shown, nodes),
        "curves": _curves(curves, end),
        "causes": CAUSES,
        "repeats": [
            (table.jobs.number(repeat.job), repeat.row, repeat.first, repeat.cause)
            for repeat in repeats
        ],
    }


def _shown(rows: Sequence[Row]) -> Sequence[Row]:
    if len(rows) <= ROWS_MOST:
        return rows
    return [row for row in rows if row.job or row.kind not in {"send", "recv"}]


def _zero(rows: Sequence[Row]) -> Micros:
    """Time 0 of the page. Rows of live nodes have calendar time: there it is that of the first."""
    return rows[0].time if rows and rows[0].time > A_YEAR else 0


def _calendar(zero: Micros) -> str:
    return f"{EPOCH + timedelta(microseconds=zero):%Y-%m-%d %H:%M:%S} UTC" if zero else ""


def _jobs(
    plan: Plan, rows: Sequence[Row], linked: Links, table: Table
) -> list[tuple[str, str, int]]:
    """By number: id, queue, and how many copies ADDJOB asked for."""
    wanted = {
        job: read_options(row.detail, plan.nodes).replicate
        for row, job in zip(rows, linked.jobs, strict=True)
        if job and row.kind == "add.invoke"
    }
    return [(job, table.queues.get(job, ""), wanted.get(job, 0)) for job in table.jobs.all()]


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
    rows: Sequence[Row], repeats: Sequence[Repeat], verdict: Verdict | None
) -> list[tuple[str, int, str]]:
    """Figures of the run: name, number, and a remark."""
    kinds = Counter(row.kind for row in rows)
    delivery = findings.delivery_kind(rows)
    delivered = dict.fromkeys(row.job for row in rows if row.kind == delivery)
    causes = Counter(repeat.cause for repeat in repeats if repeat.cause)
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
