"""Finds out what a file is, and how much of it the lake has already, before it is read.

A trace of a live node grows. Its beginning is recognised by the digest of what was ingested
before, and only what has been added since is read; of an older copy nothing is new. A simulated
trace, a table and the results of a sweep are recognised as a whole, whatever their names are. A
simulated trace without the row that ends a run is cut off, and is no run.
"""

import hashlib
import json
import mmap
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from disque_trio.pipeline.lake.files import Source
from disque_trio.pipeline.lake.shape import LIVE, RUN_DIGITS
from disque_trio.pipeline.location import local_path
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.scenarios.plan_file import PlanError
from disque_trio.sim.traces.files import PLAN_KIND
from disque_trio.tracing.sampling import sample_of

_BLOCK: Final = 1 << 20
_PLAN_KEY: Final = b"disque_trio.plan"
_TABLES: Final = (".arrow", ".parquet")
_NAME: Final = re.compile(r".*\.(jsonl(\.\d+)?|arrow|parquet)")
"""Nodes rotate `trace.jsonl` to `trace.jsonl.1` and so on."""
_ENDS: Final = ("end", "app.over", "error")
"""The rows that a simulated run may end with: an error of a machine is one."""
_END_LINE: Final = re.compile(rb'"kind": ?"(end|app\.over|error)"')
_CUT_OFF: Final = "the trace of a simulated run is truncated"
LINES: Final = "lines"
TABLE: Final = "table"
RESULTS: Final = "results"


class BadFileError(Exception):
    """A file that is no trace, and why. The others are ingested all the same."""


class NothingYetError(BadFileError):
    """A trace without a whole row, as after a rotation: there is nothing to say about it."""


@attrs.frozen(kw_only=True)
class Found:
    """One file: what it is, and from where to where it is new."""

    path: str
    sort: str
    """`lines` or `table` of a trace, or `results` of a sweep."""
    run: str
    plan: Plan | None
    begin: int
    """Bytes that the lake has already; of a table none or all."""
    source: Source
    """What the lake will know of it."""
    base: str
    """The digest of those bytes; empty if there are none."""
    inode: int

    @property
    def is_new(self) -> bool:
        """Is there anything to read?"""
        return self.begin < self.source.size

    @property
    def is_replaced(self) -> bool:
        """Has its path become that of another file? Rows read from there since are not of it."""
        try:
            return os.stat(self.path).st_ino != self.inode
        except OSError:
            return True

    @property
    def scenario(self) -> str:
        """Of the trace."""
        return LIVE if self.plan is None else self.plan.scenario


def files_in(paths: Iterable[str]) -> list[str]:
    """These files, and those of these folders that have the names of traces or results."""
    found: dict[str, None] = {}
    for path in map(local_path, paths):
        if Path(path).is_dir():
            names = sorted(each for each in Path(path).rglob("*") if each.is_file())
            found |= {str(each): None for each in names if _NAME.fullmatch(each.name)}
        else:
            found[path] = None
    return list(found)


def survey(path: str, run: str, known: Sequence[Source]) -> Found:
    """Examine a file. `run` names the cluster of live nodes. Raises `BadFileError`."""
    try:
        if path.endswith(_TABLES):
            return _of_table(path, run, known)
        return _of_lines(path, run, known)
    except OSError as error:
        raise BadFileError(error.strerror or str(error)) from None


