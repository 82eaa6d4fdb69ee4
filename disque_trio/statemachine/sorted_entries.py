"""The entries of a queue that were not added in order, always sorted.

With a heap, only the first entry is cheap to read: a QPEEK of ten jobs would sort all. Here the
entries are in sorted pieces, so adding or removing an entry moves only those of its piece.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from disque_trio.statemachine.base import JobId, Millis
from disque_trio.statemachine.job import Job

Key = tuple[int, Millis, int, JobId]
"""The sort key of a job: rank (its negated priority), creation stamp (two parts), id."""
Entry = tuple[int, Millis, int, JobId, int, Job]
"""The sort key, a running number, the job. The running number distinguishes a job that was dropped
and added again from its stale entry."""

PIECE: Final = 1000
"""The maximum number of entries in a piece."""


@attrs.define(eq=False, weakref_slot=False)
class SortedEntries:
    """The sorted entries of one queue."""

    _pieces: list[list[Entry]] = attrs.Factory(list)
    """The pieces, none of which is empty."""
    _lasts: list[Entry] = attrs.Factory(list)
    """The last entry of each piece."""
    _count: int = 0

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        # The compiled form calls only this to test a value that may be None.
        return self._count > 0

    def __iter__(self) -> Iterator[Entry]:
        for piece in self._pieces:
            yield from piece

    def __reversed__(self) -> Iterator[Entry]:
        for piece in reversed(self._pieces):
            yield from reversed(piece)

    @property
    def first(self) -> Entry:
        """The first entry. There must be one."""
        return self._pieces[0][0]

    def add(self, entry: Entry) -> None:
        """Add an entry in order."""
        self._count += 1
        pieces, lasts = self._pieces, self._lasts
        if not lasts or lasts[-1] < entry:  # as nearly always
            if pieces and len(pieces[-1]) < PIECE:
                pieces[-1].append(entry)
                lasts[-1] = entry
            else:
                pieces.append([entry])
                lasts.append(entry)
            return
        at = bisect_left(lasts, entry)
        piece = pieces[at]
        insort(piece, entry)
        if len(piece) > PIECE:
            half = len(piece) // 2
            pieces.insert(at, piece[:half])
            lasts.insert(at, piece[half - 1])
            del piece[:half]
            at += 1
        lasts[at] = piece[-1]

    def pop_first(self) -> Entry:
        """Remove and return the first entry. There must be one."""
        self._count -= 1
        piece = self._pieces[0]
        entry = piece.pop(0)
        if not piece:
            del self._pieces[0], self._lasts[0]
        return entry

    def only(self, kept: Iterable[Entry]) -> None:
        """Keep only these entries, which must be in order."""
        entries = list(kept)
        self._count = len(entries)
        self._pieces = [entries[at : at + PIECE] for at in range(0, len(entries), PIECE)]
        self._lasts = [piece[-1] for piece in self._pieces]
