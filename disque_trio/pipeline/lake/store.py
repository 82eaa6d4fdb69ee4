"""The commits of a lake: what is valid in it, whatever is killed and when.

A lake is one Delta table, and each change is one of its transactions, which object stores carry out
by conditional put. Who must not add what another adds at the same time (`INGESTING`, `SWEEPING`)
names what he does: of two such commits over the same version Delta refuses the later one, which is
then made anew over what is there. A process that dies leaves parts that a later compaction removes.

<https://github.com/delta-io/delta/blob/master/PROTOCOL.md>
"""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self
from urllib.parse import unquote

import attrs
import pyarrow as pa
import pyarrow.fs as pf
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from disque_trio.pipeline.lake import upgrade
from disque_trio.pipeline.lake.files import (
    LOG,
    LakeError,
    LakeFiles,
    Part,
    Source,
    is_local,
    no_lake,
    reason,
    relation_of,
)
from disque_trio.pipeline.lake.shape import PARTITIONS, SCHEMAS, SOURCES, whole
from disque_trio.pipeline.location import lake_path

INGESTING: Final = "disque-trio-ingest"
SWEEPING: Final = "disque-trio-sweep"
_NAME: Final = "disque-trio"
_LAYOUT: Final = "schema 3"
_SETTINGS: Final = {"delta.logRetentionDuration": "interval 7 days"}
_COLUMNS: Final = ("path", "num_records", "size_bytes")
_HARMLESS: Final = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""Features of readers that change neither which rows of a file count nor what its columns are."""

Snapshot = dict[str, list[Part]]
"""The parts of all tables at one time, by table, oldest first."""


@attrs.frozen
class Version:
    """A lake at one time."""

    table: DeltaTable
    parts: Snapshot


class Lake(LakeFiles):
    """A lake that is there."""

    @classmethod
    def open(cls, path: str, *, create: bool = False) -> Self:
        """The lake at a path or address. One of release 0.1.0 is upgraded. Raises `LakeError`."""
        path = lake_path(path)
        lake = cls(path)
        if is_local(path) and Path(path, upgrade.HEAD).exists():
            upgrade.upgrade(lake, lake.fill)
        with lake.explained():
            if not DeltaTable.is_deltatable(path):
                if not create:
                    raise no_lake(path)
                lake.create()
        lake._checked()
        return lake

    def create(self) -> None:
        """Make the table. Whoever does the same at this moment is in nobody's way."""
        entries = self.storage.get_file_info(pf.FileSelector("", allow_not_found=True))
        for name in (entry.base_name for entry in entries):
            if name != LOG and not name.startswith("relation="):
                raise LakeError(f"{self.path} is not a lake, and not empty: it has {name}")
        self.make()

    def make(self) -> None:
        """The same, beside what is there."""
        try:
            DeltaTable.create(
                self.path, whole(), mode="ignore", partition_by=list(PARTITIONS), name=_NAME,
                description=_LAYOUT, configuration=_SETTINGS,
            )  # fmt: skip
        except DeltaError:
            if not DeltaTable.is_deltatable(self.path):  # another has just made it
                raise

    def fill(self, doing: str, find: Callable[[], list[Part]]) -> Snapshot:
        """Make the table of these parts, unless a commit of this name has, and say what it has."""
        self.make()
        version = self.now()
        if version.table.transaction_version(doing) is None:
            self.commit(find(), (), version, doing)
        return self.snapshot()

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Raise what Delta and the storage say as `LakeError`."""
        try:
            yield
        except (DeltaError, OSError) as error:
            raise LakeError(f"cannot use the lake {self.path}: {reason(error)}") from None

    # Reading.

    def _checked(self) -> DeltaTable:
        """The table. Its parts are read as they are, so no feature may say that some of their rows
        do not count, or that their columns have other names."""
        with self.explained():
            table = DeltaTable(self.path)
            protocol, facts = table.protocol(), table.metadata()
        if (facts.name, facts.description) != (_NAME, _LAYOUT):
            raise LakeError(
                f"{self.path} is not a lake of {_LAYOUT}, as this program expects, but "
                f"'{facts.name}', '{facts.description}': use the release that wrote it"
            )
        unknown = set(protocol.reader_features or ()) - _HARMLESS
        if protocol.min_reader_version not in (1, 3) or unknown:
            needs = ", ".join(sorted(unknown)) or f"reader version {protocol.min_reader_version}"
            raise LakeError(
                f"the lake {self.path} needs {needs} of Delta, which another program has "
                "enabled: copy its rows into a table without it"
            )
        return table

    def now(self) -> Version:
        """The lake as it is now. Raises `LakeError`, also if a part is not there."""
        table = self._checked()
        with self.explained():
            found = pa.table(table.get_add_actions())
            in_order = found.sort_by([("modification_time", "ascending"), ("path", "ascending")])
            columns = [in_order[each].to_pylist() for each in _COLUMNS]
            parts: Snapshot = {name: [] for name in SCHEMAS}
            for path, *numbers in zip(*columns, strict=True):
                relation = relation_of(path)
                parts[relation].append(Part(relation, unquote(path), *numbers))
            paths = [part.path for some in parts.values() for part in some]
            for entry in self.storage.get_file_info(paths) if is_local(self.path) else ():
                if entry.type == pf.FileType.NotFound:
                    raise LakeError(f"{self.path} is damaged: {entry.path} is missing")
        return Version(table, parts)

    def snapshot(self) -> Snapshot:
        """The parts of all tables that are valid now. Raises `LakeError`."""
        return self.now().parts

    def parts(self, table: str) -> list[Part]:
        """The parts of a table that are valid now. Raises `LakeError`."""
        return self.snapshot()[table]

    def sources(self, version: Version | None = None) -> list[Source]:
        """Everything that had been ingested then, or has been now. Raises `LakeError`."""
        parts = (version or self.now()).parts["sources"]
        return [Source(**row) for part in parts for row in self.read(part).to_pylist()]

    # Writing.

    def commit(
        self,
        parts: Sequence[Part],
        sources: Sequence[Source] = (),
        over: Version | None = None,
        doing: str = "",
    ) -> bool:
        """Make these parts valid, and these files known. False, and nothing of it, if another has
        been `doing` the same since that version. Raises `LakeError`."""
        if sources:
            rows = pa.Table.from_pylist([attrs.asdict(each) for each in sources], schema=SOURCES)
            parts = [*parts, self.write("sources", "", uuid.uuid4().hex[:16], rows)]
        return not parts or self._committed(parts, over or self.now(), doing)

    def _committed(self, parts: Iterable[Part], over: Version, doing: str) -> bool:
        now = time.time_ns() // 1_000_000
        actions = [
            AddAction(part.path, part.size, part.keys, now, True, part.stats) for part in parts
        ]
        marks = [Transaction(doing, over.table.version() + 1)] if doing else None
        with self.explained():
            try:
                over.table.create_write_transaction(
                    actions, "append", whole(), list(PARTITIONS),
                    commit_properties=CommitProperties(app_transactions=marks),
                )  # fmt: skip
            except CommitFailedError:
                if not doing or not self._has_been(doing, over):
                    raise
                return False
        return True

    def _has_been(self, doing: str, since: Version) -> bool:
        before, after = since.table.transaction_version, DeltaTable(self.path).transaction_version
        return bool(before(doing) != after(doing))


__all__ = ["Lake", "LakeError", "Part", "Source"]
