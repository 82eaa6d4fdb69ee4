"""One part of the node broken at a time: the judge notices, and says what is wrong.

Each case names the plan, what is expected to be found (any of these), and within how many seeds.
What is not found breaks no promise: it saves messages or time, and the figure says how much.
"""

from collections.abc import Callable
from typing import Final

import attrs
import pytest

from disque_trio.sim.checkers.verdict import Verdict, judge
from disque_trio.sim.nodes import MachineError
from disque_trio.sim.plan import Plan
from disque_trio.sim.simulation import simulate
from disque_trio.statemachine.messages import DelJob, GotAck, NeedJobs, Queued, WillQueue
from tests.sim.ablations import broken, weather

Break = Callable[[broken.Patch], None]
Weather = Callable[[int], Plan]


def verdict(plan: Plan) -> Verdict:
    """A machine that raises ends its run; the judge has seen the row."""
    court = judge(plan)
    try:
        simulate(plan, court.see)
    except MachineError:
        assert court.violated is not None
    return court.finish()


@attrs.frozen
class Case:
    """What is broken, where it shows, and how."""

    breaks: Break
    plan: Weather
    finds: str
    """Properties and causes of duplicates, any of which will do."""
    seeds: int = 3
    name: str = ""


FOUND: Final = (
    Case(broken.ignoring(Queued), weather.backlog, "S10 D5", name="ignoring-queued"),
    Case(broken.without_tie_break, weather.careless, "S10", seeds=4),
    Case(broken.silent_requeue, weather.backlog, "S10 D5"),
    Case(broken.never_armed_again, weather.careless, "L2"),
    Case(broken.without_lease, weather.queue_and_work, "S11"),
    Case(broken.half_a_period, weather.queue_and_work, "S11"),
    Case(broken.by_the_wall_clock, weather.jumps, "S11 D10", seeds=6),
    Case(broken.without_expiry, weather.short_lives, "S7"),
    Case(broken.half_the_delay, weather.delays, "S6"),
    Case(broken.senders_unlisted, weather.short_lives, "D6 D3c S11", seeds=4),
    Case(broken.confirmed_by_one, weather.calm, "S1"),
    Case(broken.confirmed_without_a_copy, weather.calm, "S1"),
    Case(broken.cleaned_up_after_success, weather.calm, "S2"),
    Case(broken.ids_told_wrong, weather.once, "S4"),
    Case(broken.collected_at_once, weather.crowd, "D6 DX"),
    Case(broken.ack_not_kept, weather.backlog, "D3c S2"),
    Case(broken.without_dummies, weather.crowd, "D1"),
    Case(broken.ignoring(GotAck), weather.calm, "L3", name="ignoring-gotack"),
    Case(broken.given_and_kept, weather.once, "S5 S2"),
    Case(broken.once_queued_again, weather.once, "S5"),
    Case(broken.ignoring(NeedJobs), weather.calm, "L1 S2 S5", name="ignoring-needjobs"),
    Case(broken.youngest_first, weather.backlog, "S13"),
    Case(broken.bodies_cut_short, weather.calm, "S3"),
    Case(broken.counting_twice, weather.careless, "S14"),
    Case(broken.raising, weather.calm, "S12"),
)
UNFOUND: Final[tuple[tuple[str, Break, Weather, Callable[[Verdict], float]], ...]] = (
    (
        "ignoring-willqueue",
        broken.ignoring(WillQueue),
        weather.backlog,
        lambda v: v.marks["queued.twice"],
    ),
    ("ignoring-deljob", broken.ignoring(DelJob), weather.calm, lambda v: v.metrics.collection.p99),
    (
        "without-clean-up",
        broken.without_clean_up,
        weather.refusals,
        lambda v: v.metrics.recovered,
    ),
    (
        "without-back-off",
        broken.without_back_off,
        weather.island,
        lambda v: v.metrics.messages_per_job,
    ),
)


def named(case: Case) -> str:
    return case.name or getattr(case.breaks, "__name__", "").replace("_", "-")


WEATHERS: Final = {
    each.plan.__name__: (each.plan, max(c.seeds for c in FOUND if c.plan is each.plan))
    for each in FOUND
}


@pytest.mark.parametrize("name", WEATHERS)
def test_the_intact_node_weathers_it(name: str) -> None:
    plan, seeds = WEATHERS[name]

    for seed in range(seeds):
        assert verdict(plan(seed)).violations == (), seed


@pytest.mark.parametrize("case", FOUND, ids=named)
def test_the_judge_finds_what_is_broken(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.breaks(monkeypatch)
    found: dict[str, None] = {}

    for seed in range(case.seeds):
        found |= dict.fromkeys(each.property for each in verdict(case.plan(seed)).violations)
        if found.keys() & set(case.finds.split()):
            return

    pytest.fail(f"found {list(found)} in {case.seeds} seeds, not {case.finds}")


@pytest.mark.parametrize(("name", "breaks", "plan", "figure"), UNFOUND, ids=[u[0] for u in UNFOUND])
def test_what_breaks_no_promise_costs_something(
    name: str,
    breaks: Break,
    plan: Weather,
    figure: Callable[[Verdict], float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    intact = sum(figure(verdict(plan(seed))) for seed in range(2))

    breaks(monkeypatch)

    assert sum(figure(verdict(plan(seed))) for seed in range(2)) > intact, name
