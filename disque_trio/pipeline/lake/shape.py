"""The tables of the lake: their columns, as Arrow schemas.

They are relations of one Delta table, whose columns are those of all. Its partitions are further
columns: `relation`, `scenario` of all but `sources`, and of rows of live nodes the `cluster` and
the `date`. `run` tells runs apart: of a sweep it is the beginning of the digest, of an ingested
file that of its SHA-256, of a live cluster the name that the user has given.
"""

import json
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final

import attrs
import pyarrow as pa

from disque_trio.sim.checkers.obligations import Obligations, obligations_of
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row

RUN_DIGITS: Final = 16
"""How much of a digest names a run."""
LIVE: Final = "live"
"""The scenario of traces without a plan, and the run of a cluster without a name."""

_WORD: Final = pa.dictionary(pa.int32(), pa.string())
_COUNTS: Final = pa.map_(pa.string(), pa.int64())
OF_ROW: Final = tuple(field.name for field in attrs.fields(Row))

_KEYS: Final = [("run", _WORD), ("seed", pa.int64())]
_ROW: Final = {
    "time": pa.int64(),
    **dict.fromkeys(("kind", "node", "queue", "client", "peer", "cause"), _WORD),
    **dict.fromkeys(("job", "detail"), pa.string()),
    **dict.fromkeys(("ref", "mono", "wall"), pa.int64()),
    "clock": pa.list_(pa.int64()),
}
_INSTANT: Final = pa.timestamp("us", "UTC")
ROWS: Final = pa.schema(
    [*_KEYS, ("seq", pa.int64()), *((name, _ROW[name]) for name in OF_ROW), ("at", _INSTANT)]
)
"""Trace rows (`sim.rows`). `seq` puts those of one file in the order in which they were written.
`at` is the time of a row of a live node."""

TRACES: Final = pa.schema(
    [
        *_KEYS,
        ("is_live", pa.bool_()),
        ("nodes", pa.int64()),
        ("is_stream", pa.bool_()),
        ("has_lease", pa.bool_()),
        ("rho", pa.float64()),
        ("settle", pa.int64()),
        ("latency", pa.int64()),
        ("collection", pa.int64()),
        ("reconnect", pa.int64()),
        ("plan", pa.string()),
    ]
)
"""One row for each trace: what its plan entitles its jobs to (`sim.checkers.obligations`), in
microseconds, and the plan. A live cluster has none; there it is what is usual."""

RESULTS: Final = pa.schema(
    [
        *_KEYS,
        ("sweep", pa.string()),
        ("at", _INSTANT),
        ("engine", pa.string()),
        ("ok", pa.bool_()),
        *((name, pa.int64()) for name in ("lost", "added", "delivered", "steps", "end")),
        ("digest", pa.string()),
        ("seconds", pa.float64()),
        *((name, pa.string()) for name in ("commit", "version", "python")),
        *((name, _COUNTS) for name in ("duplicates", "marks", "coverage")),
        (
            "findings",
            pa.list_(
                pa.struct(
                    [
                        ("property", pa.string()),
                        ("text", pa.string()),
                        ("job", pa.string()),
                        ("time", pa.int64()),
                        ("node", pa.string()),
                    ]
                )
            ),
        ),
        ("plan", pa.string()),
    ]
)
"""One row for each seed of a sweep, with its verdict. `at` is when it was run, `end` how many
simulated microseconds the run was long, `seconds` what it cost of a processor."""

VERDICTS: Final = pa.schema(
    [
        *_KEYS,
        ("judge", _WORD),
        ("at", _INSTANT),
        ("events", pa.int64()),
        ("ok", pa.bool_()),
        *((name, pa.int64()) for name in ("lost", "delivered")),
        (
            "violations",
            pa.list_(
                pa.struct(
                    [
                        ("property", pa.string()),
                        ("job", pa.string()),
                        ("node", pa.string()),
                        ("time", pa.int64()),
                        ("detail", pa.string()),
                    ]
                )
            ),
        ),
        (
            "repeats",
            pa.list_(
                pa.struct(
                    [
                        ("job", pa.string()),
                        ("number", pa.int64()),
                        ("cause", pa.string()),
                        ("leased", pa.int64()),
                        ("after_ack", pa.bool_()),
                    ]
                )
            ),
        ),
        ("not_judged", pa.map_(pa.string(), pa.string())),
        ("notes", pa.list_(pa.string())),
    ]
)
"""One row for each run that was judged, and a further one when it was judged again (`verdicts`)."""

SOURCES: Final = pa.schema(
    [(name, pa.string()) for name in ("name", "head", "sha256")]
    + [("size", pa.int64()), ("run", pa.string()), ("rows", pa.int64())]
)
"""One row for each file that was ingested (`store.Source`). It has no scenario."""

TABLES: Final = {"rows": ROWS, "traces": TRACES, "results": RESULTS, "verdicts": VERDICTS}
"""The tables that have a scenario, and that queries name."""
SCHEMAS: Final = {**TABLES, "sources": SOURCES}
"""All tables of a lake."""
PARTITIONS: Final = {
    "relation": pa.string(), "scenario": pa.string(), "cluster": pa.string(), "date": pa.date32()
}  # fmt: skip


def plain(schema: pa.Schema) -> pa.Schema:
    """The same columns without dictionaries, which neither Delta nor Spark has."""
    return pa.schema(
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in schema
    )


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


def traces_table(plan: Plan | None, run: str) -> pa.Table:
    """The row of one trace; without a plan, that of a live cluster."""
    known = plan or Plan(scenario=LIVE, seed=0, nodes=1)
    facts = {
        **_entitled(obligations_of(known)),
        "run": run,
        "seed": known.seed,
        "is_live": plan is None,
        "plan": None if plan is None else json.dumps(json.loads(plan_file.dump(plan))),
    }
    return pa.Table.from_pylist([facts], schema=TRACES)


def _entitled(obligations: Obligations) -> dict[str, object]:
    return {
        "nodes": obligations.nodes,
        "is_stream": obligations.is_stream,
        "has_lease": obligations.has_lease,
        "rho": obligations.rho,
        "settle": obligations.calm_after,
        "latency": obligations.latency,
        "collection": obligations.collection,
        "reconnect": obligations.reconnect,
    }
