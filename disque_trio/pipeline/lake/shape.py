"""The tables of the lake: their columns, as Arrow schemas.

They are relations of one Delta table, whose columns are those of all. Its partitions are further
columns: `relation`, `scenario` of all but `sources`, and of rows of live nodes the `cluster` and
the `date`. `run` tells runs apart: of a sweep it is the beginning of the digest, of an ingested
file that of its SHA-256, of a live cluster the name that the user has given.
"""

import json
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import islice
from typing import Any, Final

import attrs
import pyarrow as pa

from disque_trio.sim.checkers.obligations import obligations_of
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row

RUN_DIGITS: Final = 16
"""How much of a digest names a run."""
LIVE: Final = "live"
"""The scenario of traces without a plan, and the run of a cluster without a name."""


def _structs(**columns: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct(list(columns.items())))


_TEXT: Final = pa.string()
_INT: Final = pa.int64()
_WORD: Final = pa.dictionary(pa.int32(), _TEXT)
_COUNTS: Final = pa.map_(_TEXT, _INT)
OF_ROW: Final = tuple(field.name for field in attrs.fields(Row))

_KEYS: Final = [("run", _WORD), ("seed", _INT)]
_ROW: Final = {
    "time": _INT,
    **dict.fromkeys(("kind", "node", "queue", "client", "peer", "cause"), _WORD),
    **dict.fromkeys(("job", "detail"), _TEXT),
    **dict.fromkeys(("ref", "mono", "wall"), _INT),
    "clock": pa.list_(_INT),
}
_INSTANT: Final = pa.timestamp("us", "UTC")
ROWS: Final = pa.schema(
    [*_KEYS, ("seq", _INT), *((name, _ROW[name]) for name in OF_ROW), ("at", _INSTANT)]
)
"""Trace rows (`sim.rows`). `seq` puts those of one file in the order in which they were written.
`at` is the time of a row of a live node."""

TRACES: Final = pa.schema(
    [
        *_KEYS,
        ("is_live", pa.bool_()),
        ("nodes", _INT),
        *((name, pa.bool_()) for name in ("is_stream", "has_lease")),
        ("rho", pa.float64()),
        *((name, _INT) for name in ("settle", "latency", "collection", "reconnect")),
        ("plan", _TEXT),
    ]
)
"""One row for each trace: what its plan entitles its jobs to (`sim.checkers.obligations`), in
microseconds, and the plan. A live cluster has none; there it is what is usual."""

RESULTS: Final = pa.schema(
    [
        *_KEYS,
        ("sweep", _TEXT),
        ("at", _INSTANT),
        ("engine", _TEXT),
        ("ok", pa.bool_()),
        *((name, _INT) for name in ("lost", "added", "delivered", "steps", "end")),
        ("digest", _TEXT),
        ("seconds", pa.float64()),
        *((name, _TEXT) for name in ("commit", "version", "python")),
        *((name, _COUNTS) for name in ("duplicates", "marks", "coverage")),
        ("findings", _structs(property=_TEXT, text=_TEXT, job=_TEXT, time=_INT, node=_TEXT)),
        ("plan", _TEXT),
    ]
)
"""One row for each seed of a sweep, with its verdict. `at` is when it was run, `end` how many
simulated microseconds the run was long, `seconds` what it cost of a processor."""

VERDICTS: Final = pa.schema(
    [
        *_KEYS,
        ("judge", _WORD),
        ("at", _INSTANT),
        ("events", _INT),
        ("ok", pa.bool_()),
        *((name, _INT) for name in ("lost", "delivered")),
        ("violations", _structs(property=_TEXT, job=_TEXT, node=_TEXT, time=_INT, detail=_TEXT)),
        (
            "repeats",
            _structs(job=_TEXT, number=_INT, cause=_TEXT, leased=_INT, after_ack=pa.bool_()),
        ),
        ("not_judged", pa.map_(_TEXT, _TEXT)),
        ("notes", pa.list_(_TEXT)),
    ]
)
"""One row for each run that was judged, and a further one when it was judged again (`verdicts`)."""

SOURCES: Final = pa.schema(
    [(name, _TEXT) for name in ("name", "head", "sha256")]
    + [("size", _INT), ("run", _TEXT), ("rows", _INT)]
)
"""One row for each file that was ingested (`store.Source`). It has no scenario."""

TABLES: Final = {"rows": ROWS, "traces": TRACES, "results": RESULTS, "verdicts": VERDICTS}
"""The tables that have a scenario, and that queries name."""
SCHEMAS: Final = {**TABLES, "sources": SOURCES}
"""All tables of a lake."""
PARTITIONS: Final = {
    "relation": _TEXT, "scenario": _TEXT, "cluster": _TEXT, "date": pa.date32()
}  # fmt: skip


def plain(schema: pa.Schema) -> pa.Schema:
    """The same columns without dictionaries, which neither Delta nor Spark has."""
    return pa.schema(
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in schema
    )


def for_spark(schema: pa.Schema) -> Any:
    """The same columns as Spark names them."""
    return import_module("pyspark.sql.pandas.types").from_arrow_schema(schema)


def stored(table: str) -> pa.Schema:
    """The columns of a table with those of its partitions that it has."""
    keys = {"rows": ("scenario", "cluster", "date"), "sources": ()}.get(table, ("scenario",))
    return pa.schema([*plain(SCHEMAS[table]), *((name, PARTITIONS[name]) for name in keys)])


def whole() -> pa.Schema:
    """The columns of the one table."""
    columns = {field.name: field for schema in SCHEMAS.values() for field in plain(schema)}
    return pa.schema([*PARTITIONS.items(), *columns.values()])


def rows_table(rows: Sequence[Row], run: str, seed: int, first: int = 0) -> pa.Table:
    """Trace rows; the first of them is the row of this number in its trace."""
    count = len(rows)
    columns: list[Sequence[Any]] = [[run] * count, [seed] * count, range(first, first + count)]
    columns += [[getattr(row, name) for row in rows] for name in OF_ROW]
    columns.append([None] * count)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, ROWS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=ROWS)


def batches(rows: Iterable[Row], run: str, seed: int, size: int = 1 << 16) -> Iterable[pa.Table]:
    """The rows in tables of some size."""
    rest, first = iter(rows), 0
    while some := list(islice(rest, size)):
        yield rows_table(some, run, seed, first)
        first += len(some)


_ENTITLED: Final = (
    "nodes", "is_stream", "has_lease", "rho", "latency", "collection", "reconnect"
)  # fmt: skip


def traces_table(plan: Plan | None, run: str) -> pa.Table:
    """The row of one trace; without a plan, that of a live cluster."""
    known = plan or Plan(scenario=LIVE, seed=0, nodes=1)
    due = obligations_of(known)
    facts = {
        **{name: getattr(due, name) for name in _ENTITLED},
        "settle": due.calm_after,
        "run": run,
        "seed": known.seed,
        "is_live": plan is None,
        "plan": None if plan is None else json.dumps(json.loads(plan_file.dump(plan))),
    }
    return pa.Table.from_pylist([facts], schema=TRACES)
