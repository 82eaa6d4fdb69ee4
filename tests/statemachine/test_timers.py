from typing import Any

import hypothesis.strategies as st
from hypothesis import given
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from disque_trio.statemachine.base import FOREVER
from disque_trio.statemachine.timers import Timed, Timers

GRAIN = 8


def test_nothing_armed_is_due_never() -> None:
    timers = Timers()

    assert timers.deadline() == FOREVER
    assert timers.pop_due(1 << 40) is None


def test_an_owner_comes_up_once_and_is_disarmed() -> None:
    timers, owner = Timers(), Timed()
    timers.arm(owner, 1000)

    assert timers.pop_due(999) is None
    assert timers.pop_due(1000) is owner
    assert (owner.due, owner.slot) == (0, None)
    assert timers.pop_due(10_000) is None


def test_a_deadline_is_rounded_up_to_the_grain() -> None:
    timers, owner = Timers(), Timed()
    timers.arm(owner, 1001)

    assert timers.deadline() == 1008
    assert timers.pop_due(1007) is None
    assert timers.pop_due(1008) is owner


def test_a_deadline_that_moves_later_stays_where_it_is_until_it_comes_up() -> None:
    timers, owner = Timers(), Timed()
    timers.arm(owner, 1000)
    timers.arm(owner, 5000)

    assert timers.deadline() == 1000
    assert timers.pop_due(1000) is None
    assert timers.deadline() == 5000
    assert timers.pop_due(5000) is owner


def test_a_deadline_that_moves_earlier_counts_at_once() -> None:
    timers, owner = Timers(), Timed()
    timers.arm(owner, 5000)
    timers.arm(owner, 1000)

    assert timers.pop_due(1000) is owner
    assert timers.pop_due(5000) is None


def test_a_disarmed_owner_leaves_nothing_behind() -> None:
    timers, owner = Timers(), Timed()
    timers.arm(owner, 1000)
    timers.disarm(owner)
    timers.disarm(owner)

    assert (owner.due, owner.slot) == (0, None)
    assert timers.deadline() == FOREVER


def test_owners_that_go_before_their_time_leave_few_slots_behind() -> None:
    timers, patient = Timers(), Timed()
    timers.arm(patient, 86_400_000)

    for moment in range(10_000):
        owner = Timed()
        timers.arm(owner, 86_400_000 + GRAIN * moment)
        timers.disarm(owner)

    assert len(timers) < 1100
    assert timers.deadline() == 86_400_000
    assert timers.pop_due(86_400_000) is patient


def test_owners_of_a_slot_come_up_in_the_order_in_which_they_came() -> None:
    timers, owners = Timers(), [Timed() for _ in range(1000)]
    for owner in owners:
        timers.arm(owner, 1000)

    timers.disarm(owners[500])
    assert [timers.pop_due(1000) for _ in range(10)] == owners[:10]
    timers.disarm(owners[20])
    late = Timed()
    timers.arm(late, 1000)
    came = [timers.pop_due(1000) for _ in range(989)]

    assert came == [*owners[10:20], *owners[21:500], *owners[501:], late]
    assert timers.pop_due(1000) is None


def test_an_owner_that_has_gone_keeps_no_other_alive() -> None:
    timers, owners = Timers(), [Timed() for _ in range(3)]
    for owner in owners:
        timers.arm(owner, 1000)

    for owner in owners:
        timers.disarm(owner)

    assert all(owner.earlier is None and owner.later is None for owner in owners)


def test_moments_around_zero_are_moments_like_any_other() -> None:
    for when in range(-GRAIN, GRAIN + 1):
        timers, owner = Timers(), Timed()
        timers.arm(owner, when)
        assert owner.slot
        timers.arm(owner, when + 1000)
        timers.disarm(owner)
        assert timers.deadline() == FOREVER


class TimersAgainstAList(RuleBasedStateMachine):
    """Every owner stands in a plain dict as well."""

    def __init__(self) -> None:
        super().__init__()
        self.timers = Timers()
        self.owners = [Timed() for _ in range(8)]
        self.armed: dict[Timed, int] = {}
        self.now = 0

    @rule(which=st.integers(0, 7), wait=st.integers(-20, 500))
    def arm(self, which: int, wait: int) -> None:
        owner = self.owners[which]
        self.timers.arm(owner, self.now + wait)
        self.armed[owner] = self.now + wait

    @rule(which=st.integers(0, 7))
    def disarm(self, which: int) -> None:
        owner = self.owners[which]
        self.timers.disarm(owner)
        self.armed.pop(owner, None)

    @rule(duration=st.integers(0, 100))
    def pass_time(self, duration: int) -> None:
        self.now += duration
        while (owner := self.timers.pop_due(self.now)) is not None:
            assert self.armed.pop(owner) <= self.now, "never early"
        for when in self.armed.values():
            assert max(when, 1) + GRAIN > self.now, "at most a grain late"
        assert self.timers.deadline() > self.now

    @rule()
    def pop_one(self) -> None:
        owner = self.timers.pop_due(self.now)
        if owner is not None:
            assert self.armed.pop(owner) <= self.now

    @invariant()
    def knows_when_to_come_back(self) -> None:
        deadline = self.timers.deadline()
        for owner, when in self.armed.items():
            assert owner.slot
            assert owner.due == when
            assert deadline < max(when, 1) + GRAIN
        assert (deadline == FOREVER) == (not self.armed)
        for owner in self.owners:
            assert owner in self.armed or not owner.slot


TestTimersAgainstAList: Any = TimersAgainstAList.TestCase


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 3, 80, 81, 900]), st.integers(0, 30)), min_size=1),
)
def test_many_owners_are_armed_as_one_after_the_other(
    steps: list[tuple[int, int]],
) -> None:
    together, singly = Timers(), Timers()
    owners = [(Timed(), Timed()) for _ in range(5)]

    for when, chosen in steps:
        some = [pair for place, pair in enumerate(owners) if chosen & 1 << place]
        together.arm_all([one for one, _ in some], when)
        for _, other in some:
            singly.arm(other, when)

    assert together.deadline() == singly.deadline()
    for now in range(0, 1000, 8):
        due = [together.pop_due(now) for _ in range(6)]
        one_by_one = [singly.pop_due(now) for _ in range(6)]
        partners = dict(owners)
        assert [partners[each] if each else None for each in due] == one_by_one


def test_armed_owners_are_listed_by_their_slots() -> None:
    timers = Timers()
    first, second, third = Timed(), Timed(), Timed()
    timers.arm(third, 100)
    timers.arm(first, 8)
    timers.arm(second, 5)
    gone = Timed()
    timers.arm(gone, 50)
    timers.disarm(gone)

    assert timers.armed() == [(8, [first, second]), (104, [third])]
