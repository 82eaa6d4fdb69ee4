"""The files of a lake, which every machine writes; they are valid once `store` has committed them.

A lake is a folder on storage that all who use it share, or in an object store:

    _delta_log/                  what is valid, as Delta Lake keeps it
    relation=TABLE/scenario=NAME/cluster=NAME/date=DAY/PART.parquet
"""

import datetime
import json
import re
import uuid
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote, unquote

import attrs
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pf
import pyarrow.parquet as pq

from disque_trio.pipeline.errors import PipelineError
from disque_trio.pipeline.lake.shape import PARTITIONS, SCHEMAS, stored
from disque_trio.pipeline.location import lake_path

LOG: Final = "_delta_log"
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_LONGEST: Final = 64
"""Characters of a text that is kept as the least or greatest of a file."""
_EPOCH: Final = datetime.date(1970, 1, 1)


class LakeError(PipelineError):
    """A lake that cannot be read or written, and why."""


@attrs.frozen
class Part:
    """One file of a table."""

    table: str
    path: str
    """Within the lake."""
    rows: int
    size: int = attrs.field(default=0, eq=False)
    stats: str = attrs.field(default="", eq=False)
    """What Delta stores about its columns. Of a part that is valid already it is empty."""

    @property
    def keys(self) -> dict[str, str | None]:
        """The values of its partitions."""
        pairs = (each.split("=", 1) for each in self.path.split("/")[:-1])
        return {name: None if text == _NULL else unquote(text) for name, text in pairs}


@attrs.frozen(kw_only=True)
class Source:
    """A file that has been ingested, as far as it went then."""

    name: str
    head: str
    """SHA-256 of its first line; of a table, of all of it."""
    sha256: str
    """Of its first `size` bytes."""
    size: int
    run: str
    rows: int


class LakeFiles:
    """A lake that is there. Executors use it: where lakes are in folders, they need no Delta."""

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def open(cls, path: str) -> Self:
        """The lake at a path or address. Raises `LakeError`."""
        path = lake_path(path)
        if is_local(path) and not Path(path, LOG).is_dir():
            raise no_lake(path)
        return cls(path)

    @property
    def storage(self) -> pf.FileSystem:
        """The storage, whose paths begin in the lake."""
        return _storage(self.path)

    def write(self, table: str, scenario: str, name: str, content: pa.Table) -> Part:
        """Write a part, which is not valid yet."""
        with PartWriter(self, self.new_path(table, scenario, name)) as writer:
            writer.write_table(content)
        return writer.done

    def new_path(
        self,
        table: str,
        scenario: str,
        name: str,
        cluster: str | None = None,
        date: str | None = None,
    ) -> str:
        """A path in the lake that no other part has; its name begins as is given."""
        if table not in SCHEMAS:
            raise LakeError(f"a lake has no table {table}")
        keys = (table, None if table == "sources" else scenario or "unnamed", cluster, date)
        texts = (_NULL if text is None else quote(text, safe=" ") for text in keys)
        folders = (f"{key}={text}" for key, text in zip(PARTITIONS, texts, strict=True))
        return f"{'/'.join(folders)}/{name}-{uuid.uuid4().hex[:8]}.parquet"

    def read(self, part: Part, columns: list[str] | None = None) -> pa.Table:
        """The rows of a part. Raises `LakeError`."""
        try:
            return self.dataset(part.table, [part]).to_table(columns)
        except (OSError, pa.ArrowException) as error:
            raise LakeError(f"{self.where(part)}: {reason(error)}") from None

    def dataset(self, table: str, parts: Iterable[Part]) -> ds.Dataset:
        """These parts of a table, with the columns of its partitions."""
        return ds.dataset(
            [part.path for part in parts],
            stored(table),
            "parquet",
            self.storage,
            ds.HivePartitioning(pa.schema(PARTITIONS.items())),
        )

    def where(self, part: Part) -> str:
        """The path or the address of a part."""
        return f"{self.path}/{part.path}"


def no_lake(path: str) -> LakeError:
    """The error where there is none."""
    return LakeError(
        f"{path} is not a lake: it has no {LOG}; 'disque-trio pipeline ingest' creates one"
    )


def relation_of(path: str) -> str:
    """The table that the part at this path is of."""
    return path.partition("/")[0].partition("=")[2]


