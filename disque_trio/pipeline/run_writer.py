"""Writes all rows of runs into a lake, on any machine, as files that are not committed yet."""

import hashlib
from contextlib import ExitStack

from disque_trio.pipeline.lake import shape, verdicts
from disque_trio.pipeline.lake.files import LakeError, LakeFiles, Part, PartWriter
from disque_trio.sim.checkers.verdict import Verdict
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row


class RunWriter(ExitStack):
    """Writes runs of one scenario: files of rows, plans and verdicts, if there are any."""

    def __init__(self, lake: str, scenario: str, name: str) -> None:
        super().__init__()
        self._lake, self._scenario, self._name = lake, scenario, name
        self._writers: dict[str, PartWriter] = {}

    @property
    def parts(self) -> tuple[Part, ...]:
        """What was written, once this is closed."""
        return tuple(writer.done for writer in self._writers.values())

    @staticmethod
    def name_of(*facts: str) -> str:
        """The name of a run, from what distinguishes it from all others."""
        return hashlib.sha256("/".join(facts).encode()).hexdigest()[: shape.RUN_DIGITS]

    def _open(self) -> LakeFiles:
        try:
            return LakeFiles.open(self._lake)
        except LakeError as error:
            raise LakeError(
                f"{error}. The lake of the sweep must be the same directory on every machine"
            ) from None

    def write(self, plan: Plan, run: str, rows: list[Row], verdict: Verdict | None) -> None:
        """Write one run. Without a verdict it is judged when a query needs one."""
        for table in shape.batches(rows, run, plan.seed):
            self._part("rows").write_table(table)
        self._part("traces").write_table(shape.traces_table(plan, run))
        if verdict is not None:
            found = verdicts.facts(run, plan.seed, len(rows), verdict.violations, verdict)
            self._part("verdicts").write_table(verdicts.table([found]))

    def _part(self, table: str) -> PartWriter:
        if table not in self._writers:
            lake = self._open()
            part = PartWriter(lake, lake.new_path(table, self._scenario, self._name))
            self._writers[table] = self.enter_context(part)
        return self._writers[table]
