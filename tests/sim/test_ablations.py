"""one part of the node broken at a time: the checkers find what is wrong.

Each case names the plan, what is expected to be found (any of these), and within how many seeds.
What is not found breaks no promise: it saves messages or time, and the figure says how much.
"""

from collections.abc import Callable
from typing import Final

import attrs
import pytest

from disque_trio.sim.checkers.verdict import Verdict, judge
from disque_trio.sim.engines.heap.nodes import MachineError
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.statemachine.messages import (
    DelJob,
    GotAck,
    GotJob,
    HaveJobs,
    NeedJobs,
    Queued,
    SetAck,
    Waiting,
    WillQueue,
    Working,
    YourJobs,
)
from tests.sim.ablations import (
    attended,
    broken,
    brokencopies,
    brokenengine,
    brokenextensions,
    brokenkeys,
    brokenletters,
    brokenrecords,
    brokenreplies,
    brokenwaits,
    brokenworkers,
    conditions,
    upkeep,
)
from tests.sim.mutants.plans import full

Break = Callable[[broken.Patch], None]
Weather = Callable[[int], Plan]


def verdict(plan: Plan) -> Verdict:
    """A machine that raises ends its run; the checkers have seen the row."""
    checkers = judge(plan)
    try:
        simulate(plan, checkers.see)
    except MachineError:
        assert checkers.violated is not None
    return checkers.finish()


@attrs.frozen
class Case:
    """What is broken, where it shows, and how."""

    breaks: Break
    plan: Weather
    finds: str
    """Properties and causes of duplicates: each must be found."""
    seeds: int = 3
    name: str = ""


