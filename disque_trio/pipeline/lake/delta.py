"""A table of a lake as a Delta table, which DuckDB, Polars and Spark with Delta open, too.

<https://github.com/delta-io/delta/blob/master/PROTOCOL.md>
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import attrs
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from disque_trio.pipeline.lake.files import LakeError, LakeFiles, Part, reason, sync
from disque_trio.pipeline.lake.shape import LATER, SCHEMAS, TABLES, plain

LOG: Final = "_delta_log"
_MERGE: Final = "disque-trio-merge"
"""The application whose transactions are merges: of two at once, one fails."""
_TRIES: Final = 10
_HARMLESS: Final = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""Features of readers that change neither which rows of a file count nor what its columns are."""


@attrs.frozen
class Version:
    """A table at one time."""

    number: int
    parts: tuple[Part, ...]
    """Oldest first."""
    table: DeltaTable | None
    """None of a table that an earlier release has not made (`shape.LATER`)."""

    def has(self, id: str) -> bool:
        """Is the commit of this name in it?"""
        return self.table is not None and self.table.transaction_version(id) is not None


class DeltaFiles:
    """One table of a lake."""

    def __init__(self, lake: LakeFiles, name: str) -> None:
        self._lake, self._name = lake, name
        self._uri = str(Path(lake.path, name))
        self._schema = delta_schema(name)
        self._keys = ["scenario"] if name in TABLES else []

    def create(self) -> None:
        """Make the table unless it is there. Raises `LakeError`."""
        if DeltaTable.is_deltatable(self._uri):
            return
        with self._said():
            try:
                DeltaTable.create(
                    self._uri, self._schema, mode="ignore", partition_by=self._keys, name=self._name
                )
            except DeltaError:
                if not DeltaTable.is_deltatable(self._uri):  # another has just made it
                    raise

    def read(self) -> Version:
        """The table as it is now. Raises `LakeError`."""
        if self._is_to_come():
            return Version(-1, (), None)
        with self._said():
            table = DeltaTable(self._uri)
            self._check(table)
            found = pa.table(table.get_add_actions())
        in_order = found.sort_by([("modification_time", "ascending"), ("path", "ascending")])
        paths, rows = (in_order.column(each).to_pylist() for each in ("path", "num_records"))
        parts = [
            Part(self._name, f"{self._name}/{unquote(path)}", count)
            for path, count in zip(paths, rows, strict=True)
        ]
        return Version(table.version(), tuple(parts), table)

    def add(self, id: str, parts: Sequence[Part]) -> None:
        """Make parts valid by a commit of this name, which is made once however often it is tried.
        Raises `LakeError`."""
        failure = ""
        if self._is_to_come():
            self.create()
        for _ in range(_TRIES):
            version = self.read()
            if version.has(id):
                return
            actions = [self._added(part) for part in parts]
            failure = self._commit(version, Transaction(id, 1), actions)
            if not failure:
                return
        raise self._failed(failure)

    def replace(self, version: Version, removed: Sequence[Part], added: Sequence[Part]) -> None:
        """Put parts in the place of others that have the same rows. Raises `LakeError`."""
        now = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [self._added(part, new=False) for part in added]
        for part in removed:
            path = self._within(part)
            actions.append(RemoveAction(path, False, now, partition_values=self._values(part)))
        failure = self._commit(version, Transaction(_MERGE, version.number + 1), actions)
        if failure and self.read().number == version.number:
            raise self._failed(failure)
        if failure:
            raise LakeError(f"{self._lake.path} is being compacted by another: {self._name}")

    def vacuum(self, hours: int) -> int:
        """Remove files that the table has not named for so long. How many there were. Raises
        `LakeError`."""
        if self._is_to_come():
            return 0
        before = self._count()
        with self._said():
            DeltaTable(self._uri).vacuum(
                hours, dry_run=False, enforce_retention_duration=False, full=True
            )
        return before - self._count()

    def _is_to_come(self) -> bool:
        return self._name in LATER and not DeltaTable.is_deltatable(self._uri)

    def _count(self) -> int:
        files = Path(self._uri).rglob("*")
        return sum(1 for path in files if LOG not in path.parts and path.is_file())

    def _check(self, table: DeltaTable) -> None:
        """Its parts are read as they are, so no feature may say that some of their rows do not
        count, or that their columns have other names."""
        protocol = table.protocol()
        unknown = set(protocol.reader_features or ()) - _HARMLESS
        if protocol.min_reader_version not in (1, 3) or unknown:
            needs = ", ".join(sorted(unknown)) or f"reader version {protocol.min_reader_version}"
            raise LakeError(
                f"the table {self._name} of the lake {self._lake.path} needs {needs} of Delta, "
                "which another program has turned on: copy its rows into a table without it"
            )

    def _commit(
        self,
        version: Version,
        transaction: Transaction,
        actions: Sequence[AddAction | RemoveAction],
    ) -> str:
        """Why not; empty if it is made. Maybe another has made a commit of this transaction since
        the version was read."""
        assert version.table is not None
        with self._said():
            try:
                version.table.create_write_transaction(
                    list(actions),
                    "append",
                    self._schema,
                    self._keys,
                    commit_properties=CommitProperties(app_transactions=[transaction]),
                )
            except CommitFailedError as error:
                return reason(error)
            self._sync(version.number)
        return ""

    def _sync(self, since: int) -> None:
        number = since + 1
        while (log := self._log(number)).exists():
            sync(log)
            number += 1
        sync(log.parent)

    def _log(self, number: int) -> Path:
        return Path(self._uri, LOG, f"{number:020d}.json")

    def _failed(self, why: str) -> LakeError:
        return LakeError(f"cannot write to the table {self._name} of {self._lake.path}: {why}")

    def _added(self, part: Part, *, new: bool = True) -> AddAction:
        try:
            size = os.path.getsize(self._lake.where(part))
        except OSError as error:
            raise self._failed(f"{part.path}: {reason(error)}") from None
        return AddAction(
            self._within(part),
            size,
            self._values(part),
            time.time_ns() // 1_000_000,
            new,
            json.dumps({"numRecords": part.rows}),
        )

    def _within(self, part: Part) -> str:
        return part.path.removeprefix(f"{self._name}/")

    def _values(self, part: Part) -> dict[str, str | None]:
        folder = part.path.split("/")[1]
        return {"scenario": unquote(folder.partition("=")[2])} if self._keys else {}

    @contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError) as error:
            said = f"the table {self._name} of the lake {self._lake.path}"
            raise LakeError(f"cannot use {said}: {reason(error)}") from None


def delta_schema(name: str) -> pa.Schema:
    """A table's columns as Delta names their types, which knows no dictionaries."""
    return pa.schema(
        [*plain(SCHEMAS[name]), *([("scenario", pa.string())] if name in TABLES else [])]
    )
