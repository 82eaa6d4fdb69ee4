"""Queues with limits (S38 and L15; docs/guarantees.md, "Limits of queues").

S38: once all nodes have the limits, jobs are served only within CONCURRENCY and RATE, under all
faults of links, processes and clocks. L15: in calm, jobs are delivered as far as the limits allow.
With LOOSE both are judged in calm, and during a long cut on each side by itself: each side has the
whole limits.

GROUP-CONCURRENCY and GROUP-RATE are judged in the same way, for each group by itself. If the queue
has limits of its own as well, L15 is not judged: one kind may forbid what the other allows.
"""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.copy_options import group_of
from disque_trio.sim.checkers.limited import Leased, Limited, OfGroup
from disque_trio.sim.checkers.obligations import DESYNC, MILLI, SECOND
from disque_trio.sim.checkers.records import FOREVER, NEVER, Job
from disque_trio.sim.checkers.sides import (
    WHOLE,
    Side,
    apart,
    contains,
    is_settled,
    settled_at,
    side_of,
)
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.terminal.counting import counted
from disque_trio.tracing.details import numbers
from disque_trio.tracing.rows import Row

KNOWN_AFTER: Final[Micros] = 5 * SECOND
"""After this time of calm every node has the limits, and no grant under earlier limits is left."""
KEPT_TOKENS: Final[Micros] = 1_050 * MILLI
"""Tokens for this long may be used at once in addition to BURST."""
SETTLED: Final[Micros] = 5 * SECOND
"""The whole limit is granted again this long after the end of the last lease from before a
fault."""
IDLE: Final[Micros] = 2 * SECOND
"""A client may wait this long for a job that the limits allow."""
USED: Final = 0.8
"""The part of a rate that must be used."""


# Events.


def on_order(case: Case, row: Row) -> None:
    """A client sends QUEUE LIMIT."""
    queue, *words = row.detail.split()
    if words == ["NONE"]:
        case.limits.pop(queue, None)
        return
    case.mark("limit.set")
    is_loose = "LOOSE" in words
    words = [word for word in words if word != "LOOSE"]
    settings = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    before = case.limits.get(queue)
    case.limits[queue] = limited = Limited(
        row.time,
        settings.get("CONCURRENCY", 0),
        settings.get("RATE", 0),
        settings.get("PER", 1) * SECOND,
        settings.get("BURST", 0),
        is_loose,
        OfGroup(
            settings.get("GROUP-CONCURRENCY", 0),
            settings.get("GROUP-RATE", 0),
            settings.get("GROUP-PER", 1) * SECOND,
            settings.get("GROUP-BURST", 0),
        ),
    )
    if before is None:
        return
    limited.leases, limited.retry = before.leases, before.retry
    if before.of_group.concurrency:
        for number, each in before.groups.items():
            group = limited.group(number)
            if group is not None:
                group.leases, group.retry = each.leases, each.retry


def on_change(case: Case, row: Row) -> None:
    """A node joins without the limits, or not all nodes know the number of nodes."""
    if row.time > 0 and (row.kind != "start" or row.cause == "fresh"):
        for limited in _all(case):
            limited.ordered_at, limited.known_at = row.time, FOREVER


def on_start(case: Case, row: Row) -> None:
    """A process starts: leases that its predecessor granted do not count."""
    on_change(case, row)
    for limited in _all(case):
        for key in [key for key in limited.leases if key[0] == row.node]:
            del limited.leases[key]


def on_serve(case: Case, row: Row, job: Job) -> None:
    """S38: a node delivers a job."""
    for limited in _of_job(case, job):
        _serve(case, row, job, limited)


def _all(case: Case) -> list[Limited]:
    """Return the queues and groups with limits."""
    return [each for limited in case.limits.values() for each in limited.all]


def _of_job(case: Case, job: Job | None) -> list[Limited]:
    """Return the limits that a job counts towards: those of its queue and of its group."""
    limited = None if job is None else case.limits.get(job.queue)
    if limited is None or job is None:
        return []
    group = limited.group(group_of(job)) if limited.of_group.is_set else None
    return [limited] if group is None else [limited, group]


