"""The timer wheel: what is due when, at eight milliseconds' grain.

Every object with a deadline is `Timed` and stands in the wheel at most once. A deadline that
moves later leaves its entry where it is: when the entry comes up, the owner is put back at its
real time. So a job whose lease is renewed a thousand times costs one entry. One that is
acknowledged leaves an empty slot at most, and those are swept when they outnumber the others
(reference 4.4; the original's millisecond polling, quirk 11, is not mirrored).

Owns `Timed.due` and `Timed.slot`.
"""

import heapq
from typing import Final

import attrs

from disque_trio.statemachine.base import FOREVER, Millis

_GRAIN_BITS: Final = 3
_FEW_SLOTS: Final = 1024
"""With no more than these the empty ones may stay."""


@attrs.define(eq=False)
class Timed:
    """Anything with one deadline: `due`, 0 when there is none. `slot` is its place in the wheel."""

    due: Millis = attrs.field(default=0, init=False)
    slot: int = attrs.field(default=0, init=False)


class Timers:
    """Slots of `Timed` owners, and a heap of the slots in use."""

    __slots__ = ("_order", "_slots", "_sweep_at")

    def __init__(self) -> None:
        self._slots: dict[int, dict[Timed, None]] = {}
        self._order: list[int] = []
        self._sweep_at = _FEW_SLOTS
        """How many slots are enough to look for empty ones."""

    def __len__(self) -> int:
        """How many slots there are, empty ones included."""
        return len(self._slots)

    def arm(self, owner: Timed, when: Millis) -> None:
        """Let `owner` come up at `when` or a grain later, in place of its earlier deadline."""
        owner.due = when
        # Slot 0 would read as "in no slot".
        slot = (when + 7) >> _GRAIN_BITS or 1
        standing = owner.slot
        if standing:
            if standing <= slot:
                return
            self._slots[standing].pop(owner, None)
        owner.slot = slot
        entries = self._slots.get(slot)
        if entries is None:
            self._slots[slot] = {owner: None}
            heapq.heappush(self._order, slot)
            if len(self._slots) > self._sweep_at:
                self._sweep()
        else:
            entries[owner] = None

    def disarm(self, owner: Timed) -> None:
        """Forget the deadline and the entry, so that nothing keeps the owner alive."""
        owner.due = 0
        if owner.slot:
            self._slots[owner.slot].pop(owner, None)
            owner.slot = 0

    def _sweep(self) -> None:
        """Forget the empty slots: those of jobs with a day to live would stay for that day."""
        self._slots = {slot: entries for slot, entries in self._slots.items() if entries}
        self._order = sorted(self._slots)
        self._sweep_at = max(_FEW_SLOTS, 2 * len(self._slots))

    def deadline(self) -> Millis:
        """When `pop_due` wants to be asked next; `FOREVER` when nothing is armed."""
        while self._order:
            slot = self._order[0]
            if self._slots[slot]:
                return slot << _GRAIN_BITS
            del self._slots[heapq.heappop(self._order)]
        return FOREVER

    def pop_due(self, now: Millis) -> Timed | None:
        """The next owner whose deadline has come, disarmed; None when there is none."""
        while self.deadline() <= now:
            entries = self._slots[self._order[0]]
            owner = next(iter(entries))
            del entries[owner]
            owner.slot = 0
            if owner.due <= now:
                owner.due = 0
                return owner
            self.arm(owner, owner.due)
        return None