def is_local(path: str) -> bool:
    """Is it no address in an object store?"""
    return "://" not in path


@cache
def _storage(path: str) -> pf.FileSystem:
    if is_local(path):
        return pf.SubTreeFileSystem(path, pf.LocalFileSystem())
    return pf.PyFileSystem(import_module("deltalake.fs").DeltaStorageHandler(path))


class PartWriter:
    """Writes one part bit by bit, at a new path of the lake."""

    def __init__(self, lake: LakeFiles, path: str) -> None:
        self._lake, self._path = lake, path
        self._table = relation_of(path)
        self._rows = self._size = 0
        self._metadata: list[pq.FileMetaData] = []

    @property
    def done(self) -> Part:
        """What was written."""
        return Part(self._table, self._path, self._rows, self._size, statistics(*self._metadata))

    def __enter__(self) -> "PartWriter":
        try:
            self._file = open_new(self._lake, self._path)
            self._writer = pq.ParquetWriter(
                self._file, SCHEMAS[self._table], compression="zstd",
                metadata_collector=self._metadata,
            )  # fmt: skip
        except OSError as error:
            raise self._failed(error) from None
        return self

    def write_table(self, content: pa.Table) -> None:
        """Add some rows."""
        try:
            self._writer.write_table(content)
        except OSError as error:
            raise self._failed(error) from None
        self._rows += content.num_rows

    def __exit__(self, kind: object, *_: object) -> None:
        is_whole = False
        try:
            if kind is None:
                self._writer.close()
                self._size = self._file.tell()
            self._writer.is_open = False  # no footer for half a file
            self._file.close()
            is_whole = kind is None
        except OSError as error:
            raise self._failed(error) from None
        finally:
            if not is_whole:
                with suppress(OSError):
                    self._lake.storage.delete_file(self._path)

    def _failed(self, error: OSError) -> LakeError:
        return LakeError(f"cannot write to the lake {self._lake.path}: {reason(error)}")


def open_new(lake: LakeFiles, path: str) -> pa.NativeFile:
    """A new file of a lake."""
    if is_local(lake.path):  # object stores have no folders
        lake.storage.create_dir(path.rpartition("/")[0])
    return lake.storage.open_output_stream(path)


def statistics(metadata: pq.FileMetaData) -> str:
    """The least and greatest values of a file's columns, as Delta stores them."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    lows, highs, nulls = dict[str, Any](), dict[str, Any](), dict[str, int]()
    for at in range(metadata.num_columns):
        columns = [group.column(at) for group in groups]
        found = [each.statistics for each in columns if each.statistics is not None]
        if not found or len(found) < len(columns) or "." in columns[0].path_in_schema:
            continue
        name = columns[0].path_in_schema
        nulls[name] = sum(each.null_count for each in found)
        some = [each for each in found if each.has_min_max]
        is_all = all(each.has_min_max or not each.num_values for each in found)
        ends = [end for each in some for end in (each.min, each.max)]
        if ends and is_all and not any(len(end) > _LONGEST for end in ends if isinstance(end, str)):
            lows[name], highs[name] = min(ends), max(ends)
    facts = {"minValues": lows, "maxValues": highs, "nullCount": nulls}
    return json.dumps({"numRecords": metadata.num_rows, **facts}, default=_as_text)


def _as_text(instant: datetime.datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def day_of(days: int) -> str | None:
    """The date so many days after 1970; None if no calendar has it."""
    with suppress(OverflowError):
        return str(_EPOCH + datetime.timedelta(days))
    return None


def reason(error: Exception) -> str:
    """What went wrong on one line, as the operating system or the object store says it if it was
    asked."""
    text = getattr(error, "strerror", None) or _COLOURS.sub("", str(error))
    if message := _MESSAGE.search(text):
        text = message[1]
    if _METADATA in text:
        return (
            "found no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; "
            "~/.aws is read with AWS_FORCE_CREDENTIAL_LOAD=true"
        )
    return ": ".join(filter(None, (line.strip(" ↳") for line in text.splitlines())))


_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_MESSAGE: Final = re.compile(r"<Message>(.+?)</Message>", re.DOTALL)
"""In an answer of an object store, which is XML."""
_METADATA: Final = "Error performing PUT http://169.254.169.254/"
"""How delta-rs begins to ask a machine of Amazon's for credentials, if it has none of its own."""