def _serve(case: Case, row: Row, job: Job, limited: Limited) -> None:
    _note_known(case, limited)
    if any(kind == "cut" for kind, _ in case.world.blocked):
        case.mark("limit.in_cut")
    limited.served_at[row.node] = row.time
    limited.served[row.node] = limited.served.get(row.node, 0) + 1
    retry = _retry_of(case, job)
    if limited.concurrency and retry and case.obligations.has_lease:
        limited.retry = max(limited.retry, retry)
        limited.leases[row.node, job.id] = Leased(
            row.time, row.time + case.obligations.lease(retry), _ends_by(case, row.time, retry)
        )
        _judge_leases(case, row, limited)
    if limited.rate:
        _judge_rate(case, row, limited)


def _retry_of(case: Case, job: Job) -> Micros:
    """Return RETRY, from the record while the ADDJOB is unknown: its reply may have been lost."""
    return case.retry_of(job) or numbers(job.first_record).get("retry", 0) * MILLI


def _ends_by(case: Case, since: Micros, retry: Micros) -> Micros:
    return since + case.obligations.longest(retry + DESYNC) + SECOND


def on_end(case: Case, row: Row, job: Job) -> None:
    """The node's lease has ended."""
    for limited in _of_job(case, job):
        if (row.node, job.id) not in limited.leases:
            continue
        for side in dict.fromkeys((WHOLE, _side(case, limited, row.node))):
            if side is not None and _is_full(limited, side, row.time):
                limited.full_at[side] = row.time
        limited.leases.pop((row.node, job.id), None)


def after_received(case: Case, row: Row) -> None:
    """The node learns that another node has leased the job."""
    for limited in _of_job(case, case.jobs.get(row.job)):
        lease = limited.leases.get((row.node, row.job))
        if lease is not None:
            lease.is_certain = False


def on_working_ok(case: Case, row: Row, job: Job) -> None:
    """WORKING renews a lease, maybe at a node that has not granted it."""
    retry = _retry_of(case, job)
    if not retry:
        return
    invoked = case.operations.get((row.client, row.ref, row.job), NEVER)
    until = _ends_by(case, row.time, retry)
    for limited in _of_job(case, job):
        lease = limited.leases.get((row.node, row.job))
        if lease is None:
            limited.leases[row.node, row.job] = Leased(row.time, NEVER, until, is_certain=False)
        else:
            lease.prolonged_until = invoked + case.obligations.lease(retry)
            lease.until_at_most = until


# Sides.


def _side(case: Case, limited: Limited, node: str) -> Side | None:
    """Return the side whose deliveries count together with those of the node; None if uncertain."""
    return side_of(case.world, node) if limited.is_loose else WHOLE


def _note_known(case: Case, limited: Limited) -> None:
    """Record it if all nodes have the limits by now."""
    if limited.known_at != FOREVER or case.now < limited.ordered_at + KNOWN_AFTER:
        return
    if case.world.is_calm(case.now - KNOWN_AFTER, case.now):
        limited.known_at = case.now
        limited.levels.clear()


# S38.


def _is_judged(case: Case, row: Row, limited: Limited) -> bool:
    """Do all nodes have the limits? A fault may exceed loose ones until the leases of that time
    have ended."""
    if limited.known_at == FOREVER:
        return False
    settled = row.time - limited.retry - SETTLED
    return not limited.is_loose or is_settled(case.world, settled, row.time)


def _judge_leases(case: Case, row: Row, limited: Limited) -> None:
    """S38: there are no more leases than CONCURRENCY. Leases renewed by WORKING count in calm
    only."""
    side = _side(case, limited, row.node)
    if side is None or not _is_judged(case, row, limited):
        return
    count = sum(
        row.time <= each.until
        or (row.time <= each.prolonged_until and case.world.is_calm(each.since, row.time))
        for (node, _), each in limited.leases.items()
        if each.is_certain and contains(side, node)
    )
    case.check("S38")
    if count == limited.concurrency:
        case.mark("limit.reached")
    if count > limited.concurrency:
        detail = f"{counted(count, 'job')} of {row.queue} leased, of {limited.concurrency} at most"
        case.violate("S38", detail, row.job, row.node)


