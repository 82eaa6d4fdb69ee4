"""Brings a lake of release 0.1.0, which had a Delta table for each of its tables, to the one table.

Large files are linked, not copied. An upgrade that is killed is repeated when the lake is opened.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.files import LakeError, LakeFiles, Part, reason, statistics
from disque_trio.pipeline.lake.reading import write_rows

HEAD: Final = "lake.json"
_SWEEPS: Final = "sweeps.lock"
_OTHERS: Final = ("recent", "derived")
_DOING: Final = "disque-trio-upgrade"
_OLD_NAMES: Final = {"repeats": "duplicates"}
"""Names of columns that were others."""


@attrs.frozen
class Upgraded:
    """What was moved."""

    parts: int
    sources: int


Fill = Callable[[str, Callable[[], list[Part]]], dict[str, list[Part]]]


def upgrade(lake: LakeFiles, fill: Fill) -> Upgraded:
    """Make the table of a lake of release 0.1.0; of one that has it already, nothing is moved.
    `fill` makes it of parts, unless a commit of that name has, and returns what it has then.
    Raises `LakeError`."""
    folder = Path(lake.path)
    try:
        with _locked(folder / HEAD), _locked(folder / _SWEEPS):
            if not (folder / HEAD).exists():
                return Upgraded(0, 0)  # another has just done it
            _check(folder)
            done = fill(
                _DOING,
                lambda: [part for old in _old_parts(folder) for part in _moved(lake, *old)],
            )
            for name in (*shape.SCHEMAS, *_OTHERS):
                shutil.rmtree(folder / name, ignore_errors=True)
            (folder / HEAD).unlink()
            (folder / _SWEEPS).unlink(missing_ok=True)
    except (OSError, ValueError, pa.ArrowException, DeltaError) as error:
        raise LakeError(f"cannot upgrade the lake {lake.path}: {reason(error)}") from None
    return Upgraded(sum(map(len, done.values())), sum(part.rows for part in done["sources"]))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """As processes of release 0.1.0 lock it while they write."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _check(folder: Path) -> None:
    facts = json.loads((folder / HEAD).read_text("utf-8"))
    version = facts.get("schema") if isinstance(facts, dict) else None
    if version != 2:
        raise LakeError(f"{folder} is a lake of schema {version}: use the release that wrote it")


def _old_parts(folder: Path) -> Iterator[tuple[str, str, dict[str, str]]]:
    """The table, the path and the partition of each valid part."""
    tables = {
        name: DeltaTable(str(folder / name))
        for name in shape.SCHEMAS
        if DeltaTable.is_deltatable(str(folder / name))
    }
    found = {
        f"{name}/{unquote(path)}": name
        for name, table in tables.items()
        for path in pa.table(table.get_add_actions())["path"].to_pylist()
    }
    for commit in sorted((folder / "recent").glob("*.json")):  # some tables may lack these
        for part in json.loads(commit.read_text("utf-8")):
            table = tables.get(part["table"])
            if table is None or table.transaction_version(commit.stem) is None:
                found[part["path"]] = part["table"]
    for path, name in found.items():
        keys = (each.partition("=") for each in path.split("/")[1:-1])
        yield name, path, {key: unquote(text) for key, _, text in keys}


def _moved(lake: LakeFiles, table: str, path: str, keys: dict[str, str]) -> list[Part]:
    """The parts that have the rows of an old one."""
    source, scenario = Path(lake.path, path), keys.get("scenario", "")
    if table == "rows" and scenario == shape.LIVE:
        with pq.ParquetFile(source) as file:
            tables = (_as_now(table, pa.Table.from_batches([each])) for each in file.iter_batches())
            return write_rows(lake, scenario, source.stem, tables)
    if table in ("results", "verdicts"):
        rows = _as_now(table, pq.read_table(source, partitioning=None))
        return [lake.write(table, scenario, source.stem, rows)]
    path = lake.new_path(table, scenario, source.stem)
    target = Path(lake.path, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copyfile(source, target)
    facts = pq.read_metadata(target)
    return [Part(table, path, facts.num_rows, target.stat().st_size, statistics(facts))]


def _as_now(table: str, rows: pa.Table) -> pa.Table:
    """Rows with the columns of today."""
    columns: dict[str, Any] = {}
    for field in shape.SCHEMAS[table]:
        old = _OLD_NAMES.get(field.name, field.name)
        has = old in rows.column_names
        columns[field.name] = rows[old] if has else pa.nulls(rows.num_rows, field.type)
    return pa.table(columns).cast(shape.SCHEMAS[table])
