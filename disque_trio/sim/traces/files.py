"""Traces as files: the rows of a run, with its plan.

``.jsonl`` has one JSON object per line, as a live node writes them; ``.arrow`` and ``.parquet`` are
for queries over many traces, and need pyarrow (the extra `trace`). The first line of a simulated
run, or the metadata of its table, is the plan, so that the file alone can be judged and run again.
"""

import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from io import BufferedWriter
from pathlib import Path
from typing import Any, Final, Protocol

import attrs

from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.scenarios.plan_file import PlanError
from disque_trio.tracing.jsonlines import RowError, line_of, rows_of
from disque_trio.tracing.rows import Row
from disque_trio.tracing.sampling import SAMPLE_KIND, sample_of

PLAN_KIND: Final = "plan"
"""The kind of the first row of a simulated run, which contains the plan."""
_PLAN_KEY: Final = b"disque_trio.plan"
_BATCH: Final = 1 << 16
_WORDS: Final = ("kind", "node", "queue", "client", "peer", "cause")
"""Columns with few different values."""
_TEXTS: Final = ("job", "detail")
_NUMBERS: Final = ("ref", "mono", "wall")


class TraceError(Exception):
    """A trace cannot be read or written; the text says why."""


class TraceWriter(Protocol):
    """Takes rows in order."""

    def write(self, rows: Iterable[Row]) -> None:
        """Add these rows."""

    def close(self) -> None:
        """Finish the file."""


@attrs.frozen
class Trace:
    """The content of a file: the rows, and the plan of a simulated run."""

    plan: Plan | None
    rows: Iterator[Row]
    sample: int = 1
    """The rows are about one in this many jobs."""


def create(path: str, plan: Plan) -> TraceWriter:
    """Return a writer for the rows of this plan. Raise `TraceError`."""
    try:
        if path.endswith((".arrow", ".parquet")):
            return _TableWriter(path, plan)
        return _LineWriter(path, plan)
    except OSError as error:
        raise TraceError(f"cannot write {path}: {error.strerror or error}") from None


def read(path: str) -> Trace:
    """Return the trace in a file. Raise `TraceError`, also while its rows are read."""
    try:
        if path.endswith((".arrow", ".parquet")):
            return _read_table(path)
        return _read_lines(path)
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror or error}") from None


class _LineWriter:
    """Writes JSON lines."""

    def __init__(self, path: str, plan: Plan) -> None:
        self._file: BufferedWriter = Path(path).open("wb")  # noqa: SIM115, `close` does
        head = Row(time=0, kind=PLAN_KIND, detail=json.dumps(_document(plan)))
        self._file.write(line_of(head))

    def write(self, rows: Iterable[Row]) -> None:
        """Add these rows."""
        self._file.writelines(line_of(row) for row in rows)

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


def _document(plan: Plan) -> Any:
    return json.loads(plan_file.dump(plan))


def _read_lines(path: str) -> Trace:
    rows = _checked(path, rows_of(_lines(path)))
    first = next(rows, None)
    if first is None:
        raise TraceError(f"{path}: no rows")
    if first.kind == PLAN_KIND:
        return Trace(_plan(path, first.detail), rows)
    if first.kind == SAMPLE_KIND:
        return Trace(None, rows, _sample(path, first))
    return Trace(None, _again(first, rows))


def _lines(path: str) -> Iterator[bytes]:
    with Path(path).open("rb") as file:
        yield from file


def _checked(path: str, rows: Iterator[Row]) -> Iterator[Row]:
    try:
        yield from rows
    except RowError as error:
        raise TraceError(f"{path}: {error}") from None


def _again(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows


def _plan(path: str, text: str) -> Plan:
    try:
        return plan_file.parse(text, f"{path}: its plan")
    except PlanError as error:
        raise TraceError(str(error)) from None


def _sample(path: str, first: Row) -> int:
    try:
        return sample_of(first.kind, first.detail)
    except ValueError as error:
        raise TraceError(f"{path}: line 1: {error}") from None


# Tables.


def _arrow(module: str = "pyarrow") -> Any:
    """Return pyarrow. Raise a `TraceError` with instructions to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise TraceError(
            ".arrow and .parquet need pyarrow: pip install 'disque-trio[trace]', or write .jsonl"
        ) from None


def schema(plan: Plan | None = None) -> Any:
    """Return the Arrow schema of trace rows: `Row`, with its run."""
    arrow = _arrow()
    word = arrow.dictionary(arrow.int32(), arrow.string())
    fields = [("scenario", word), ("seed", arrow.int64()), ("time", arrow.int64())]
    fields += [(name, word) for name in _WORDS]
    fields += [(name, arrow.string()) for name in _TEXTS]
    fields += [(name, arrow.int64()) for name in _NUMBERS]
    fields += [("clock", arrow.list_(arrow.int64()))]
    metadata = {} if plan is None else {_PLAN_KEY: json.dumps(_document(plan)).encode()}
    return arrow.schema(fields, metadata=metadata)


def table(rows: list[Row], plan: Plan) -> Any:
    """Return the rows as an Arrow table."""
    columns: dict[str, list[Any]] = {
        "scenario": [plan.scenario] * len(rows),
        "seed": [plan.seed] * len(rows),
    }
    for name in ("time", *_WORDS, *_TEXTS, *_NUMBERS, "clock"):
        columns[name] = [getattr(row, name) for row in rows]
    shape = schema(plan)
    arrays = [_arrow().array(columns[field.name], field.type) for field in shape]
    return _arrow().Table.from_arrays(arrays, schema=shape)


class _TableWriter:
    """Writes Arrow's own file format, or Parquet."""

    def __init__(self, path: str, plan: Plan) -> None:
        self._plan = plan
        self._rows: list[Row] = []
        shape = schema(plan)
        self._file = Path(path).open("wb")  # noqa: SIM115, `close` does
        if path.endswith(".parquet"):
            self._writer = _arrow("pyarrow.parquet").ParquetWriter(self._file, shape)
        else:
            # This format must explicitly allow dictionaries that grow from batch to batch.
            options = _arrow("pyarrow.ipc").IpcWriteOptions(unify_dictionaries=True)
            self._writer = _arrow("pyarrow.ipc").new_file(self._file, shape, options=options)

    def write(self, rows: Iterable[Row]) -> None:
        """Add these rows."""
        for row in rows:
            self._rows.append(row)
            if len(self._rows) == _BATCH:
                self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(table(self._rows, self._plan))
            self._rows = []

    def close(self) -> None:
        """Finish the file."""
        with self._file:
            self._flush()
            self._writer.close()


def _read_table(path: str) -> Trace:
    arrow = _arrow()
    try:
        if path.endswith(".parquet"):
            found = _arrow("pyarrow.parquet").read_table(path)
        else:
            found = _arrow("pyarrow.ipc").open_file(path).read_all()
    except arrow.ArrowInvalid as error:
        raise TraceError(f"{path}: {error}") from None
    text = (found.schema.metadata or {}).get(_PLAN_KEY)
    plan = None if text is None else _plan(path, text.decode())
    return Trace(plan, _rows_of_table(path, found))


def _rows_of_table(path: str, found: Any) -> Iterator[Row]:
    names = [field.name for field in attrs.fields(Row)]
    missing = [name for name in names if name not in found.column_names]
    if missing:
        raise TraceError(f"{path}: no column {', '.join(missing)}")
    for batch in found.select(names).to_batches(_BATCH):
        for facts in batch.to_pylist():
            facts["clock"] = tuple(facts["clock"])
            yield Row(**facts)
