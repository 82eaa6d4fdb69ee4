"""The verdict of a run, with the rows that show it."""

from collections.abc import Mapping, Sequence

import attrs

from disque_trio.sim.checkers.case import Violation
from disque_trio.sim.checkers.properties import APP_PROPERTIES, PROPERTIES
from disque_trio.sim.checkers.verdict import Verdict
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

Delivery = tuple[str, int, str, str]
"""Job, time, node and client."""


@attrs.frozen
class Repeat:
    """A second or later delivery of a job. Rows are given by index."""

    job: str
    row: int
    first: int
    """The row of the previous delivery."""
    cause: str
    """Its code, D0 to D13 or DX; empty without a verdict."""


def delivery_kind(rows: Sequence[Row]) -> str:
    """Return the kind of row that shows a delivery: traces of live nodes have only `serve`."""
    return "get.deliver" if any(row.kind == "get.deliver" for row in rows) else "serve"


@attrs.define
class Repeats:
    """Finds every delivery after a job's first."""

    delivery: str = "get.deliver"
    """The kind of row that shows a delivery."""
    causes: Mapping[Delivery, str] = attrs.Factory(dict)
    """The causes in the verdict, by delivery."""
    _last: dict[str, int] = attrs.Factory(dict)

    def see(self, index: int, row: Row) -> Repeat | None:
        """Return the repeat that this row is, or None."""
        if row.kind != self.delivery:
            return None
        first, self._last[row.job] = self._last.get(row.job), index
        if first is None:
            return None
        cause = self.causes.get((row.job, row.time, row.node, row.client), "")
        return Repeat(row.job, index, first, cause)


def repeats(rows: Sequence[Row], verdict: Verdict | None) -> list[Repeat]:
    """Return all repeats of a run."""
    table = Repeats(delivery_kind(rows), causes(verdict, 0))
    return [repeat for index, row in enumerate(rows) if (repeat := table.see(index, row))]


def causes(verdict: Verdict | None, zero: Micros) -> dict[Delivery, str]:
    """Return the causes of duplicates, with times since `zero`."""
    return {
        (each.job, each.time - zero, each.node, each.client): each.cause
        for each in (verdict.records if verdict else ())
    }


def violations(verdict: Verdict | None, zero: Micros) -> list[tuple[str, str, int, str]]:
    """Return the violations: property, job, time since `zero`, and description."""
    found = verdict.violations if verdict else ()
    return [(each.property, each.job, each.time - zero, _describe(each)) for each in found]


def _describe(violation: Violation) -> str:
    node, detail = violation.node, violation.detail
    return detail if not node or detail.startswith(node) else f"{node}: {detail}"


def properties(verdict: Verdict | None) -> dict[str, str]:
    """Return the violated properties, with their descriptions."""
    names = dict.fromkeys(each.property for each in (verdict.violations if verdict else ()))
    known = {**PROPERTIES, **APP_PROPERTIES}
    return {name: known[name] for name in names if name in known}


def doubts(verdict: Verdict | None) -> list[str]:
    """Return the properties that were not judged, and those judged by weaker rules."""
    if verdict is None:
        return []
    return [*(f"{name}: {why}" for name, why in verdict.not_judged.items()), *verdict.notes]