_LAGGING: Final = conditions.shipped("ack-vs-federation")
_MOVED: Final = conditions.shipped("moved-jobs")
_ZONES: Final = conditions.shipped("zones")
_BACKOFF: Final = conditions.shipped("backoff")
_OLD_NEWS: Final = conditions.shipped("backoff", first=26)
_WORKERS: Final = conditions.shipped("workers")
_UNKNOWN: Final = conditions.pinned("careless-clients-2")
_PRIORITIES: Final = conditions.shipped("priorities")
FOUND: Final = (
    # Who has it queued.
    Case(broken.ignoring(Queued), conditions.backlog, "S10 D5", name="ignoring-queued"),
    Case(broken.without_tie_break, conditions.distant, "S10"),
    Case(broken.on_some_nodes_reversed, conditions.distant, "S10"),
    Case(broken.silent_requeue, conditions.backlog, "S10 D5"),
    Case(broken.silent_import, conditions.movers, "S10"),
    Case(broken.never_armed_again, conditions.careless, "L2"),
    Case(broken.paused_queues_take_back, conditions.pauses, "S6"),
    Case(broken.paused_queues_deliver, conditions.pauses, "S6"),
    Case(brokenrecords.paused_queues_give, conditions.pauses, "S6"),
    Case(brokenrecords.paused_queues_take_copies, conditions.pauses, "S6"),
    Case(brokenrecords.paused_queues_deliver_once, upkeep.paused_once, "S6"),
    # Leases and time.
    Case(broken.without_lease, conditions.queue_and_work, "S11 DX"),
    Case(broken.lease_not_told, conditions.queue_and_work, "S11 DX"),
    Case(broken.ignoring(Working), conditions.queue_and_work, "S11 DX", name="ignoring-working"),
    Case(broken.half_a_period, conditions.queue_and_work, "S11 DX"),
    Case(broken.delivered_and_done, conditions.careless, "L2", seeds=1),
    Case(broken.by_the_wall_clock, conditions.jumps, "S11 D10", seeds=6),
    Case(broken.without_expiry, conditions.short_lives, "S7"),
    Case(broken.never_expired, conditions.nobody, "L4", seeds=1),
    Case(broken.without_delay, conditions.delays, "S6"),
    Case(broken.half_the_delay, conditions.delays, "S6"),
    # Copies.
    Case(brokencopies.zones_ignored, _ZONES, "S30", seeds=1),
    Case(brokencopies.dying_with_a_zone, _ZONES, "S31", seeds=1),
    Case(brokencopies.senders_unlisted, conditions.short_lives, "D3c S11", seeds=4),
    Case(brokencopies.holders_not_introduced, _UNKNOWN, "D6", seeds=1),
    Case(brokencopies.lists_not_joined, _LAGGING, "S2", seeds=4),
    Case(brokencopies.importers_unlisted, _LAGGING, "S2 D3c", seeds=4),
    Case(brokencopies.confirmed_by_one, conditions.calm, "S1"),
    Case(brokencopies.confirmed_without_a_copy, conditions.calm, "S1"),
    Case(brokencopies.cleaned_up_after_success, conditions.calm, "S2 S1"),
    Case(brokencopies.sleeping_copies, conditions.orphans, "L1", seeds=1),
    Case(brokencopies.refused_by_minorities, conditions.alone, "L5"),
    Case(brokencopies.links_not_restored, conditions.island, "L6", seeds=1),
    Case(broken.without_repair, conditions.shipped("repair"), "L7", seeds=1),
    Case(broken.anything_evicted, conditions.squeezed, "S2 S1", seeds=2),
    Case(broken.confirmed_before_synced, conditions.blackouts, "S15", seeds=2),
    Case(brokenrecords.acks_not_written, upkeep.killings, "S15"),
    Case(brokenrecords.dummies_not_written, upkeep.killings_of_unknown_jobs, "S15"),
    Case(brokenrecords.drops_not_written, upkeep.killings, "S15"),
    Case(brokenrecords.copies_not_written, upkeep.killings, "S15"),
    Case(brokenrecords.once_not_written, upkeep.killings_once, "S15"),
    Case(brokenrecords.delays_by_creators, upkeep.delayed_killings, "S6"),
    Case(brokenrecords.stopped_without_mark, upkeep.stoppings, "S21"),
    Case(brokenrecords.mark_never_void, upkeep.stoppings, "S21"),
    Case(brokenrecords.queues_not_followed, upkeep.stoppings, "S21"),
    Case(brokenrecords.receivers_not_written, _MOVED, "S2", seeds=12),
    Case(brokencopies.ids_told_wrong, conditions.once, "S4"),
    # Keys.
    Case(brokenkeys.asking_nobody, brokenkeys.keyed, "S24", seeds=1),
    Case(brokenkeys.not_waiting_for_others, brokenkeys.keyed, "S24", seeds=1),
    Case(brokenkeys.not_asking_again, brokenkeys.keyed, "S24"),
    Case(brokenkeys.ends_not_told, brokenkeys.acked_afar, "S25"),
    Case(brokenkeys.gone_told_as_acked, brokenkeys.failing, "S25"),
    Case(brokenkeys.keys_kept_for_ever, brokenkeys.keyed, "S25"),
    Case(brokenkeys.keys_not_kept, brokenkeys.keeping, "S24", seeds=1),
    Case(brokenkeys.keys_not_loaded, brokenkeys.restarted, "S24", seeds=1),
    Case(brokenkeys.not_meeting, brokenkeys.parted, "L11", seeds=1),
    Case(brokenkeys.any_goes, brokenkeys.parted, "S27"),
    Case(brokenkeys.the_earlier_goes, brokenkeys.parted, "S27", seeds=1),
    Case(brokenkeys.following_at_once, brokenkeys.followed, "S28", seeds=1),
    Case(brokenkeys.following_never, brokenkeys.followed, "L12", seeds=1),
    Case(brokenkeys.one_node_asks, brokenkeys.orphaned, "L1", seeds=1),
    Case(brokenkeys.many_wishes, brokenkeys.followed, "S24", seeds=4),
    Case(brokenkeys.replacing_nothing, brokenkeys.debounced, "S29", seeds=1),
    Case(brokenkeys.replacing_first, brokenkeys.followed, "S29", seeds=1),
    Case(brokenkeys.replacing_at_work, brokenkeys.followed, "S29", seeds=1),
    # Dead letters.
    Case(brokenletters.limits_ignored, brokenletters.letters, "S26", seeds=1),
    Case(brokenletters.limits_reached_early, brokenletters.letters, "S26", seeds=1),
    Case(brokenletters.states_not_told, brokenletters.letters, "S26", seeds=1),
    Case(brokenletters.states_not_believed, brokenletters.letters, "S26", seeds=1),
    Case(brokenletters.deaths_not_told_on_return, brokenletters.cut_off, "L10"),
    Case(brokenletters.death_for_good, brokenletters.letters, "S26", seeds=1),
    Case(brokenletters.copies_live, brokenletters.lost_letters, "S26", seeds=1),
    Case(brokenletters.deaths_not_written, brokenletters.written_letters, "S15", seeds=1),
    Case(brokenletters.deaths_that_expire_with_the_job, brokenletters.letters, "S26", seeds=1),
    Case(brokenletters.buried_and_queued, brokenletters.letters, "S26", seeds=1),
    Case(brokenletters.counters_kept, brokenletters.letters, "S14 S26", seeds=1),
    Case(brokenletters.living_purged, brokenletters.letters, "S23", seeds=1),
    Case(brokenletters.death_taken_for_expiry, brokenletters.awaited_letters, "S23", seeds=1),
    # What copies say, when they are queued, and whom nodes know.
    Case(brokenrecords.retry_of_copies_doubled, conditions.calm, "S16"),
    Case(brokenrecords.copies_want_no_others, conditions.calm, "S16"),
    Case(brokenrecords.copies_born_now, conditions.calm, "S16"),
    Case(brokenrecords.copies_cut_short, conditions.calm, "S16"),
    Case(brokenrecords.copies_without_delay, conditions.delays, "S16"),
    Case(brokenrecords.copies_live_anew, conditions.backlog, "S16"),
    Case(brokenrecords.a_second_late, conditions.careless, "L8"),
    Case(brokenrecords.late_after_delay, conditions.delays, "L8"),
    Case(brokenrecords.put_off_for_ever, conditions.careless, "L8"),
    Case(brokenrecords.queued_once_told, conditions.calm, "L8"),
    Case(brokenrecords.memory_not_let_off, conditions.calm, "S17"),
    Case(brokenrecords.forgetting_nobody, upkeep.forgotten, "S18"),
    Case(brokenrecords.back_by_gossip, upkeep.forgotten, "S18"),
    Case(brokenrecords.failed_for_good, conditions.island, "S18"),
    Case(brokenrecords.verdicts_not_checked, conditions.pinned("swarm-66902"), "S18", seeds=1),
    Case(brokenrecords.left_for_good, upkeep.newcomer, "S18"),
    Case(brokenrecords.names_made_up, upkeep.newcomer, "S18"),
    Case(brokenrecords.acks_counted_by_words, upkeep.two_queues, "S19"),
    Case(brokenrecords.acks_not_counted, conditions.calm, "S19"),
    Case(brokenrecords.right_to_left, upkeep.two_queues, "S19"),
    Case(brokenreplies.stale_entries_counted, upkeep.observed, "S22"),
    Case(brokenreplies.stale_entries_shown, upkeep.observed, "S22"),
    Case(brokenreplies.newest_first_shown, upkeep.observed, "S22"),
    Case(brokenreplies.queued_shown_as_active, upkeep.observed, "S22"),
    Case(brokenreplies.everybody_shown_as_holder, upkeep.observed, "S22"),
    Case(brokenreplies.other_holders_not_shown, upkeep.observed, "S22"),
    # Acknowledgements.
    Case(brokencopies.collected_at_once, conditions.crowd, "S2 D6", seeds=5),
    Case(brokencopies.ack_not_kept, conditions.backlog, "S2"),
    Case(brokencopies.without_dummies, conditions.crowd, "D1"),
    Case(brokencopies.dummies_vouch, conditions.far_acks, "S2"),
    Case(broken.ignoring(SetAck), conditions.calm, "S9 L10", seeds=1, name="ignoring-setack"),
    Case(brokencopies.setack_ignored, conditions.island, "S9", seeds=2),
    Case(brokencopies.acked_holders_silent, conditions.lost_setacks, "D2", seeds=6),
    Case(broken.ignoring(GotAck), conditions.calm, "L3", seeds=1, name="ignoring-gotack"),
    Case(brokencopies.not_told_on_return, conditions.returners, "L10", seeds=6),
    Case(brokencopies.acks_overruled, _LAGGING, "S8", seeds=2),
    Case(brokencopies.unknown_jobs_not_fastacked, _MOVED, "S19", seeds=1),
    Case(broken.without_tombstones, _LAGGING, "D7", seeds=2),
    # Federation and queues.
    Case(broken.given_and_kept, conditions.once, "S5"),
    Case(broken.once_queued_again, conditions.once, "S5"),
    Case(broken.ignoring(NeedJobs), conditions.calm, "L1", seeds=1, name="ignoring-needjobs"),
    Case(broken.ignoring(YourJobs), conditions.calm, "L1", seeds=1, name="ignoring-yourjobs"),
    Case(broken.ignoring(Waiting), conditions.calm, "L9", seeds=1, name="ignoring-waiting"),
    Case(broken.ignoring(HaveJobs), conditions.calm, "L9", seeds=1, name="ignoring-havejobs"),
    Case(brokenrecords.offers_not_made, conditions.calm, "L9", seeds=1),
    Case(brokenrecords.asked_later, conditions.calm, "L9", seeds=1),
    Case(brokenrecords.declined_and_offered_at_once, conditions.careless, "S33", seeds=1),
    Case(brokenrecords.offered_once, upkeep.stopped, "L9", seeds=2),
    Case(brokenrecords.not_told_who_waits, upkeep.restarted, "L9", seeds=2),
    Case(broken.youngest_first, conditions.backlog, "S13"),
    Case(brokenextensions.priorities_ignored, _PRIORITIES, "S13"),
    Case(brokenextensions.priorities_reversed_when_peeked, _PRIORITIES, "S22", seeds=6),
    Case(brokenextensions.copies_without_extensions, _PRIORITIES, "S16"),
    Case(brokenextensions.extensions_not_written, upkeep.ranked_killings, "S16"),
    Case(broken.bodies_cut_short, conditions.calm, "S3"),
    Case(broken.counting_twice, conditions.careless, "S14"),
    Case(broken.counting_nothing, conditions.careless, "S14"),
    Case(broken.raising, conditions.calm, "S12"),
    # Jobs that wait after a NACK.
    Case(brokenwaits.waits_not_told, _BACKOFF, "S6", seeds=1),
    Case(brokenwaits.waits_not_repeated, _BACKOFF, "S6", seeds=1),
    Case(brokenwaits.waits_not_heard, _BACKOFF, "S6", seeds=1),
    Case(brokenwaits.waits_cut_short, _BACKOFF, "S6", seeds=1),
    Case(brokenwaits.waits_ended_by_old_news, _OLD_NEWS, "S6", seeds=1),
    Case(brokenwaits.waits_that_do_not_grow, conditions.back_offs, "S32", seeds=1),
    Case(brokenwaits.nobody_takes_over, _BACKOFF, "L2 L8", seeds=1),
    Case(brokenwaits.waits_counted_twice, _BACKOFF, "S14", seeds=1),
    Case(brokenwaits.waits_not_recorded, brokenwaits.recorded_waits, "S6"),
    # What clients ask for, and what operators say.
    Case(brokenworkers.tokens_not_checked, _WORKERS, "S23", seeds=8),
    Case(brokenworkers.tokens_forgotten, _WORKERS, "S23", seeds=8),
    Case(brokenworkers.releases_counted, _WORKERS, "S14", seeds=1),
    Case(brokenworkers.ties_ignored, attended.tied, "S23", seeds=1),
    Case(brokenworkers.without_grace, attended.tied, "S23", seeds=1),
    Case(brokenworkers.purging_what_has_left, attended.purged, "S23", seeds=1),
    Case(brokenworkers.expiry_taken_for_an_ack, attended.awaited, "S23", seeds=1),
    Case(broken.maxlen_ignored, full, "S20"),
    # The engine of the worker library.
    Case(brokenengine.failures_acknowledged, brokenengine.CALM, "W1", seeds=1),
    Case(brokenengine.leases_never_end, brokenengine.TROUBLED, "W2", seeds=6),
    Case(brokenengine.begun_without_margin, brokenengine.TROUBLED, "W3", seeds=1),
    Case(brokenengine.counted_from_the_reading, attended.stalled, "W3", seeds=1),
    Case(brokenengine.not_renewed_while_stopping, brokenengine.CALM, "W4", seeds=1),
    Case(brokenengine.running_beyond_leases, brokenengine.CALM, "W9"),
    Case(brokenengine.renewed_at_the_end, brokenengine.CALM, "W4", seeds=1),
    Case(brokenengine.taken_without_limit, brokenengine.CALM, "W5", seeds=1),
    Case(brokenengine.held_by_number, brokenengine.PREFETCH, "W5", seeds=1),
    Case(brokenengine.given_up_asking, brokenengine.CALM, "W7", seeds=1),
    Case(brokenengine.stopping_without_end, brokenengine.CALM, "W8", seeds=1),
    Case(brokenengine.forgotten_when_stopping, brokenengine.CALM, "W10", seeds=1),
    Case(brokenengine.suspects_beside_others, brokenengine.CALM, "W11", seeds=2),
    Case(brokenengine.begun_before_others_are_back, brokenengine.TROUBLED, "W11", seeds=4),
    Case(brokenengine.begun_as_they_come, brokenengine.PREFETCH, "W12", seeds=1),
    Case(broken.delivered_and_done, brokenengine.CALM, "W6", seeds=2, name="delivered-by-engine"),
    Case(broken.stays_while_leaving, conditions.shipped("leave-join-roll"), "S20", seeds=2),
)


