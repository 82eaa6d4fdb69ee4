"""Traces of intact nodes and of broken ones, with the checkers' verdict."""

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

import attrs

from disque_trio.sim.checkers.verdict import Verdict, judge
from disque_trio.sim.engines.heap.nodes import MachineError
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.traces import files as traces_files
from disque_trio.tracing.rows import Row
from tests.sim.mutants.mutant import all_mutants
from tests.sim.mutants.swapping import applied


@attrs.frozen
class TracedRun:
    """One run with its trace."""

    name: str
    path: str
    plan: Plan
    rows: Sequence[Row]
    verdict: Verdict

    def accused(self, property: str) -> set[str]:
        """The jobs for which the property is violated."""
        return {each.job for each in self.verdict.violations if each.property == property}


def traced(
    name: str,
    plan: Plan,
    folder: Path,
    breaks: str = "",
    form: str = "jsonl",
) -> TracedRun:
    """Run the plan, maybe with a mutant of that name, and keep its trace."""
    rows: list[Row] = []
    checkers = judge(plan)

    def see(row: Row) -> None:
        rows.append(row)
        checkers.see(row)

    with applied(all_mutants()[breaks]) if breaks else nullcontext(), suppress(MachineError):
        simulate(plan, see)
    path = str(folder / f"{name}.{form}")
    writer = traces_files.create(path, plan)
    writer.write(rows)
    writer.close()
    return TracedRun(name, path, plan, rows, checkers.finish())
