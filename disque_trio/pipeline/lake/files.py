"""The files of a lake, which every machine writes; they are valid once `store` has committed them.

A lake is a folder on storage that all who use it share:

    lake.json                            which layout it has
    TABLE/_delta_log/                    what is valid in a table, as Delta Lake keeps it
    TABLE/scenario=NAME/PART.parquet     the tables: rows, traces, verdicts, results; and sources,
                                         which has no scenarios
    recent/ID.json                       a commit that some of its tables may lack
    sweeps.lock                          locked while a sweep commits
    derived/VIEW-KEY.parquet             rows of a view, which can be computed again (`derived`)
"""

import json
import os
import re
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from disque_trio.pipeline.errors import PipelineError
from disque_trio.pipeline.lake.shape import SCHEMAS, TABLES
from disque_trio.pipeline.location import local_path

LAYOUT: Final = 2
"""The version of the folder. An unknown version is refused."""
HEAD: Final = "lake.json"
SWEEPS: Final = "sweeps.lock"
DERIVED: Final = "derived"
DRAFT: Final = ".writing-"
"""How the names of files begin that are not whole."""


class LakeError(PipelineError):
    """A lake that cannot be read or written, and why."""


@attrs.frozen
class Part:
    """One file of a table."""

    table: str
    path: str
    """Within the lake."""
    rows: int


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
    """The folder of a lake that is there."""

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def open(cls, path: str) -> Self:
        """The lake at a path. Raises `LakeError`."""
        path = local_path(path)
        try:
            found = json.loads(Path(path, HEAD).read_text("utf-8"))
        except FileNotFoundError:
            raise LakeError(
                f"{path} is no lake: it has no {HEAD}; 'disque-trio pipeline ingest' makes one"
            ) from None
        except (OSError, ValueError) as error:
            raise LakeError(f"cannot open the lake {path}: {reason(error)}") from None
        version = found.get("schema") if isinstance(found, dict) else None
        if version != LAYOUT:
            help = _WITHOUT_TABLES if version == 1 else _UNKNOWN
            raise LakeError(f"{path} is a lake of schema {version}, {help}")
        return cls(path)

    def write(self, table: str, scenario: str, name: str, content: pa.Table) -> Part:
        """Write a part, which is not valid yet. One of the same name is replaced."""
        with self.part(table, scenario, name, content.schema) as writer:
            writer.write_table(content)
        return writer.done

    def part(self, table: str, scenario: str, name: str, schema: pa.Schema) -> "PartWriter":
        """A part to be written bit by bit."""
        if table not in SCHEMAS:
            raise LakeError(f"a lake has no table {table}")
        folder = f"/scenario={quote(scenario or 'unnamed', safe=' ')}" if table in TABLES else ""
        return self.part_at(table, f"{table}{folder}/{name}.parquet", schema)

    def part_at(self, table: str, path: str, schema: pa.Schema) -> "PartWriter":
        """The same, at a path within the lake."""
        return PartWriter(self.path, table, path, schema)

    def where(self, part: Part) -> str:
        """The path of a part."""
        return str(Path(self.path, part.path))


_UNKNOWN: Final = (
    f"this program knows {LAYOUT}: use the release that wrote it, or ingest its sources into a new "
    "lake"
)
_WITHOUT_TABLES: Final = "without Delta tables: 'disque-trio pipeline upgrade LAKE' makes them"


class PartWriter:
    """Writes one part under another name; it gets its own once it is whole."""

    def __init__(self, lake: str, table: str, path: str, schema: pa.Schema) -> None:
        self._lake, self._table, self._path, self._schema = lake, table, path, schema
        self._rows = 0
        self._target = Path(lake, path)
        self._draft = self._target.with_name(f"{DRAFT}{uuid.uuid4().hex}")

    @property
    def done(self) -> Part:
        """What was written."""
        return Part(self._table, self._path, self._rows)

    def __enter__(self) -> "PartWriter":
        try:
            self._target.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._draft, self._schema, compression="zstd")
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
        try:
            self._writer.close()
            if kind is None:
                sync(self._draft)
                os.replace(self._draft, self._target)
                sync(self._target.parent)
        except OSError as error:
            raise self._failed(error) from None
        finally:
            self._draft.unlink(missing_ok=True)

    def _failed(self, error: OSError) -> LakeError:
        return LakeError(f"cannot write to the lake {self._lake}: {reason(error)}")


def write_whole(path: Path, content: Any, *, keeps: bool = False) -> None:
    """JSON under its name completely, or not at all. `keeps` what is there: others may have locked
    it. Raises `LakeError`."""
    draft = path.with_name(f"{DRAFT}{uuid.uuid4().hex}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            json.dump(content, file, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        if keeps:
            _link(draft, path)
        else:
            os.replace(draft, path)
        sync(path.parent)
    except OSError as error:
        raise LakeError(f"cannot write {path}: {reason(error)}") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _link(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        os.replace(draft, path)


def sync(path: Path) -> None:
    """Of a file or a folder: what was written outlives the machine."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def reason(error: Exception) -> str:
    """What went wrong on one line, as the operating system says it if it was asked."""
    said = getattr(error, "strerror", None) or _COLOURS.sub("", str(error))
    return ": ".join(filter(None, (line.strip(" ↳") for line in said.splitlines())))


_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
