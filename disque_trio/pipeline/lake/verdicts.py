"""The judge's verdicts as rows of a table: of a run that a sweep has judged, or of rows of a lake.

Executors use this, so it needs neither Spark nor Delta.
"""

import hashlib
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from disque_trio.pipeline.lake import shape
from disque_trio.sim.checkers.case import Violation
from disque_trio.sim.checkers.recorded import Judged, judged
from disque_trio.sim.checkers.verdict import Verdict
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.traces import merge_live
from disque_trio.tracing.rows import Row

_NAME: Final = re.compile(r"\bn[0-9]+\b")
_JUDGES: Final = ("sim/bounds.py", "sim/checkers/*.py", "testing/apps/checkers/*.py")


@cache
def judge_digest() -> str:
    """A digest of the judge's source: the verdicts of another judge do not count."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[2]
    for path in (path for pattern in _JUDGES for path in sorted(package.glob(pattern))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[: shape.RUN_DIGITS]


def table(facts: Sequence[dict[str, Any]]) -> pa.Table:
    """The rows of the table."""
    return pa.Table.from_pylist(list(facts), schema=shape.VERDICTS)


def facts(
    run: str, seed: int, events: int, violations: Sequence[Violation], verdict: Verdict | None
) -> dict[str, Any]:
    """The row of one run with so many trace rows. A verdict is None if the judge has failed."""
    return {
        "run": run,
        "seed": seed,
        "judge": judge_digest(),
        "at": time.time_ns() // 1_000,
        "events": events,
        "ok": not violations,
        "lost": verdict and verdict.lost,
        "delivered": verdict and verdict.deliveries,
        "violations": [attrs.asdict(each) for each in violations],
        "repeats": list(_repeats(verdict)) if verdict else [],
        "not_judged": list(verdict.not_judged.items()) if verdict else [],
        "notes": list(verdict.notes) if verdict else [],
    }


def _repeats(verdict: Verdict) -> Iterator[dict[str, Any]]:
    """Every delivery after the first is a duplicate, so its place tells its number."""
    before = Counter[str]()
    for each in verdict.records:
        before[each.job] += 1
        yield {
            "job": each.job,
            "number": before[each.job] + 1,
            "cause": each.cause,
            "leased": each.leased,
            "after_ack": each.is_after_ack,
        }


def judge_table(rows: pa.Table, run: dict[str, Any]) -> pa.Table:
    """The verdict on the rows of one run of a lake, in any order, as `sim replay` gives it on its
    traces. `run` has the columns of `runs`, and `plan`."""
    found = _judge_live(rows) if run["is_live"] else _judge_simulated(rows, run["plan"])
    return table([facts(run["run"], run["seed"], run["events"], found.violations, found.verdict)])


def _judge_simulated(rows: pa.Table, plan: str) -> Judged:
    # A run that is in the lake twice, as of two sweeps at once, has each number twice.
    in_order = dict(sorted(zip(rows["seq"].to_pylist(), _rows(rows), strict=True), key=_number))
    return judged(plan_file.parse(plan, "the plan of a trace"), in_order.values(), is_live=False)


def _number(each: tuple[int, Row]) -> int:
    return each[0]


def _judge_live(rows: pa.Table) -> Judged:
    in_order = rows.sort_by([("node", "ascending"), ("time", "ascending"), ("seq", "ascending")])
    of_node: dict[str, list[Row]] = {}
    for row in _rows(in_order):
        of_node.setdefault(row.node, []).append(row)
    history = merge_live.history(list(of_node.values()))
    found = judged(merge_live.plan_of(history.rows), history.rows, is_live=True)
    shorts = {name: short for short, name in history.names.items()}
    violations = tuple(
        attrs.evolve(
            each,
            node=shorts.get(each.node, each.node),
            time=each.time + history.epoch,
            detail=_NAME.sub(lambda name: shorts.get(name[0], name[0]), each.detail),
        )
        for each in found.violations
    )
    verdict = found.verdict and attrs.evolve(
        found.verdict,
        records=tuple(
            attrs.evolve(each, leased=each.leased + history.epoch) for each in found.verdict.records
        ),
    )
    return Judged(violations, verdict)


def _rows(rows: pa.Table) -> Iterator[Row]:
    columns = [rows.column(name).to_pylist() for name in shape.OF_ROW[:-1]]
    return map(Row, *columns, map(tuple, rows.column("clock").to_pylist()))