@attrs.frozen
class Price:
    """What is broken costs this much more, and breaks no promise."""

    name: str
    breaks: Break
    plan: Weather
    metric: str
    figure: Callable[[Verdict], float]


def _refused(verdict: Verdict) -> float:
    return verdict.marks["add.refused"] + verdict.marks["add.unknown"]


def _races(verdict: Verdict) -> float:
    return verdict.duplicates.get("D5", 0)


UNFOUND: Final = (
    Price(
        "ignoring-willqueue",
        broken.ignoring(WillQueue),
        conditions.distant,
        "duplicates by races (D5)",
        _races,
    ),
    Price(
        "ignoring-deljob",
        broken.ignoring(DelJob),
        conditions.calm,
        "how long acknowledged jobs stay",
        lambda v: v.metrics.collection.p99,
    ),
    Price("ignoring-gotjob", broken.ignoring(GotJob), conditions.calm, "adds that fail", _refused),
    Price(
        "without-widening",
        brokencopies.without_widening,
        conditions.unsure,
        "adds that fail",
        _refused,
    ),
    Price(
        "without-clean-up",
        brokencopies.without_clean_up,
        conditions.refusals,
        "deliveries of jobs whose ADDJOB failed",
        lambda v: v.metrics.recovered,
    ),
    Price(
        "without-back-off",
        brokencopies.without_back_off,
        conditions.island,
        "messages for each job",
        lambda v: v.metrics.messages_per_job,
    ),
    Price(
        "in-step",
        broken.in_step,
        conditions.distant,
        "duplicates by races (D5)",
        _races,
    ),
)


