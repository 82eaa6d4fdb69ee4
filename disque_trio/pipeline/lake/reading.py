"""Reads a piece of a file into a part of the lake, on Spark's executors.

Lines are parsed by Arrow, which is several times as fast as Python; only where it finds a mistake
is the piece read again, for the number of the line and a better word for what is wrong with it.
"""

import io
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.files import LakeFiles, Part, PartWriter, day_of
from disque_trio.pipeline.lake.shape import LIVE, RESULTS, ROWS, RUN_DIGITS
from disque_trio.pipeline.lake.survey import LINES, TABLE, BadFileError, table_of
from disque_trio.sim.traces.files import PLAN_KIND
from disque_trio.tracing.jsonlines import NewerRow, RowError, rows_of
from disque_trio.tracing.sampling import SAMPLE_KIND

_BLOCK: Final = 4 << 20
_BATCH: Final = 1 << 16
_TEXT: Final = pa.schema([shape.plain(ROWS).field(name) for name in shape.OF_ROW])
_NEWER: Final = "; if a later version has written the file, ingest it with that version"
_NEEDED: Final = ("time", "kind")
_DAY: Final = 86_400e6


@attrs.frozen(kw_only=True)
class Piece:
    """A stretch of a file, to become one part."""

    path: str
    sort: str
    begin: int
    end: int
    scenario: str
    run: str
    seed: int
    name: str
    """The name of the part; its parts have names that begin so."""


def read(lake: LakeFiles, piece: Piece) -> list[Part]:
    """Write the piece's rows into the lake. Raises `BadFileError` and `LakeError`."""
    try:
        if piece.sort in (TABLE, LINES):
            tables = _of_table(piece) if piece.sort == TABLE else _of_lines(piece)
            return write_rows(lake, piece.scenario, piece.name, _numbered_all(tables, piece))
        return _write_results(lake, piece)
    except OSError as error:
        raise BadFileError(error.strerror or str(error)) from None
    except pa.ArrowException as error:
        raise BadFileError(str(error)) from None


def write_rows(lake: LakeFiles, scenario: str, name: str, tables: Iterable[pa.Table]) -> list[Part]:
    """Write trace rows; those of live nodes by cluster and day."""
    writers: dict[tuple[str | None, str | None], PartWriter] = {}
    with ExitStack() as stack:
        for table in tables:
            some = _by_day(table) if scenario == LIVE else {(None, None): table}
            for (cluster, day), rows in some.items():
                if (cluster, day) not in writers:
                    writer = PartWriter(lake, lake.new_path("rows", scenario, name, cluster, day))
                    writers[cluster, day] = stack.enter_context(writer)
                writers[cluster, day].write_table(rows)
    return [writer.done for writer in writers.values()]


def _by_day(rows: pa.Table) -> dict[tuple[str | None, str | None], pa.Table]:
    """With their `at`."""
    at = rows.schema.get_field_index("at")
    rows = rows.set_column(at, ROWS.field(at), rows["time"].cast(ROWS.field(at).type))
    # Arrow's division of integers is not that of Python below zero.
    days = pc.floor(pc.divide(rows["time"].cast(pa.float64()), _DAY))
    found: dict[tuple[str | None, str | None], pa.Table] = {}
    for run in rows["run"].unique().to_pylist():
        for day in days.unique().to_pylist():
            mine = rows.filter(pc.and_(pc.equal(rows["run"], run), pc.equal(days, day)))
            if mine.num_rows:
                found[run, day_of(int(day))] = mine
    return found


def _numbered_all(tables: Iterable[pa.Table], piece: Piece) -> Iterator[pa.Table]:
    first = piece.begin
    for table in tables:
        yield _numbered(table, piece, first)
        first += table.num_rows


def _numbered(table: pa.Table, piece: Piece, first: int) -> pa.Table:
    """The rows under their run, each with a number that grows as the file does: a line is longer
    than a byte, so the numbers of two pieces never meet."""
    count = table.num_rows
    keys = [
        pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), [piece.run]),
        pa.repeat(pa.scalar(piece.seed, pa.int64()), count),
        pa.array(range(first, first + count), pa.int64()),
    ]
    columns = [_filled(table.column(name), ROWS.field(name).type) for name in shape.OF_ROW]
    at = pa.nulls(count, ROWS.field("at").type)
    return pa.Table.from_arrays([*keys, *columns, at], schema=ROWS)


