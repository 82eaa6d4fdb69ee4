"""Brings a lake of schema 1, whose valid parts JSON files named, to Delta tables.

The parts stay where they are. An upgrade that is killed is repeated by the same command.
"""

import fcntl
import json
import os
import shutil
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from disque_trio.pipeline.lake import files
from disque_trio.pipeline.lake.files import LakeError, LakeFiles, Part, reason
from disque_trio.pipeline.lake.shape import SCHEMAS, SOURCES
from disque_trio.pipeline.lake.store import make
from disque_trio.pipeline.location import local_path

_COMMITS: Final = "commits"


@attrs.frozen
class Upgraded:
    """What was moved."""

    parts: int
    sources: int


def upgrade(path: str) -> Upgraded:
    """Make the tables of a lake of schema 1; of one that has them already, nothing is moved.
    Raises `LakeError`."""
    path = local_path(path)
    head = Path(path, files.HEAD)
    try:
        lock = os.open(head, os.O_RDWR)
    except OSError as error:
        raise LakeError(f"cannot open the lake {path}: {reason(error)}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _schema(head) == 1:
            done = _move(Path(path))
            files.write_whole(head, {"schema": files.LAYOUT})
        else:
            LakeFiles.open(path)
            done = Upgraded(0, 0)
    finally:
        os.close(lock)
    shutil.rmtree(Path(path, _COMMITS), ignore_errors=True)  # maybe of an upgrade that was killed
    return done


def _schema(head: Path) -> Any:
    try:
        return json.loads(head.read_text("utf-8"))["schema"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _move(path: Path) -> Upgraded:
    commits = _commits(path)
    parts = {each["path"]: Part(**each) for commit in commits for each in commit["parts"]}
    sources = [each for commit in commits for each in commit["sources"]]
    lake = make(path)
    if sources:
        rows = pa.Table.from_pylist(sources, schema=SOURCES)
        part = lake.write("sources", "", "upgrade", rows)
        parts[part.path] = part
    for name in SCHEMAS:
        wanted = {part.path: part for part in parts.values() if part.table == name}
        table = lake.table(name)
        version = table.read()  # an upgrade that was killed may have been here
        had = {part.path: part for part in version.parts}
        new = [part for path, part in wanted.items() if path not in had]
        old = [part for path, part in had.items() if path not in wanted]
        if new or old:
            table.replace(version, old, new)
    return Upgraded(len(parts), len(sources))


def _commits(path: Path) -> list[dict[str, Any]]:
    """The commits that are not replaced, oldest first."""
    try:
        found = [
            json.loads(each.read_text()) for each in sorted(Path(path, _COMMITS).glob("*.json"))
        ]
        replaced = {id for commit in found for id in commit["replaces"]}
        return [commit for commit in found if commit["id"] not in replaced]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LakeError(f"the lake {path} is damaged: {reason(error)}") from None
