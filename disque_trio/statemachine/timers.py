"""The timer wheel, with a grain of eight milliseconds.

Every object with a deadline is `Timed` and has at most one entry. If a deadline moves later, its
entry stays: when the entry is due, the owner is added again at its current deadline. So a job whose
lease is renewed a thousand times takes one entry. An acknowledged job leaves at most an empty slot;
empty slots are swept when they outnumber the others (original 4.4, without the polling of original,
defect 11).

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
"""How many times `shared` keeps: twice as many as the random variation of retry times needs
(`lifecycle.desync`)."""


@attrs.define(eq=False, weakref_slot=False)
class Timed:
    """An object with one deadline: `due`, 0 if there is none. `slot` is its place in the wheel."""

    due: Millis = attrs.field(default=0, init=False)
    slot: "Slot | None" = attrs.field(default=None, init=False, repr=False)
    earlier: "Timed | None" = attrs.field(default=None, init=False, repr=False)
    """In the slot's linked list: the previous owner, and `later` the next one."""
    later: "Timed | None" = attrs.field(default=None, init=False, repr=False)


class Slot:
    """The owners due in the same eight milliseconds, in order of insertion, as a linked list
    through them: it takes 16 bytes per owner, while an entry in a dictionary takes 36."""

    __slots__ = ("first", "last", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        """The end of the slot's interval, in grains."""
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
        """With up to `few` slots, empty ones are not swept."""
        self._slots: dict[int, Slot] = {}
        self._order: list[int] = []
        self._few = few
        self._sweep_at = few
        """The number of slots at which empty ones are swept."""
        self._moments = [0] * _MOMENTS

    def __len__(self) -> int:
        """The number of slots, including empty ones."""
        return len(self._slots)

    def __bool__(self) -> bool:
        return bool(self._slots)

    def shared(self, moment: Millis) -> Millis:
        """The time as a shared int object, if it was requested recently.

        A separate int takes 32 bytes; jobs that arrive in quick succession share theirs.
        """
        at = moment & _MOMENTS - 1
        known = self._moments[at]
        if known == moment:
            return known
        self._moments[at] = moment
        return moment

    def arm(self, owner: Timed, when: Millis) -> None:
        """Set the deadline of `owner` to `when`. It is due up to one grain later."""
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
        """`arm` for each of these owners."""
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
        """Remove the deadline and the entry, so that the wheel has no reference to the owner."""
        owner.due = 0
        if owner.slot is not None:
            owner.slot.take_out(owner)

    def drop_stale(self) -> None:
        """Drop empty slots, and shared times of dropped owners.

        They were allocated between those owners, and prevent that memory from being returned.
        """
        self._sweep()
        self._moments = [0] * _MOMENTS

    def _sweep(self) -> None:
        """Drop the empty slots: one for the expiry of a job with a TTL of a day would stay for that
        day."""
        slots = self._slots.items()
        self._slots = {number: slot for number, slot in slots if slot.first is not None}
        self._order = sorted(self._slots)
        self._sweep_at = max(self._few, 2 * len(self._slots))

    def deadline(self) -> Millis:
        """When `pop_due` must be called next; `FOREVER` if nothing is armed."""
        while self._order:
            number = self._order[0]
            if self._slots[number].first is not None:
                return number << _GRAIN_BITS
            del self._slots[heapq.heappop(self._order)]
        return FOREVER

    def armed(self) -> list[tuple[Millis, list[Timed]]]:
        """The slots in the order in which they are due, each with its time and its owners. For the
        simulator."""
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
        """The next owner whose deadline has passed, disarmed; None if there is none."""
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