def _filled(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Missing values become empty, 0 or ()."""
    if pa.types.is_list(wanted):
        lists = column.combine_chunks().cast(wanted)
        # Without their validity, lists that are null are empty.
        return pa.ListArray.from_arrays(lists.offsets, lists.values) if lists.null_count else lists
    if pa.types.is_dictionary(column.type):
        return column.cast(wanted)
    if column.null_count:
        column = pc.fill_null(column, "" if pa.types.is_string(column.type) else 0)
    return column.dictionary_encode() if pa.types.is_dictionary(wanted) else column


# Lines.


def _of_lines(piece: Piece) -> Iterator[pa.Table]:
    begin = piece.begin or _head(piece.path)
    if begin == piece.end:
        return
    options = {
        "read_options": pj.ReadOptions(block_size=_BLOCK, use_threads=False),
        "parse_options": pj.ParseOptions(explicit_schema=_TEXT, unexpected_field_behavior="error"),
    }
    try:
        for batch in pj.open_json(_stretch(piece.path, begin, piece.end), **options):
            table = pa.Table.from_batches([batch])
            if any(table.column(name).null_count for name in _NEEDED):
                raise pa.ArrowInvalid("a row must be an object with at least a time and a kind")
            yield table
    except pa.ArrowInvalid as error:
        raise BadFileError(_line_error(piece) or str(error)) from None


def _head(path: str) -> int:
    """The length of the first line, if it tells about the file."""
    with Path(path).open("rb") as file:
        line = file.readline()
    return len(line) if json.loads(line)["kind"] in (PLAN_KIND, SAMPLE_KIND) else 0


def _line_error(piece: Piece) -> str:
    """The first wrong line, and what is wrong with it."""
    before = sum(1 for _ in _stretch(piece.path, 0, piece.begin))
    try:
        for number, row in enumerate(rows_of(_stretch(piece.path, piece.begin, piece.end)), 1):
            if isinstance(row, NewerRow):
                raise RowError(number, f"a row has no '{next(iter(row.more))}' here{_NEWER}")
    except RowError as error:
        return f"line {before + error.number}: {str(error).partition(': ')[2]}"
    return ""


def _stretch(path: str, begin: int, end: int) -> io.BufferedReader:
    """The bytes of a file from here to there."""
    return io.BufferedReader(pa.OSFile(path).get_stream(begin, end - begin))


# Tables.


def _of_table(piece: Piece) -> Iterator[pa.Table]:
    table = table_of(piece.path)
    missing = [name for name in shape.OF_ROW if name not in table.schema.names]
    if missing:
        raise BadFileError(f"no column {', '.join(missing)}")
    for batch in table.to_batches(list(shape.OF_ROW), batch_size=_BATCH, use_threads=False):
        yield pa.Table.from_batches([batch])


# Results.


def _write_results(lake: LakeFiles, piece: Piece) -> list[Part]:
    by_scenario: dict[str, list[dict[str, Any]]] = {}
    at = int(Path(piece.path).stat().st_mtime * 1_000_000)
    for number, line in enumerate(_stretch(piece.path, piece.begin, piece.end), 1):
        facts = _result(line, number, piece, at)
        by_scenario.setdefault(facts.pop("scenario"), []).append(facts)
    return [
        lake.write("results", scenario, piece.name, pa.Table.from_pylist(rows, schema=RESULTS))
        for scenario, rows in by_scenario.items()
    ]


def _result(line: bytes, number: int, piece: Piece, at: int) -> dict[str, Any]:
    """A line of `sim sweep --out` as a row of the table."""
    try:
        facts = json.loads(line)
        digest = facts.get("digest", "")
        return {
            "run": digest[:RUN_DIGITS] or f"{facts['scenario']}-{facts['seed']}",
            "sweep": piece.run,
            "at": at,
            "ok": facts["is_ok"],
            "commit": facts.get("version"),
            "digest": digest,
            **{name: facts[name] for name in ("scenario", "seed", "engine")},
            **{
                name: facts.get(name, 0)
                for name in ("lost", "added", "delivered", "steps", "end", "seconds")
            },
            **{name: list(facts.get(name, {}).items()) for name in ("duplicates", "marks")},
            "coverage": [],
            "findings": facts.get("findings", []),
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = "no JSON" if isinstance(error, ValueError) else "not a result of a sweep"
        raise BadFileError(f"line {number}: {reason}: {error}") from None
