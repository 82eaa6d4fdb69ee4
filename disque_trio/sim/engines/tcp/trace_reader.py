"""Follows the trace files of running nodes."""

import os
from pathlib import Path
from typing import BinaryIO

import attrs

from disque_trio.tracing.jsonlines import rows_of
from disque_trio.tracing.rows import Row


@attrs.define(eq=False)
class TraceReader:
    """One node's growing trace, with the rows as the node wrote them."""

    path: Path
    rows: list[Row] = attrs.Factory(list)
    """All rows so far."""
    begins: list[int] = attrs.Factory(list)
    """By process: the index of its first row."""
    held: dict[str, None] = attrs.Factory(dict)
    """The jobs of which the node has a record, in this life."""
    _file: BinaryIO | None = None
    _rest: bytes = b""
    _returned: int = 0

    def begin(self) -> None:
        """Prepare for the start of a process; none runs now."""
        self._load()
        if self._file is not None:
            # The new process removes an unfinished last line.
            self._file.seek(-len(self._rest), os.SEEK_CUR)
            self._rest = b""
        self.begins.append(len(self.rows))

    def read(self) -> list[Row]:
        """Return the rows since the last call."""
        self._load()
        rows = self.rows[self._returned :]
        self._returned = len(self.rows)
        return rows

    def _load(self) -> None:
        if self._file is None:
            if not self.path.exists():
                return
            self._file = self.path.open("rb")
        data = self._rest + self._file.read()
        whole = data.rfind(b"\n") + 1
        self._rest = data[whole:]
        rows = list(rows_of(data[:whole].splitlines(keepends=True)))
        self.rows += rows
        for row in rows:
            self._follow(row)

    def _follow(self, row: Row) -> None:
        if row.kind == "hold":
            self.held[row.job] = None
        elif row.kind == "drop":
            self.held.pop(row.job, None)
        elif row.kind == "start":
            self.held.clear()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
