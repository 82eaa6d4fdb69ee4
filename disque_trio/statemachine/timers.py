"""The timer wheel, with a grain of eight milliseconds.

Every object with a deadline is `Timed` and has at most one entry. A deadline that moves later
leaves its entry where it is: when the entry is due, the owner is put in again at its real time. So
a job whose lease is renewed a thousand times costs one entry. One that is acknowledged leaves an
empty slot at most, and those are swept when they outnumber the others (original 4.4, without the
polling of original, defect 11).

Owns `Timed.due`, `Timed.slot` and `Slot.number`.
"""

import heapq
from collections.abc import Iterable
from typing import Final

import attrs

from disque_trio.statemachine.base import FOREVER, Millis

_GRAIN_BITS: Final = 3
_MOMENTS: Final = 2048
"""How many moments `shared` keeps: twice what the spread of retry times needs
(`lifecycle.desync`)."""
_FEW_SLOTS: Final = 1024
"""Up to this number of slots, empty ones are not swept."""


@attrs.define(eq=False, weakref_slot=False)
class Timed:
    """Anything with one deadline: `due`, 0 when there is none. `slot` is its place in the wheel."""

    due: Millis = attrs.field(default=0, init=False)
    slot: "Slot | None" = attrs.field(default=None, init=False, repr=False)


class Slot(dict[Timed, None]):
    """The owners due in the same eight milliseconds; `number` is when these end, in grains."""

    __slots__ = ("number",)

    number: int


class Timers:
    """Slots of `Timed` owners, and a heap of the slots in use."""

    __slots__ = ("_line", "_moments", "_order", "_slots", "_sweep_at")

    def __init__(self) -> None:
        self._slots: dict[int, Slot] = {}
        self._order: list[int] = []
        self._sweep_at = _FEW_SLOTS
        """How many slots are enough to look for empty ones."""
        self._moments = [0] * _MOMENTS
        self._line: list[Timed] = []
        """Owners of the slot that is due, the next one last. A list, because finding the first
        entry of a dictionary takes a step for each one that has left it."""

    def __len__(self) -> int:
        """How many slots there are, empty ones included."""
        return len(self._slots)

    def shared(self, moment: Millis) -> Millis:
        """The one object for this moment, if it has been asked for lately.

        An int of its own takes 32 bytes, and jobs that come in quick succession share theirs.
        """
        at = moment & _MOMENTS - 1
        known = self._moments[at]
        if known == moment:
            return known
        self._moments[at] = moment
        return moment

    def arm(self, owner: Timed, when: Millis) -> None:
        """Make `owner` due at `when` or a grain later, in place of its earlier deadline."""
        at = when & _MOMENTS - 1
        known = self._moments[at]
        if known == when:
            when = known
        else:
            self._moments[at] = when
        owner.due = when
        number = (when + 7) >> _GRAIN_BITS
        standing = owner.slot
        if standing is not None:
            if standing.number <= number:
                return
            del standing[owner]
        slot = self._slots.get(number)
        if slot is None:
            slot = self._begin(number)
        slot[owner] = None
        owner.slot = slot

    def arm_all(self, owners: Iterable[Timed], when: Millis) -> None:
        """Make all of them due at `when`, as `arm` does for each."""
        when = self.shared(when)
        number = (when + 7) >> _GRAIN_BITS
        slot: Slot | None = None
        for owner in owners:
            owner.due = when
            standing = owner.slot
            if standing is not None:
                if standing.number <= number:
                    continue
                del standing[owner]
            if slot is None:
                slot = self._slots.get(number)
                if slot is None:
                    slot = self._begin(number)
            slot[owner] = None
            owner.slot = slot

    def _begin(self, number: int) -> Slot:
        if len(self._slots) >= self._sweep_at:
            self._sweep()
        slot = self._slots[number] = Slot()
        slot.number = number
        heapq.heappush(self._order, number)
        return slot

    def disarm(self, owner: Timed) -> None:
        """Forget the deadline and the entry, so that nothing keeps the owner alive."""
        owner.due = 0
        slot = owner.slot
        if slot is not None:
            del slot[owner]
            owner.slot = None

    def drop_stale(self) -> None:
        """Drop empty slots and shared moments of owners that have gone.

        They were allocated among those owners, and keep that memory from being returned.
        """
        self._sweep()
        self._moments = [0] * _MOMENTS

    def _sweep(self) -> None:
        """Forget the empty slots: those of jobs with a day to live would stay for that day."""
        self._slots = {number: slot for number, slot in self._slots.items() if slot}
        self._order = sorted(self._slots)
        self._sweep_at = max(_FEW_SLOTS, 2 * len(self._slots))

    def deadline(self) -> Millis:
        """When `pop_due` is to be called next; `FOREVER` when nothing is armed."""
        while self._order:
            number = self._order[0]
            if self._slots[number]:
                return number << _GRAIN_BITS
            del self._slots[heapq.heappop(self._order)]
        return FOREVER

    def pop_due(self, now: Millis) -> Timed | None:
        """The next owner whose deadline has come, disarmed; None when there is none."""
        while self.deadline() <= now:
            slot = self._slots[self._order[0]]
            owner = self._first(slot)
            del slot[owner]
            owner.slot = None
            if owner.due <= now:
                owner.due = 0
                return owner
            self.arm(owner, owner.due)
        return None

    def _first(self, slot: Slot) -> Timed:
        """The owner that has been in the slot longest. Owners added meanwhile come last."""
        line = self._line
        while line:
            owner = line.pop()
            if owner.slot is slot:
                return owner
        line.extend(slot)
        line.reverse()
        return line.pop()
