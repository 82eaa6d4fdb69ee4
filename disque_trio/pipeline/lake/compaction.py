"""Compaction: merges small files into large ones, and removes files that the table does not name.

Delta's `optimize` does it. The rows of a scenario are sorted by kind: each view needs rows of some
kinds, and Spark skips groups of rows without them. Most rows are about messages, which few views
need. Readers that have begun may still read what was there: replaced files go with the first
compaction after `GRACE_S`.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import unquote

import attrs
from deltalake import WriterProperties
from deltalake.exceptions import CommitFailedError

from disque_trio.pipeline.lake.files import LakeError, Part
from disque_trio.pipeline.lake.store import Lake, Snapshot

GRACE_S: Final = 86_400.0
LARGE: Final = 128 << 20
"""Bytes of a file that is left as it is, and about how many a new one gets."""
_SHARE: Final = 0.25
"""Of the bytes of a scenario. While small files have less, sorting all anew would cost too much."""
_WRITING: Final = WriterProperties(compression="ZSTD", max_row_group_size=1 << 17)


@attrs.frozen
class Tidied:
    """What was done."""

    before: int
    """Files."""
    after: int
    removed: int
    """Files that the table did not name any more."""


def compact(lake: Lake, *, grace_s: float = GRACE_S) -> Tidied:
    """Merge small files. Raises `LakeError`."""
    version = lake.now()
    for parts in _partitions(version.parts):
        _merge(lake, parts)
    with lake.explained():
        table = lake.now().table
        options: Any = {"enforce_retention_duration": False, "full": True}
        old = table.vacuum(math.ceil(grace_s / 3_600), **options)  # some are gone long ago
        removed = sum(entry.is_file for entry in lake.storage.get_file_info(old))
        table.vacuum(math.ceil(grace_s / 3_600), dry_run=False, **options)
        table.create_checkpoint()
        table.cleanup_metadata()
    before, after = (sum(map(len, each.values())) for each in (version.parts, lake.snapshot()))
    return Tidied(before, after, removed)


def _partitions(parts: Snapshot) -> Iterator[list[Part]]:
    """The parts of each partition that has two small ones, or more."""
    found = defaultdict[str, list[Part]](list)
    for part in (part for table in parts.values() for part in table):
        found[unquote(part.path.rpartition("/")[0])].append(part)
    for some in found.values():
        if sum(part.size < LARGE for part in some) > 1:
            yield some


def _merge(lake: Lake, parts: Sequence[Part]) -> None:
    keys = [(name, "=", text) for name, text in parts[0].keys.items() if text is not None]
    small = sum(part.size for part in parts if part.size < LARGE)
    options: Any = {"partition_filters": keys, "target_size": LARGE, "writer_properties": _WRITING}
    with lake.explained():
        optimize = lake.now().table.optimize
        try:
            if parts[0].table == "rows" and small > _SHARE * sum(part.size for part in parts):
                optimize.z_order(["kind"], **options)
            else:
                optimize.compact(**options)
        except CommitFailedError:
            raise LakeError(f"{lake.path} is being compacted by another process") from None
