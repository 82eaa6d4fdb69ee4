"""Writes all rows of runs into a lake, on any machine, as files that are not committed yet."""

import hashlib
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from disque_trio.pipeline.lake import shape, verdicts
from disque_trio.pipeline.lake.files import LakeError, LakeFiles, Part, PartWriter
from disque_trio.sim.checkers.verdict import Verdict
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row


class RunWriter:
    """Writes runs of one scenario: files of rows, plans and verdicts, if there are any."""

    def __init__(self, lake: str, scenario: str, name: str) -> None:
        self._lake, self._scenario, self._name = lake, scenario, name
        self._writers: dict[str, PartWriter] = {}
        self._stack = ExitStack()
        self.parts: tuple[Part, ...] = ()

    def __enter__(self) -> Self:
        self._stack.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        self.parts = tuple(writer.done for writer in self._writers.values())

    @staticmethod
    def name_of(*facts: str) -> str:
        """The name of a run, from what distinguishes it from all others."""
        return hashlib.sha256("/".join(facts).encode()).hexdigest()[: shape.RUN_DIGITS]

    def _open(self) -> LakeFiles:
        try:
            return LakeFiles.open(self._lake)
        except LakeError as error:
            raise LakeError(
                f"{error}. The sweep's lake must be the same folder on every machine"
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
            part = self._open().part(table, self._scenario, self._name, shape.SCHEMAS[table])
            self._writers[table] = self._stack.enter_context(part)
        return self._writers[table]
