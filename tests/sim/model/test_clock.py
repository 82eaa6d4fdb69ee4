from hypothesis import given
from hypothesis import strategies as st

from disque_trio.sim.model.clock import EPOCH_MS, NodeClock
from disque_trio.sim.scenarios.plan import ClockPlan

SECOND = 1_000_000
HOUR_MS = 3_600_000


def test_a_true_clock_shows_true_time() -> None:
    clock = NodeClock()

    start, later = clock.now(0), clock.now(5 * SECOND)

    assert start.wall == EPOCH_MS
    assert later.wall - start.wall == later.mono - start.mono == 5_000


def test_clocks_run_in_the_warm_up_too() -> None:
    clock = NodeClock()

    assert clock.now(0).mono - clock.now(-2 * SECOND).mono == 2_000


def test_a_drifting_clock_gains_on_both_its_faces() -> None:
    clock = NodeClock(ClockPlan(drift_ppm=200))
    start = clock.now(0)

    end = clock.now(10_000 * SECOND)

    assert end.mono - start.mono == 10_002_000
    assert end.wall - start.wall == 10_002_000


def test_an_offset_moves_the_wall_clock_alone() -> None:
    clock = NodeClock(ClockPlan(wall_offset_ms=-HOUR_MS))

    assert clock.now(0).wall == EPOCH_MS - HOUR_MS
    assert clock.now(0).mono == NodeClock().now(0).mono


def test_a_step_moves_the_wall_clock_alone() -> None:
    clock = NodeClock()
    before = clock.now(SECOND)

    clock.step(-HOUR_MS)

    after = clock.now(SECOND)
    assert after.wall == before.wall - HOUR_MS
    assert after.mono == before.mono


def test_a_frozen_wall_clock_stands_and_catches_up_when_thawed() -> None:
    clock = NodeClock()
    clock.freeze(SECOND)

    frozen = clock.now(20 * SECOND)
    clock.thaw()
    thawed = clock.now(20 * SECOND)

    assert frozen.wall == EPOCH_MS + 1_000
    assert frozen.mono == thawed.mono
    assert thawed.wall == EPOCH_MS + 20_000


def test_a_step_shows_on_a_frozen_clock() -> None:
    clock = NodeClock()
    clock.freeze(0)

    clock.step(700)

    assert clock.now(SECOND).wall == EPOCH_MS + 700


def test_a_new_rate_counts_from_its_begin() -> None:
    clock = NodeClock()
    start = clock.now(0).mono

    clock.set_rate(10 * SECOND, 100_000)

    assert clock.now(10 * SECOND).mono - start == 10_000
    assert clock.now(20 * SECOND).mono - start == 21_000


def test_micros_are_what_the_wall_clock_has_below_a_millisecond() -> None:
    assert NodeClock().now(1_234).micros == 234


@given(
    ppm=st.integers(-100_000, 100_000),
    later=st.integers(-100_000, 100_000),
    change=st.integers(0, 100 * SECOND),
    wait=st.integers(0, 100_000),
)
def test_when_is_the_first_time_at_which_a_moment_shows(
    ppm: int, later: int, change: int, wait: int
) -> None:
    clock = NodeClock(ClockPlan(drift_ppm=ppm))
    clock.set_rate(change, later)
    moment = clock.now(change).mono + 1 + wait

    time = clock.when(moment)

    assert clock.now(time).mono >= moment
    assert clock.now(time - 1).mono < moment
