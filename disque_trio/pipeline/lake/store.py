"""The folder of a lake, and the commits that name its valid parts.

A lake is a folder on storage that all who use it share:

    lake.json                            which schema the tables have
    commits/ID.json                      what one commit adds, and which commits it stands for
    TABLE/scenario=NAME/PART.parquet     the tables: rows, traces, results

Only parts that a commit names are valid. A commit is written under another name and then renamed,
so it counts as a whole or not at all. A process that dies before leaves parts that the next
compaction removes.
"""

import fcntl
import json
import math
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from disque_trio.pipeline.errors import PipelineError
from disque_trio.pipeline.location import local_path

SCHEMA: Final = 1
"""The version of the tables. An unknown version is refused."""
TABLES: Final = ("rows", "traces", "results")
_HEAD: Final = "lake.json"
_COMMITS: Final = "commits"
_TEMPORARY: Final = ".writing-"
_LOOKS: Final = 10
"""Commits may be forgotten while they are read: so often they are listed again."""


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


@attrs.frozen(kw_only=True)
class Commit:
    """What was added at one time."""

    id: str
    at: int
    """Microseconds since 1970."""
    parts: tuple[Part, ...] = ()
    sources: tuple[Source, ...] = ()
    replaces: tuple[str, ...] = ()
    """Commits whose parts and sources this one has taken over."""


