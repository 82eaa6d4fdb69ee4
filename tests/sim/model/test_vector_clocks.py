from hypothesis import given
from hypothesis import strategies as st

from disque_trio.sim.model.vector_clocks import NoClock, Stamp, VectorClock, precedes


def test_each_event_counts_in_its_own_place() -> None:
    clock = VectorClock(1)

    assert clock.tick() == (0, 1)
    assert clock.tick() == (0, 2)


def test_who_learns_something_knows_all_that_the_sender_knew() -> None:
    one, other = VectorClock(0), VectorClock(2)
    one.tick()

    other.join(one.tick())

    assert other.tick() == (2, 0, 1)


def test_a_stamp_is_no_event() -> None:
    clock = VectorClock(0)
    clock.tick()

    assert clock.stamp() == clock.stamp() == (1,)


def test_a_newcomer_is_known_by_nobody_before() -> None:
    old, new = VectorClock(0), VectorClock(3)
    stamp = new.tick()

    old.join(stamp)

    assert old.tick() == (1, 0, 0, 1)


def test_messages_order_events() -> None:
    one, other = VectorClock(0), VectorClock(1)
    sent = one.tick()
    before = other.tick()
    other.join(sent)
    after = other.tick()

    assert precedes(sent, after)
    assert precedes(before, after)
    assert not precedes(after, sent)
    assert not precedes(before, sent)
    assert not precedes(sent, before)


def test_nothing_precedes_itself() -> None:
    assert not precedes((1, 2), (1, 2))


def test_what_a_shorter_clock_does_not_say_is_zero() -> None:
    assert precedes((1,), (1, 1))
    assert precedes((1, 0), (2,))
    assert not precedes((1, 1), (2,))


def test_a_run_without_clocks_keeps_none() -> None:
    clock = NoClock(3)
    clock.join((1, 2, 3))

    assert clock.tick() == clock.stamp() == ()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=30))
def test_the_clocks_know_exactly_what_messages_made_known(talk: list[tuple[int, int]]) -> None:
    clocks = [VectorClock(place) for place in range(3)]
    known: list[set[int]] = [set(), set(), set()]
    events: list[tuple[Stamp, set[int]]] = []
    for sender, receiver in talk:
        for place in (sender, receiver):
            known[place].add(len(events))
            events.append((clocks[place].tick(), set(known[place])))
            if place == sender:
                clocks[receiver].join(clocks[sender].stamp())
                known[receiver] |= known[sender]

    for number, (stamp, _) in enumerate(events):
        for other, (later, before) in enumerate(events):
            assert precedes(stamp, later) == (number in before and number != other)
