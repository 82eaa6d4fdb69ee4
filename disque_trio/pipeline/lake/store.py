"""The commits of a lake: what is valid in its tables, whatever is killed and when.

Each table is a Delta table (`delta`), whose commits count as a whole or not at all. A commit that
may concern several tables is first written as one file under `recent`, and counts from then on:
whoever reads the lake adds its parts to those of the tables that lack it, and whoever commits next
brings it into them. The file stays for `_KEPT_S`, so a reader that has seen a commit in one of the
tables only finds it there. A process that dies before leaves parts that a later compaction removes.
"""

import fcntl
import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from disque_trio.pipeline.lake import files
from disque_trio.pipeline.lake.delta import DeltaFiles, Version
from disque_trio.pipeline.lake.files import LakeError, LakeFiles, Part, Source, reason
from disque_trio.pipeline.lake.shape import SCHEMAS, SOURCES
from disque_trio.pipeline.location import local_path

_RECENT: Final = "recent"
_KEPT_S: Final = 60.0
"""How long the file of a commit stays that all tables have."""
_LOOKS: Final = 10
"""So often a reader begins again that was slower than that."""

Snapshot = dict[str, list[Part]]
"""The parts of all tables at one time, by table, oldest first."""
Recent = dict[str, list[Part]]
"""The parts of commits that some tables may lack, by their id, oldest first."""


class Lake(LakeFiles):
    """A lake that is there."""

    @classmethod
    def open(cls, path: str, *, create: bool = False) -> Self:
        """The lake at a path. Raises `LakeError`."""
        path = local_path(path)
        try:
            if create and not Path(path, files.HEAD).exists():
                _create(Path(path))
        except OSError as error:
            raise LakeError(f"cannot open the lake {path}: {reason(error)}") from None
        return super().open(path)

    def table(self, name: str) -> DeltaFiles:
        """One of its tables."""
        return DeltaFiles(self, name)

    # Writing.

    def commit(self, parts: Sequence[Part], sources: Sequence[Source] = ()) -> None:
        """Make these parts valid, and these files known. Raises `LakeError`."""
        id = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}"
        if sources:
            rows = pa.Table.from_pylist([attrs.asdict(each) for each in sources], schema=SOURCES)
            parts = [*parts, self.write("sources", "", id, rows)]
        if parts:
            content = [attrs.asdict(part) for part in parts]
            files.write_whole(self._recent_file(id), content)
            self.finish()

    def finish(self) -> None:
        """Bring recent commits into the tables that lack them. Raises `LakeError`."""
        recent = self._recent()
        versions = self._versions()
        for id, parts in recent.items():
            for name, version in versions.items():
                mine = [part for part in parts if part.table == name]
                if mine and not version.has(id):
                    self.table(name).add(id, mine)
            with suppress(FileNotFoundError):  # another has just done the same
                path = self._recent_file(id)
                if path.stat().st_mtime <= time.time() - _KEPT_S:
                    path.unlink()

    @contextmanager
    def locked(self, name: str = files.HEAD) -> Iterator[None]:
        """Do alone what takes this lock, and wait for it. That of the head is for ingestions and
        compactions."""
        try:
            file = os.open(Path(self.path, name), os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise LakeError(f"cannot lock the lake {self.path}: {reason(error)}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.finish()
            yield
        finally:
            os.close(file)

    # Reading.

    def snapshot(self, names: Iterable[str] = SCHEMAS) -> Snapshot:
        """The parts of these tables that are valid now. Raises `LakeError`, also if one of them is
        not there."""
        names = tuple(names)
        for _ in range(_LOOKS):
            begun, before = time.monotonic(), self._recent()
            versions = self._versions(names)
            after = self._recent()
            if time.monotonic() < begun + _KEPT_S / 2:
                break  # a commit that came and went meanwhile has no old file yet
        else:
            raise LakeError(f"the lake {self.path} is too slow: its tables are not read in time")
        found = {name: {part.path: part for part in versions[name].parts} for name in versions}
        for id, parts in {**before, **after}.items():
            for part in parts:
                if part.table in versions and not versions[part.table].has(id):
                    found[part.table][part.path] = part
        for part in (part for parts in found.values() for part in parts.values()):
            if not Path(self.where(part)).exists():
                raise LakeError(f"{self.path} is damaged: {part.path} is missing")
        return {name: list(parts.values()) for name, parts in found.items()}

    def _versions(self, names: Iterable[str] = SCHEMAS) -> dict[str, Version]:
        return {name: self.table(name).read() for name in names}

    def parts(self, table: str) -> list[Part]:
        """The parts of a table that are valid now. Raises `LakeError`."""
        return self.snapshot([table])[table]

    def sources(self) -> list[Source]:
        """Everything that has been ingested. Raises `LakeError`."""
        found = [pq.read_table(self.where(part)) for part in self.parts("sources")]
        return [Source(**row) for table in found for row in table.to_pylist()]

    def _recent(self) -> Recent:
        found: Recent = {}
        for path in sorted(Path(self.path, _RECENT).glob("*.json")):
            with suppress(FileNotFoundError):  # all tables have it
                found[path.stem] = _read_commit(path)
        return found

    def _recent_file(self, id: str) -> Path:
        return Path(self.path, _RECENT, f"{id}.json")

    # Removing.

    def remove_drafts(self, age_s: float) -> int:
        """Remove what processes have left that died while they wrote. How many files."""
        until, removed = time.time() - age_s, 0
        # Below folders of scenarios, Delta looks.
        for folder in ("", _RECENT, "sources", files.DERIVED):
            for path in Path(self.path, folder).glob(f"{files.DRAFT}*"):
                with suppress(FileNotFoundError):
                    if path.stat().st_mtime <= until:
                        path.unlink()
                        removed += 1
        return removed


def _read_commit(path: Path) -> list[Part]:
    try:
        return [Part(**each) for each in json.loads(path.read_text("utf-8"))]
    except FileNotFoundError:
        raise
    except (OSError, ValueError, TypeError) as error:
        raise LakeError(f"the lake is damaged: {path}: {reason(error)}") from None


def _create(path: Path) -> None:
    """Whoever does the same at this moment, or has died of it, is in nobody's way."""
    path.mkdir(parents=True, exist_ok=True)
    ours = {files.HEAD, _RECENT, *SCHEMAS}
    for name in (each.name for each in path.iterdir()):
        if name not in ours and not name.startswith(files.DRAFT):
            if Path(path, files.HEAD).exists():  # made, and used, since it was looked for
                return
            raise LakeError(f"{path} is no lake, and not empty either: there is {name} in it")
    make(path)
    files.write_whole(Path(path, files.HEAD), {"schema": files.LAYOUT}, keeps=True)


def make(path: Path) -> Lake:
    """The tables of a lake that has no head yet. Raises `LakeError`."""
    Path(path, _RECENT).mkdir(exist_ok=True)
    lake = Lake(str(path))
    for name in SCHEMAS:
        lake.table(name).create()
    return lake


__all__ = ["Lake", "LakeError", "Part", "Source"]
