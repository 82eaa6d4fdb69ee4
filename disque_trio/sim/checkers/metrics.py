"""Figures of a run (docs/guarantees.md, "Figures of a run")."""

from collections.abc import Sequence

import attrs

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.duplicates import UNAVOIDABLE, Duplicate
from disque_trio.sim.checkers.findings import Findings
from disque_trio.sim.scenarios.plan import Micros


@attrs.frozen
class Spread:
    """How a duration spreads, in microseconds; zeros if it never occurred."""

    count: int = 0
    median: Micros = 0
    p99: Micros = 0
    longest: Micros = 0


def spread(values: Sequence[Micros]) -> Spread:
    """The spread of some durations."""
    if not values:
        return Spread()
    ordered = sorted(values)
    last = len(ordered) - 1
    return Spread(len(ordered), ordered[last // 2], ordered[-(-last * 99 // 100)], ordered[-1])


@attrs.frozen
class CutFigures:
    """One time during which something was cut."""

    start: Micros
    end: Micros | None
    alive: int
    """Unfinished jobs when it began."""
    duplicates: int
    """Those whose span, from the lease before to the serve, meets the cut or the bound B after."""


@attrs.frozen(kw_only=True)
class Metrics:
    """The figures of one run."""

    jobs: int
    """How many were made."""
    deliveries: int
    distinct: int
    """Jobs that came out at all."""
    amplification: float
    """Deliveries for each of these."""
    before_ack: int
    """Duplicates before anybody had acknowledged the job, and after."""
    after_ack: int
    avoidable: int
    """Duplicates of causes that a better queue would not have."""
    dominated: int
    """Duplicates after an ack of which messages of any kind could have told the node."""
    recovered: int
    """Jobs that came out though their producers do not know of them."""
    repeated: int
    """Jobs that brought what another had brought (D13)."""
    cuts: tuple[CutFigures, ...]
    per_cut: float
    """Duplicates for each cut, for each job alive when it began, and for each second of it."""
    per_cut_and_job: float
    per_cut_second: float
    redelivery: Spread
    """After the heal: how long until jobs came that were waited for."""
    collection: Spread
    """From the first ack of a job until no node has it."""
    messages_per_job: float


def measure(
    case: Case, findings: Findings, duplicates: Sequence[Duplicate], deliveries: int, distinct: int
) -> Metrics:
    """The figures of the run so far."""
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