class Lake:
    """A lake that is there."""

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def open(cls, path: str, *, create: bool = False) -> "Lake":
        """The lake at a path. Raises `LakeError`."""
        path = local_path(path)
        head = Path(path, _HEAD)
        try:
            if create and not head.exists():
                _create(Path(path), head)
            found = json.loads(head.read_text("utf-8"))
        except FileNotFoundError:
            raise LakeError(
                f"{path} is no lake: it has no {_HEAD}; 'disque-trio pipeline ingest' makes one"
            ) from None
        except (OSError, ValueError) as error:
            raise LakeError(f"cannot open the lake {path}: {_reason(error)}") from None
        version = found.get("schema") if isinstance(found, dict) else None
        if version != SCHEMA:
            raise LakeError(
                f"{path} is a lake of schema {version}, this program knows {SCHEMA}: "
                "use the release that wrote it, or ingest its sources into a new lake"
            )
        return cls(path)

    # Writing.

    def write(self, table: str, scenario: str, name: str, content: pa.Table) -> Part:
        """Write a part, which no commit names yet. One of the same name is replaced."""
        with self.part(table, scenario, name, content.schema) as writer:
            writer.write_table(content)
        return writer.done

    def part(self, table: str, scenario: str, name: str, schema: pa.Schema) -> "PartWriter":
        """A part to be written bit by bit."""
        if table not in TABLES:
            raise LakeError(f"a lake has no table {table}")
        folder = f"{table}/scenario={quote(scenario or 'unnamed', safe=' ')}"
        return self.part_at(table, f"{folder}/{name}.parquet", schema)

    def part_at(self, table: str, path: str, schema: pa.Schema) -> "PartWriter":
        """The same, at a path within the lake."""
        return PartWriter(self.path, table, path, schema)

    def commit(
        self,
        parts: Sequence[Part],
        sources: Sequence[Source] = (),
        replaces: Sequence[str] = (),
    ) -> Commit:
        """Make these parts valid."""
        at = time.time_ns()
        commit = Commit(
            id=f"{at:020d}-{uuid.uuid4().hex[:8]}",
            at=at // 1_000,
            parts=tuple(parts),
            sources=tuple(sources),
            replaces=tuple(replaces),
        )
        _write_whole(Path(self.path, _COMMITS, f"{commit.id}.json"), attrs.asdict(commit))
        return commit

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Ingest or compact alone: wait for the lock."""
        try:
            file = os.open(Path(self.path, _HEAD), os.O_RDWR)
        except OSError as error:
            raise LakeError(f"cannot lock the lake {self.path}: {_reason(error)}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)

    # Reading.

    def commits(self) -> list[Commit]:
        """The commits that are not replaced, oldest first."""
        found = self._all_commits()
        replaced = _replaced(found)
        return [commit for commit in found if commit.id not in replaced]

    def _all_commits(self) -> list[Commit]:
        """All commits, with those that others have replaced."""
        folder = Path(self.path, _COMMITS)
        for _ in range(_LOOKS):
            with suppress(FileNotFoundError):  # forgotten meanwhile: another has its parts
                return [_read_commit(path) for path in sorted(folder.glob("*.json"))]
        raise LakeError(f"the lake is damaged: there are commits in {folder} that cannot be opened")

    def parts(self, table: str, commits: Sequence[Commit] | None = None) -> list[Part]:
        """The parts of a table that count, or those of these commits. Raises `LakeError` if one of
        them is not there."""
        found: dict[str, Part] = {}
        for commit in self.commits() if commits is None else commits:
            for part in commit.parts:
                if part.table == table:
                    self._check(part, commit)
                    found[part.path] = part  # who is interrupted may commit a part twice
        return list(found.values())

    def sources(self) -> list[Source]:
        """Everything that has been ingested."""
        return [source for commit in self.commits() for source in commit.sources]

    def where(self, part: Part) -> str:
        """The path of a part."""
        return str(Path(self.path, part.path))

    def _check(self, part: Part, commit: Commit) -> None:
        if not Path(self.path, part.path).exists():
            raise LakeError(
                f"{self.path} is damaged: {part.path} is missing, which commit {commit.id} names"
            )

    # Clearing away.

    def strays(self, age_s: float) -> Iterator[Path]:
        """Files of tables that no commit has named for so long, drafts of whoever has died, and
        all older than this."""
        until = time.time() - age_s
        found = self._all_commits()
        replaced = _replaced(found)
        counted = [each for each in found if replaced.get(each.id, math.inf) > until * 1e6]
        named = {part.path for commit in counted for part in commit.parts}
        home = Path(self.path)
        drafts = [*home.glob(f"{_TEMPORARY}*"), *home.glob(f"{_COMMITS}/{_TEMPORARY}*")]
        files = [path for table in TABLES for path in sorted(home.glob(f"{table}/*/*"))]
        for path in [*sorted(drafts), *files]:
            if str(path.relative_to(home)) in named:
                continue
            with suppress(FileNotFoundError):
                if path.stat().st_mtime <= until:
                    yield path

    def forget(self, age_s: float) -> None:
        """Remove commits that another has taken over for so long. A reader that has listed them
        may still look into them."""
        found = self._all_commits()
        replaced = _replaced(found)
        left = {commit.id for commit in found}
        for commit in found:
            # One that is taken over must not outlive the one that says so.
            is_free = left.isdisjoint(commit.replaces)
            if is_free and replaced.get(commit.id, math.inf) <= (time.time() - age_s) * 1e6:
                left.remove(commit.id)
                Path(self.path, _COMMITS, f"{commit.id}.json").unlink(missing_ok=True)


class PartWriter:
    """Writes one part under another name; it gets its own once it is whole."""

    def __init__(self, lake: str, table: str, path: str, schema: pa.Schema) -> None:
        self._lake, self._table, self._path, self._schema = lake, table, path, schema
        self._rows = 0
        self._target = Path(lake, path)
        self._draft = self._target.with_name(f"{_TEMPORARY}{uuid.uuid4().hex}")

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
                _sync(self._draft)
                os.replace(self._draft, self._target)
                _sync(self._target.parent)
        except OSError as error:
            raise self._failed(error) from None
        finally:
            self._draft.unlink(missing_ok=True)

    def _failed(self, error: OSError) -> LakeError:
        return LakeError(f"cannot write to the lake {self._lake}: {_reason(error)}")


def _create(path: Path, head: Path) -> None:
    """Whoever does the same at this moment, or has died of it, is in nobody's way."""
    path.mkdir(parents=True, exist_ok=True)
    for name in (each.name for each in path.iterdir()):
        if name not in {_HEAD, _COMMITS} and not name.startswith(_TEMPORARY):
            if head.exists():  # made, and used, since it was looked for
                return
            raise LakeError(f"{path} is no lake, and not empty either: there is {name} in it")
    Path(path, _COMMITS).mkdir(exist_ok=True)
    _write_whole(head, {"schema": SCHEMA}, keeps=True)


def _write_whole(path: Path, content: Any, *, keeps: bool = False) -> None:
    """All of it under its name, or nothing. `keeps` what is there: others may have locked it."""
    draft = path.with_name(f"{_TEMPORARY}{uuid.uuid4().hex}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            json.dump(content, file, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        if keeps:
            _link(draft, path)
        else:
            os.replace(draft, path)
        _sync(path.parent)
    except OSError as error:
        raise LakeError(f"cannot write {path}: {_reason(error)}") from None
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


def _sync(path: Path) -> None:
    """Of a file or a folder: what was written outlives the machine."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _replaced(commits: Sequence[Commit]) -> dict[str, int]:
    """Those that others have taken over, and since when, in microseconds since 1970."""
    return {id: commit.at for commit in commits for id in commit.replaces}


def _read_commit(path: Path) -> Commit:
    try:
        facts = json.loads(path.read_text("utf-8"))
        return Commit(
            id=facts["id"],
            at=facts["at"],
            parts=tuple(Part(**each) for each in facts["parts"]),
            sources=tuple(Source(**each) for each in facts["sources"]),
            replaces=tuple(facts["replaces"]),
        )
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LakeError(f"the lake is damaged: {path}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
