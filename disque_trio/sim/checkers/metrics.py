"""Figures of a run (docs/guarantees.md, "Figures of a run")."""

from collections.abc import Sequence

import attrs

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.duplicates import UNAVOIDABLE, Duplicate
from disque_trio.sim.checkers.findings import Findings
from disque_trio.sim.scenarios.plan import Micros


@attrs.frozen
class Spread:
    """The distribution of a duration, in microseconds; zeros if it never occurred."""

    count: int = 0
    median: Micros = 0
    p99: Micros = 0
    longest: Micros = 0


def spread(values: Sequence[Micros]) -> Spread:
    """Return the distribution of some durations."""
    if not values:
        return Spread()
    ordered = sorted(values)
    last = len(ordered) - 1
    return Spread(len(ordered), ordered[last // 2], ordered[-(-last * 99 // 100)], ordered[-1])


@attrs.frozen
class CutFigures:
    """The figures of one interval during which a link was cut."""

    start: Micros
    end: Micros | None
    alive: int
    """The number of unfinished jobs when it began."""
    duplicates: int
    """The number of duplicates between whose previous lease and serve the cut, or the bound B after
    it, lay."""


@attrs.frozen(kw_only=True)
class Metrics:
    """The figures of one run."""

    jobs: int
    """The number of jobs created."""
    deliveries: int
    distinct: int
    """The number of jobs that were delivered at least once."""
    amplification: float
    """Deliveries per delivered job."""
    before_ack: int
    """The number of duplicates before the first ack of the job; `after_ack` counts those after
    it."""
    after_ack: int
    avoidable: int
    """The number of duplicates whose causes a better queue would avoid."""
    dominated: int
    """The number of duplicates after an ack of which messages of any kind could have informed the
    node."""
    recovered: int
    """The number of delivered jobs whose producers do not know that they were added."""
    repeated: int
    """The number of jobs delivered with the queue and body of another one (D13)."""
    cuts: tuple[CutFigures, ...]
    per_cut: float
    """Duplicates per cut, per job alive when it began, and per second of it."""
    per_cut_and_job: float
    per_cut_second: float
    redelivery: Spread
    """The time after the heal until overdue jobs were delivered."""
    collection: Spread
    """The time from the first ack of a job until no node has it."""
    messages_per_job: float


def measure(
    case: Case, findings: Findings, duplicates: Sequence[Duplicate], deliveries: int, distinct: int
) -> Metrics:
    """Return the figures of the run so far."""
    cuts = tuple(
        CutFigures(cut.start, cut.end, cut.alive, cut.duplicates) for cut in case.world.partitions
    )
    in_cuts = sum(cut.duplicates for cut in cuts)
    seconds = sum((case.now if cut.end is None else cut.end) - cut.start for cut in cuts) / 1e6
    after_ack = sum(duplicate.is_after_ack for duplicate in duplicates)
    return Metrics(
        jobs=case.jobs_created,
        deliveries=deliveries,
        distinct=distinct,
        amplification=_ratio(deliveries, distinct),
        before_ack=len(duplicates) - after_ack,
        after_ack=after_ack,
        avoidable=sum(duplicate.cause not in UNAVOIDABLE for duplicate in duplicates),
        dominated=sum(duplicate.is_dominated for duplicate in duplicates),
        recovered=case.marks["add.recovered"],
        repeated=case.repeated,
        cuts=cuts,
        per_cut=_ratio(in_cuts, len(cuts)),
        per_cut_and_job=_ratio(in_cuts, sum(cut.alive for cut in cuts)),
        per_cut_second=_ratio(in_cuts, seconds),
        redelivery=spread(findings.redelivery),
        collection=spread(case.collection_times),
        messages_per_job=_ratio(case.sends, case.jobs_created),
    )


def _ratio(one: float, other: float) -> float:
    return one / other if other else 0.0