def _of_table(path: str, run: str, known: Sequence[Source]) -> Found:
    table = table_of(path)
    with Path(path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size, inode = file.tell(), os.fstat(file.fileno()).st_ino
    text = (table.schema.metadata or {}).get(_PLAN_KEY)
    plan = None if text is None else _plan(text.decode())
    if plan is not None and not _has_end(table):
        raise BadFileError(_CUT_OFF)
    source = Source(
        name=path, head=digest, sha256=digest, size=size, run=_run(plan, digest, run), rows=0
    )
    begin, base = (size, digest) if any(each.sha256 == digest for each in known) else (0, "")
    return Found(
        path=path, sort=TABLE, run=source.run, plan=plan, begin=begin, source=source, base=base,
        inode=inode,
    )  # fmt: skip


def table_of(path: str) -> ds.Dataset:
    """The rows of an Arrow or Parquet file. Raises `BadFileError`."""
    form = "Parquet" if path.endswith(".parquet") else "Arrow"
    try:
        return ds.dataset(path, format="parquet" if form == "Parquet" else "ipc")
    except pa.ArrowException as error:
        raise BadFileError(f"it is not a {form} file: {str(error).rpartition(': ')[2]}") from None


def _has_end(table: ds.Dataset) -> bool:
    """Is there a row in the table that ends a run?"""
    kind = pc.field("kind").cast(pa.string())
    try:
        return bool(table.count_rows(filter=kind.isin(_ENDS)))
    except pa.ArrowException:
        return True  # `reading` says what is wrong


def _of_lines(path: str, run: str, known: Sequence[Source]) -> Found:
    with Path(path).open("rb") as file:
        first = file.readline()
        is_begun = first.startswith(b"{") and not first.endswith(b"\n")
        is_live = f'"kind":"{PLAN_KIND}"'.encode() not in first
        if ".jsonl" in path and (not first or (is_begun and is_live)):
            raise NothingYetError("it has no complete row")
        if not first:
            raise BadFileError("it is empty")
        if not first.endswith(b"\n"):
            raise BadFileError("its first line is incomplete")
        facts = _facts(first)
        head = hashlib.sha256(first).hexdigest()
        olds = [each for each in known if each.head == head]
        old, size, digest = _compare(file, olds)
        inode = os.fstat(file.fileno()).st_ino
        plan = _plan(facts.get("detail", "")) if facts.get("kind") == PLAN_KIND else None
        with mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as text:
            if plan is not None and not _END_LINE.search(text):
                raise BadFileError(_CUT_OFF)
    sort = RESULTS if "is_ok" in facts else LINES
    name = _run(plan, digest, _of_sample(run, facts)) if old is None else old.run
    source = Source(name=path, head=head, sha256=digest, size=size, run=name, rows=0)
    begin, base = (0, "") if old is None else (old.size, old.sha256)
    longer = next((each for each in olds if each.size > size), None)
    if sort == LINES and plan is None and longer is not None:
        begin, base = size, longer.sha256  # an older copy of a trace
    return Found(
        path=path, sort=sort, run=name, plan=plan, begin=begin, source=source, base=base,
        inode=inode,
    )  # fmt: skip


def _facts(line: bytes) -> dict[str, Any]:
    try:
        facts = json.loads(line)
    except ValueError as error:
        raise BadFileError(f"line 1: not JSON: {error}") from None
    if not isinstance(facts, dict) or not ({"time", "kind"} <= facts.keys() or "is_ok" in facts):
        raise BadFileError("line 1: it is neither a row of a trace nor a result of a sweep")
    return facts


def _plan(text: str) -> Plan:
    try:
        return plan_file.parse(text, "its plan")
    except PlanError as error:
        raise BadFileError(str(error)) from None


def _of_sample(run: str, facts: dict[str, Any]) -> str:
    """The run of a live node's trace. A sample is a run of its own, which its name says: with rows
    of all jobs at some nodes, and of few at others, jobs would seem to be lost."""
    try:
        sample = sample_of(facts.get("kind", ""), facts.get("detail", ""))
    except (TypeError, ValueError) as error:
        raise BadFileError(f"line 1: {error}") from None
    return run if sample == 1 else f"{run}-one-in-{sample}"


def _run(plan: Plan | None, digest: str, live: str) -> str:
    return live if plan is None else digest[:RUN_DIGITS]


def _compare(file: BinaryIO, olds: Sequence[Source]) -> tuple[Source | None, int, str]:
    """The longest of them that the file begins with; the end of its last line, and the digest up to
    there."""
    size = _end_of_lines(file)
    file.seek(0)
    digest, at = hashlib.sha256(), 0
    base = None
    for old in sorted(olds, key=lambda each: each.size):
        if old.size > size:
            break
        _hash(file, digest, old.size - at)
        at = old.size
        if digest.hexdigest() == old.sha256:
            base = old
    _hash(file, digest, size - at)
    return base, size, digest.hexdigest()


def _hash(file: BinaryIO, digest: "hashlib._Hash", count: int) -> None:
    while count:
        block = file.read(min(count, _BLOCK))
        if not block:
            raise BadFileError("it was truncated while it was read")
        digest.update(block)
        count -= len(block)


def _end_of_lines(file: BinaryIO) -> int:
    """The offset behind the last complete line."""
    end = file.seek(0, 2)
    while end:
        start = max(0, end - _BLOCK)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
