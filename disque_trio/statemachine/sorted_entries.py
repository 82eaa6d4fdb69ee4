"""The entries of a queue that did not come in order, always sorted.

A heap gives only its first entry cheaply: a QPEEK of ten jobs would sort all. Here the entries are
in pieces, each sorted, so that an entry that comes or goes moves those of its piece only.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from disque_trio.statemachine.base import JobId, Millis
from disque_trio.statemachine.job import Job

Key = tuple[int, Millis, int, JobId]
"""The place of a job: rank (its priority negated), creation stamp (two parts), id."""
Entry = tuple[int, Millis, int, JobId, int, Job]
"""The place of a job, running number, job. The running number tells a job that was dropped and came
back as a new record from its own stale entry."""

PIECE: Final = 1000
"""A piece with more entries is divided."""


@attrs.define(eq=False, weakref_slot=False)
class SortedEntries:
    """These entries of one queue."""

    _pieces: list[list[Entry]] = attrs.Factory(list)
    """None of them is empty."""
    _lasts: list[Entry] = attrs.Factory(list)
    """The last entry of each piece."""
    _count: int = 0

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        # The compiled form asks nothing else whether a value that may be None is true.
        return self._count > 0

    def __iter__(self) -> Iterator[Entry]:
        for piece in self._pieces:
            yield from piece

    def __reversed__(self) -> Iterator[Entry]:
        for piece in reversed(self._pieces):
            yield from reversed(piece)

    @property
    def first(self) -> Entry:
        """The lowest entry. There must be one."""
        return self._pieces[0][0]

    def add(self, entry: Entry) -> None:
        """Put in an entry at its place."""
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
        """Take out the lowest entry. There must be one."""
        self._count -= 1
        piece = self._pieces[0]
        entry = piece.pop(0)
        if not piece:
            del self._pieces[0], self._lasts[0]
        return entry

    def only(self, kept: Iterable[Entry]) -> None:
        """Keep only these of its entries, in their order."""
        entries = list(kept)
        self._count = len(entries)
        self._pieces = [entries[at : at + PIECE] for at in range(0, len(entries), PIECE)]
        self._lasts = [piece[-1] for piece in self._pieces]