def named(case: Case) -> str:
    return case.name or getattr(case.breaks, "__name__", "").replace("_", "-")


WEATHERS: Final = {
    each.plan.__name__: (each.plan, max(c.seeds for c in FOUND if c.plan is each.plan))
    for each in FOUND
    if any(hasattr(plans, each.plan.__name__) for plans in (attended, conditions, upkeep))
}
"""Scenarios that are shipped have tests of their own."""


@pytest.mark.parametrize("name", WEATHERS)
def test_the_intact_node_passes(name: str) -> None:
    plan, seeds = WEATHERS[name]

    for seed in range(seeds):
        assert verdict(plan(seed)).violations == (), seed


@pytest.mark.parametrize("case", FOUND, ids=named)
def test_the_judge_finds_what_is_broken(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.breaks(monkeypatch)
    missing = dict.fromkeys(case.finds.split())
    found: dict[str, None] = {}

    for seed in range(case.seeds):
        found |= dict.fromkeys(each.property for each in verdict(case.plan(seed)).violations)
        if missing.keys() <= found.keys():
            return

    pytest.fail(f"found {list(found)} in {case.seeds} seeds, not {case.finds}")


@pytest.mark.parametrize("price", UNFOUND, ids=lambda price: price.name)
def test_what_breaks_no_guarantee_costs_something(
    price: Price, monkeypatch: pytest.MonkeyPatch
) -> None:
    intact = sum(price.figure(verdict(price.plan(seed))) for seed in range(2))

    price.breaks(monkeypatch)

    assert sum(price.figure(verdict(price.plan(seed))) for seed in range(2)) > intact
