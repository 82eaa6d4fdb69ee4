"""Keeps the rows of views in a lake, so that the next session need not compute them again.

`_derived/VIEW-KEY.parquet` has the rows of a view. The key is a digest of the SQL and of the names
of all parts of the lake, which never change once they are written; so a file is never out of date,
and any other is not looked at. Nothing needs these files: they may be removed at any time.
"""

import hashlib
import json
from contextlib import suppress

import pyarrow as pa
import pyarrow.fs as pf
import pyarrow.parquet as pq

from disque_trio.pipeline.lake.files import LakeFiles, open_new
from disque_trio.pipeline.lake.store import Snapshot

FOLDER = "_derived"


def key(snapshot: Snapshot, sql: str) -> str:
    """What the rows of a view depend on: `sql` is that of the view and of all that it uses."""
    parts = {table: sorted(part.path for part in parts) for table, parts in snapshot.items()}
    content = json.dumps([parts, sql], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def read(lake: LakeFiles, view: str, key: str) -> pa.Table | None:
    """The kept rows of a view; None if there are none that can be read."""
    try:
        return pq.read_table(_path(view, key), filesystem=lake.storage)
    except (OSError, pa.ArrowException):
        return None


def keep(lake: LakeFiles, view: str, key: str, rows: pa.Table) -> None:
    """Keep the rows of a view in place of earlier ones, if the lake can be written to."""
    with suppress(OSError):  # such as of a lake that may only be read
        with open_new(lake, _path(view, key)) as file:
            pq.write_table(rows, file)
        for entry in lake.storage.get_file_info(pf.FileSelector(FOLDER)):
            if (
                entry.base_name.startswith(f"{view}-")
                and entry.base_name != f"{view}-{key}.parquet"
            ):
                lake.storage.delete_file(entry.path)


def _path(view: str, key: str) -> str:
    return f"{FOLDER}/{view}-{key}.parquet"
