"""Keeps the rows of views beside a lake, so that the next session need not compute them again.

`derived/VIEW-KEY.parquet` has the rows of a view. The key is a digest of the SQL and of the names
of all parts of the lake, which never change once they are written; so a file is never out of date,
and any other is not looked at. Nothing needs these files: they may be removed at any time.
"""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from disque_trio.pipeline.lake.files import DERIVED, LakeError, LakeFiles
from disque_trio.pipeline.lake.store import Snapshot


def key(snapshot: Snapshot, sql: str) -> str:
    """What the rows of a view depend on: `sql` is that of the view and of all that it uses."""
    parts = {table: sorted(part.path for part in parts) for table, parts in snapshot.items()}
    content = json.dumps([parts, sql], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def read(lake: LakeFiles, view: str, key: str) -> pa.Table | None:
    """The kept rows of a view; None if there are none that can be read."""
    try:
        return pq.read_table(Path(lake.path, DERIVED, f"{view}-{key}.parquet"))
    except (OSError, pa.ArrowException):
        return None


def keep(lake: LakeFiles, view: str, key: str, rows: pa.Table) -> None:
    """Keep the rows of a view in place of earlier ones, if the lake can be written to."""
    name = f"{view}-{key}"
    try:
        with lake.part_at(DERIVED, f"{DERIVED}/{name}.parquet", rows.schema) as writer:
            writer.write_table(rows)
    except LakeError:  # such as a lake that may only be read
        return
    for path in Path(lake.path, DERIVED).glob(f"{view}-*.parquet"):
        if path.stem != name:
            with suppress(OSError):
                path.unlink()
