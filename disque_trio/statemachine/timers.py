"""The timer wheel, with a grain of eight milliseconds.

Every object with a deadline is `Timed` and has at most one entry. A deadline that moves later
leaves its entry where it is: when the entry is due, the owner is put in again at its real time. So
a job whose lease is renewed a thousand times costs one entry. One that is acknowledged leaves an
empty slot at most, and those are swept when they outnumber the others (original 4.4, without the
polling of original, defect 11).

Owns the fields of `Timed` and `Slot`.
"""

import heapq
from collections.abc import Iterable
from typing import Final

import attrs

from disque_trio.statemachine.base import FOREVER, Millis
from disque_trio.statemachine.knobs import DEFAULTS

_GRAIN_BITS: Final = 3
_MOMENTS: Final = 2048
"""How many moments `shared` keeps: twice what the spread of retry times needs
(`lifecycle.desync`)."""


@attrs.define(eq=False, weakref_slot=False)
class Timed:
    """Anything with one deadline: `due`, 0 when there is none. `slot` is its place in the wheel."""

    due: Millis = attrs.field(default=0, init=False)
    slot: "Slot | None" = attrs.field(default=None, init=False, repr=False)
    earlier: "Timed | None" = attrs.field(default=None, init=False, repr=False)
    """In the slot: the owner that came before it, and the next one."""
    later: "Timed | None" = attrs.field(default=None, init=False, repr=False)


class Slot:
    """The owners due in the same eight milliseconds, in the order in which they came: a chain
    through them, which takes 16 bytes of each, where an entry in a dictionary takes 36."""

    __slots__ = ("first", "last", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        """When these end, in grains."""
        self.first: Timed | None = None
        self.last: Timed | None = None

    def put_in(self, owner: Timed) -> None:
        """Add an owner that is in no slot."""
        newest = self.last
        if newest is None:
            self.first = owner
        else:
            newest.later = owner
            owner.earlier = newest
        self.last = owner
        owner.slot = self

    def take_out(self, owner: Timed) -> None:
        """Remove an owner that is here."""
        earlier, later = owner.earlier, owner.later
        if earlier is None:
            self.first = later
        else:
            earlier.later = later
            owner.earlier = None
        if later is None:
            self.last = earlier
        else:
            later.earlier = earlier
            owner.later = None
        owner.slot = None


class Timers:
    """Slots of `Timed` owners, and a heap of the slots in use."""

    __slots__ = ("_few", "_moments", "_order", "_slots", "_sweep_at")

    def __init__(self, few: int = DEFAULTS.empty_slots) -> None:
        """Up to `few` slots, empty ones are not swept."""
        self._slots: dict[int, Slot] = {}
        self._order: list[int] = []
        self._few = few
        self._sweep_at = few
        """How many slots are enough to look for empty ones."""
        self._moments = [0] * _MOMENTS

    def __len__(self) -> int:
        """How many slots there are, empty ones included."""
        return len(self._slots)

    def __bool__(self) -> bool:
        return bool(self._slots)

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
            standing.take_out(owner)
        slot = self._slots.get(number)
        if slot is None:
            slot = self._begin(number)
        slot.put_in(owner)

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
                standing.take_out(owner)
            if slot is None:
                slot = self._slots.get(number)
                if slot is None:
                    slot = self._begin(number)
            slot.put_in(owner)

    def _begin(self, number: int) -> Slot:
        if len(self._slots) >= self._sweep_at:
            self._sweep()
        slot = self._slots[number] = Slot(number)
        try:
            heapq.heappush(self._order, number)
        except MemoryError:
            del self._slots[number]  # a slot that is not in the heap is never due
            raise
        return slot

    def disarm(self, owner: Timed) -> None:
        """Forget the deadline and the entry, so that nothing keeps the owner alive."""
        owner.due = 0
        if owner.slot is not None:
            owner.slot.take_out(owner)

    def drop_stale(self) -> None:
        """Drop empty slots and shared moments of owners that have gone.

        They were allocated among those owners, and keep that memory from being returned.
        """
        self._sweep()
        self._moments = [0] * _MOMENTS

    def _sweep(self) -> None:
        """Forget the empty slots: those of jobs with a day to live would stay for that day."""
        slots = self._slots.items()
        self._slots = {number: slot for number, slot in slots if slot.first is not None}
        self._order = sorted(self._slots)
        self._sweep_at = max(self._few, 2 * len(self._slots))

    def deadline(self) -> Millis:
        """When `pop_due` is to be called next; `FOREVER` when nothing is armed."""
        while self._order:
            number = self._order[0]
            if self._slots[number].first is not None:
                return number << _GRAIN_BITS
            del self._slots[heapq.heappop(self._order)]
        return FOREVER

    def armed(self) -> list[tuple[Millis, list[Timed]]]:
        """The owners of each slot, and when it is due; the first one first. For the simulator."""
        found: list[tuple[Millis, list[Timed]]] = []
        for number in sorted(self._slots):
            owners: list[Timed] = []
            owner = self._slots[number].first
            while owner is not None:
                owners.append(owner)
                owner = owner.later
            if owners:
                found.append((number << _GRAIN_BITS, owners))
        return found

    def pop_due(self, now: Millis) -> Timed | None:
        """The next owner whose deadline has come, disarmed; None when there is none."""
        while self.deadline() <= now:
            slot = self._slots[self._order[0]]
            owner = slot.first
            assert owner is not None, "the first slot has an owner"
            slot.take_out(owner)
            if owner.due <= now:
                owner.due = 0
                return owner
            self.arm(owner, owner.due)
        return None
