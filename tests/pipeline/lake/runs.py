"""Traces of nodes that are whole, and of nodes that are broken, with what the judge says."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import attrs
import pytest

from disque_trio.sim.checkers.verdict import Verdict, judge
from disque_trio.sim.engines.heap.nodes import MachineError
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.traces import files as traces_files
from disque_trio.tracing.rows import Row


@attrs.frozen
class ReportFacts:
    """One run."""

    name: str
    path: str
    plan: Plan
    rows: Sequence[Row]
    verdict: Verdict

    def accused(self, property: str) -> set[str]:
        """The jobs with which the judge says that it does not hold."""
        return {each.job for each in self.verdict.violations if each.property == property}


def told(
    name: str,
    plan: Plan,
    folder: Path,
    breaks: Callable[[pytest.MonkeyPatch], None] | None = None,
    form: str = "jsonl",
) -> ReportFacts:
    """Play the plan, with something broken if that is wanted, and keep its trace."""
    rows: list[Row] = []
    court = judge(plan)

    def see(row: Row) -> None:
        rows.append(row)
        court.see(row)

    with pytest.MonkeyPatch.context() as patch:
        if breaks is not None:
            breaks(patch)
        with suppress(MachineError):
            simulate(plan, see)
    path = str(folder / f"{name}.{form}")
    writer = traces_files.create(path, plan)
    writer.write(rows)
    writer.close()
    return ReportFacts(name, path, plan, rows, court.finish())
