"""The verdict of a run, with the rows that show it."""

from collections.abc import Sequence

import attrs

from disque_trio.sim.checkers.case import Violation
from disque_trio.sim.checkers.properties import PROPERTIES
from disque_trio.sim.checkers.verdict import Verdict
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row


@attrs.frozen
class Repeat:
    """A second or later delivery of a job. Rows are given by index."""

    job: str
    row: int
    first: int
    """The delivery before it."""
    cause: str
    """Its code, D0 to D13 or DX; empty without a verdict."""


def delivery_kind(rows: Sequence[Row]) -> str:
    """The kind of row that shows a delivery: traces of live nodes have only `serve`."""
    return "get.deliver" if any(row.kind == "get.deliver" for row in rows) else "serve"


def repeats(rows: Sequence[Row], verdict: Verdict | None) -> list[Repeat]:
    """Every delivery after a job's first."""
    kind = delivery_kind(rows)
    records = verdict.records if verdict else ()
    causes = {(each.job, each.time, each.node, each.client): each.cause for each in records}
    last: dict[str, int] = {}
    found: list[Repeat] = []
    for index, row in enumerate(rows):
        if row.kind != kind:
            continue
        if row.job in last:
            cause = causes.get((row.job, row.time, row.node, row.client), "")
            found.append(Repeat(row.job, index, last[row.job], cause))
        last[row.job] = index
    return found


def violations(verdict: Verdict | None, zero: Micros) -> list[tuple[str, str, int, str]]:
    """Violations: property, job, time since `zero`, and description."""
    found = verdict.violations if verdict else ()
    return [(each.property, each.job, each.time - zero, _told(each)) for each in found]


def _told(violation: Violation) -> str:
    node, detail = violation.node, violation.detail
    return detail if not node or detail.startswith(node) else f"{node}: {detail}"


def properties(verdict: Verdict | None) -> dict[str, str]:
    """The violated properties, with their meanings."""
    names = dict.fromkeys(each.property for each in (verdict.violations if verdict else ()))
    return {name: PROPERTIES[name] for name in names if name in PROPERTIES}


def doubts(verdict: Verdict | None) -> list[str]:
    """Properties that were not judged, and those judged by weaker rules."""
    if verdict is None:
        return []
    return [*(f"{name}: {why}" for name, why in verdict.not_judged.items()), *verdict.notes]
