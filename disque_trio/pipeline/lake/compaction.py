"""Compaction: merges small parts into large ones, and removes files that no table names.

The rows of a scenario are put together in order of kind, run and time: each view needs rows of
some kinds, and Spark skips groups of rows without them. Most rows are about messages, which few
views need. Readers that have begun may still read what was there: replaced parts go with the first
compaction after `GRACE_S`.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from disque_trio.pipeline.lake.files import LakeFiles, Part
from disque_trio.pipeline.lake.shape import SCHEMAS
from disque_trio.pipeline.lake.store import Lake

GRACE_S: Final = 86_400.0
LARGE: Final = 4_000_000
"""Rows of a part that is left as it is, and about how many a new one gets."""
_ROWS: Final = 1 << 17
"""Of a group of rows in Parquet."""


@attrs.frozen
class Tidied:
    """What was done."""

    before: int
    """Parts."""
    after: int
    removed: int
    """Files that no table named any more."""


def compact(spark: Any, lake: Lake, *, grace_s: float = GRACE_S) -> Tidied:
    """Merge small parts. Raises `LakeError`."""
    with lake.locked():
        versions = {name: lake.table(name).read() for name in SCHEMAS}
        heaps = [heap for version in versions.values() for heap in _heaps(version.parts)]
        made = _merged_all(spark, lake, heaps)
        for name, version in versions.items():
            mine = [number for number, heap in enumerate(heaps) if heap[0].table == name]
            if mine:
                old = [part for number in mine for part in heaps[number]]
                lake.table(name).replace(version, old, [made[number] for number in mine])
        hours = math.ceil(grace_s / 3_600)
        removed = sum(lake.table(name).vacuum(hours) for name in SCHEMAS)
        removed += lake.remove_drafts(grace_s)
        left = lake.snapshot()
    before = sum(len(version.parts) for version in versions.values())
    return Tidied(before, sum(map(len, left.values())), removed)


def _heaps(parts: Sequence[Part]) -> list[list[Part]]:
    """Parts to be put together, two or more: of one table and scenario, up to a size."""
    heaps: dict[str, list[list[Part]]] = {}
    for part in sorted(parts, key=lambda part: part.path):
        if part.rows >= LARGE:
            continue
        folder = heaps.setdefault(part.path.rpartition("/")[0], [[]])
        if sum(each.rows for each in folder[-1]) + part.rows > LARGE:
            folder.append([])
        folder[-1].append(part)
    return [heap for folder in heaps.values() for heap in folder if len(heap) > 1]


def _merged_all(spark: Any, lake: Lake, heaps: Sequence[list[Part]]) -> dict[int, Part]:
    """The new parts, by the number of the heap."""
    if not heaps:
        return {}
    folder = LakeFiles(lake.path)  # executors need not have what commits need

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                made = {"heap": number, **attrs.asdict(_merged(folder, heaps[number]))}
                yield pa.RecordBatch.from_pylist([made], schema=_MADE)

    tasks = spark.range(0, len(heaps), 1, len(heaps))
    rows = tasks.mapInArrow(work, _AS_SQL).collect()
    return {row.heap: Part(row.table, row.path, row.rows) for row in rows}


_MADE: Final = pa.schema(
    [("heap", pa.int64()), ("table", pa.string()), ("path", pa.string()), ("rows", pa.int64())]
)
_AS_SQL: Final = "heap bigint, table string, path string, rows bigint"


def _merged(lake: LakeFiles, heap: Sequence[Part]) -> Part:
    first = heap[0]
    schema = SCHEMAS[first.table]
    target = f"{first.path.rpartition('/')[0]}/{_name(heap)}.parquet"
    tables = [pq.read_table(lake.where(part), schema=schema, partitioning=None) for part in heap]
    whole = pa.concat_tables(tables)
    if first.table == "rows":
        whole = _sorted(whole)
    with lake.part_at(first.table, target, schema) as writer:
        for begin in range(0, whole.num_rows, _ROWS):
            writer.write_table(whole.slice(begin, _ROWS))
    return writer.done


def _sorted(rows: pa.Table) -> pa.Table:
    rows = rows.unify_dictionaries()
    names = ("kind", "run", "time", "seq")
    keys = rows.select(names)
    for at, name in enumerate(names[:2]):  # numbers are compared sooner than words
        keys = keys.set_column(at, name, _ranked(keys.column(name)))
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names])
    return rows.take(order)


def _ranked(words: pa.ChunkedArray) -> pa.ChunkedArray:
    """For each word of one dictionary its place in the order of all."""
    if not words.num_chunks:
        return pa.chunked_array([], pa.uint64())
    ranks = pc.rank(words.chunk(0).dictionary)
    return pa.chunked_array([ranks.take(chunk.indices) for chunk in words.chunks])


def _name(heap: Sequence[Part]) -> str:
    """Of the new part: it tells which ones it is made of, so that who is interrupted and begins
    again writes the same file."""
    names = "\n".join(part.path for part in heap)
    return f"compact-{hashlib.sha256(names.encode()).hexdigest()[:16]}"