def _judge_rate(case: Case, row: Row, limited: Limited) -> None:
    """S38: within any time T there are at most BURST deliveries, plus those that the rate allows in
    T and `KEPT_TOKENS`, plus one for each possible keeper, which may have saved a whole token."""
    side = _side(case, limited, row.node)
    if side is None or not _is_judged(case, row, limited):
        limited.levels.clear()
        return
    level, level_at, keepers = limited.levels.get(side, (0.0, row.time, 1))
    speed = limited.rate * (1 + 2 * case.obligations.rho) / limited.period
    level -= (row.time - level_at) * speed
    if level <= 0:
        level, keepers = 0.0, 1
    if not limited.is_loose:
        keepers = max(keepers, apart(case.world, row.time))
    level += 1
    limited.levels[side] = level, row.time, keepers
    kept = KEPT_TOKENS + case.obligations.no_processor
    most = limited.burst + keepers + kept * speed
    case.check("S38")
    if level > limited.burst + 1:
        case.mark("rate.reached")
    if level > most + 1e-6:
        detail = (
            f"{level:.2f} more jobs of {row.queue} than its rate allows were delivered in "
            f"some time until now, {most:.2f} may be"
        )
        case.violate("S38", detail, row.job, row.node)


# L15.


def on_demand(case: Case, row: Row) -> None:
    """L15: clients wait while jobs are queued, at this node or at any node. Do the limits allow a
    delivery?"""
    limited = case.limits.get(row.queue)
    if limited is not None and limited.of_group.is_set:
        has_both = limited.concurrency or limited.rate
        number = numbers(row.detail).get("group", -1)
        limited = None if has_both else limited.group(number)
    if limited is None:
        return
    if not row.node:
        _note_known(case, limited)
        _judge_demand(case, row, limited, WHOLE)
    elif limited.is_loose:
        side = side_of(case.world, row.node)
        if side is not None and side != WHOLE:
            _judge_demand(case, row, limited, side)


def _judge_demand(case: Case, row: Row, limited: Limited, side: Side) -> None:
    if _is_full(limited, side, row.time):
        limited.full_at[side] = row.time
    since = _free_since(case, row, limited, side)
    settled = since - limited.retry - SETTLED
    if since >= row.time or not is_settled(case.world, settled, row.time) or _lacks_parts(case):
        return
    if side == WHOLE and case.world.blocked:
        return
    case.check("L15")
    if side != WHOLE:
        case.mark("limit.of_side")
    served = [limited.served_at[node] for node in limited.served_at if contains(side, node)]
    last = max([since, *served])
    bound = IDLE + 8 * case.obligations.latency
    if limited.rate:
        bound += case.obligations.longest(limited.period // limited.rate)
    if row.time - last > bound:
        detail = (
            f"{row.queue} has had jobs, clients that wait{_at(side)}, and nothing in its limits "
            f"against it, for {(row.time - last) / SECOND:.3f} s"
        )
        case.violate("L15", detail)
    if limited.rate and not limited.concurrency:
        _judge_use(case, row, limited, side, since)


def _free_since(case: Case, row: Row, limited: Limited, side: Side) -> Micros:
    """Return since when nothing known keeps jobs from the clients. Clients of one side may have
    waited since before the cut."""
    begun = numbers(row.detail)["since"]
    since = max(begun, limited.full_at.get(side, NEVER), limited.known_at)
    settled = settled_at(case.world)
    if settled is None:
        return since
    return max(since, settled + limited.retry + SETTLED)


def _at(side: Side) -> str:
    return f" at {','.join(side)}" if side else ""


def _judge_use(case: Case, row: Row, limited: Limited, side: Side, since: Micros) -> None:
    """L15: while clients wait without interruption, most of the rate is used."""
    served = sum(count for node, count in limited.served.items() if contains(side, node))
    if side not in limited.demands or limited.demands[side][0] != since:
        limited.demands[side] = since, row.time, served
    _, seen_at, before = limited.demands[side]
    due = (row.time - seen_at - IDLE - 8 * case.obligations.latency) * limited.rate * USED
    count = served - before
    if count + 1 < due / case.obligations.longest(limited.period):
        detail = (
            f"{row.queue}: {counted(count, 'delivery', 'deliveries')} in "
            f"{(row.time - seen_at) / SECOND:.3f} s in which clients waited{_at(side)}, "
            f"{limited.rate} may be in {limited.period / SECOND:g} s"
        )
        case.violate("L15", detail)


def _is_full(limited: Limited, side: Side, now: Micros) -> bool:
    """May all leases be in use, as far as nodes know?"""
    if not limited.concurrency:
        return False
    for key in [key for key, each in limited.leases.items() if each.until_at_most < now]:
        del limited.leases[key]
    return sum(contains(side, node) for node, _ in limited.leases) >= limited.concurrency


def _lacks_parts(case: Case) -> bool:
    """Does a node have a share of the limits that cannot be used, because it was removed, renamed
    or is leaving?"""
    world = case.world
    return bool(world.removed or world.renamed or world.leaving)
