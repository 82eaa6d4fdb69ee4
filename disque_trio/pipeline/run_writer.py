"""Writes all rows of runs into a lake, on any machine, as files that are not committed yet."""

import hashlib
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.files import LakeError, LakeFiles, Part
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row


class RunWriter:
    """Writes runs of one scenario: a file of rows and a file of plans, if there are any."""

    def __init__(self, lake: str, scenario: str, name: str) -> None:
        self._lake, self._scenario, self._name = lake, scenario, name
        self._writers: dict[str, Any] = {}
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

    def write(self, plan: Plan, run: str, rows: list[Row]) -> None:
        """Write one run."""
        if not self._writers:
            lake = self._open()
            for table in ("rows", "traces"):
                part = lake.part(table, self._scenario, self._name, shape.SCHEMAS[table])
                self._writers[table] = self._stack.enter_context(part)
        for table in shape.batches(rows, run, plan.seed):
            self._writers["rows"].write_table(table)
        self._writers["traces"].write_table(shape.traces_table(plan, run))
