"""Queues with limits (S38 and L15; docs/guarantees.md, "Limits of queues").

S38: jobs are served only within CONCURRENCY and RATE, whatever happens to links, processes and
clocks, once all nodes know the limits. L15: in calm, what the limits allow is used.
"""

from typing import Final

from disque_trio.sim.checkers import copy_options
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.limited import Leased, Limited
from disque_trio.sim.checkers.obligations import DESYNC, MILLI, SECOND
from disque_trio.sim.checkers.records import FOREVER, NEVER, Job
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

KNOWN_AFTER: Final[Micros] = 5 * SECOND
"""Of calm: by then every node knows the limits, and has no grant by those of before."""
KEPT_TOKENS: Final[Micros] = 1_050 * MILLI
"""Tokens of so much time may be delivered at once besides BURST."""
SETTLED: Final[Micros] = 5 * SECOND
"""How long after the last lease of before a fault the whole limit is granted again."""
IDLE: Final[Micros] = 2 * SECOND
"""How long a client may wait for a job that the limits allow."""
USED: Final = 0.8
"""What part of a rate is used at least."""


# What happens.


def on_order(case: Case, row: Row) -> None:
    """QUEUE LIMIT is sent."""
    queue, *words = row.detail.split()
    if words == ["NONE"]:
        case.limits.pop(queue, None)
        return
    case.mark("limit.set")
    is_loose = words[-1] == "LOOSE"
    words = words[:-1] if is_loose else words
    said = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    before = case.limits.get(queue)
    case.limits[queue] = limited = Limited(
        row.time,
        said.get("CONCURRENCY", 0),
        said.get("RATE", 0),
        said.get("PER", 1) * SECOND,
        said.get("BURST", 0),
        is_loose,
    )
    if before is not None:
        limited.leases, limited.retry = before.leases, before.retry


def on_change(case: Case, row: Row) -> None:
    """Nodes come that do not know the limits, or not all nodes know how many there are."""
    if row.time > 0 and (row.kind != "start" or row.cause == "fresh"):
        for limited in case.limits.values():
            limited.ordered_at, limited.known_at = row.time, FOREVER


def on_start(case: Case, row: Row) -> None:
    """What workers of the process before still run does not count."""
    on_change(case, row)
    for limited in case.limits.values():
        for key in [key for key in limited.leases if key[0] == row.node]:
            del limited.leases[key]


def on_serve(case: Case, row: Row, job: Job) -> None:
    """S38: a job is delivered."""
    limited = case.limits.get(job.queue)
    if limited is None:
        return
    _note_known(case, limited)
    if any(kind == "cut" for kind, _ in case.world.blocked):
        case.mark("limit.in_cut")
    limited.served_at = row.time
    limited.served += 1
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
    """As the record has it while the ADDJOB is not known: its reply may have been lost."""
    return case.retry_of(job) or copy_options.read(job.first_record).get("retry", 0) * MILLI


def _ends_by(case: Case, since: Micros, retry: Micros) -> Micros:
    return since + case.obligations.longest(retry + DESYNC) + SECOND


def on_end(case: Case, row: Row, job: Job) -> None:
    """The node knows that its lease is over."""
    limited = case.limits.get(job.queue)
    if limited is None or (row.node, job.id) not in limited.leases:
        return
    if _is_full(limited, row.time):
        limited.full_at = row.time
    limited.leases.pop((row.node, job.id), None)


def on_told(case: Case, row: Row) -> None:
    """The node hears that another one has the job."""
    job = case.jobs.get(row.job)
    limited = None if job is None else case.limits.get(job.queue)
    lease = None if limited is None else limited.leases.get((row.node, row.job))
    if lease is not None:
        lease.is_certain = False


def on_working_ok(case: Case, row: Row, job: Job) -> None:
    """A lease is prolonged, maybe by a node that has not given it."""
    limited = case.limits.get(job.queue)
    retry = _retry_of(case, job)
    if limited is None or not retry:
        return
    invoked = case.operations.get((row.client, row.ref, row.job), NEVER)
    lease = limited.leases.get((row.node, row.job))
    until = _ends_by(case, row.time, retry)
    if lease is None:
        limited.leases[row.node, row.job] = Leased(row.time, NEVER, until, is_certain=False)
    else:
        lease.prolonged_until = invoked + case.obligations.lease(retry)
        lease.until_at_most = until


# S38.


def _note_known(case: Case, limited: Limited) -> None:
    """Do all nodes know the limits by now?"""
    if limited.known_at != FOREVER or case.now < limited.ordered_at + KNOWN_AFTER:
        return
    if case.world.is_calm(case.now - KNOWN_AFTER, case.now):
        limited.known_at = limited.level_at = case.now
        limited.level = 0.0


def _is_judged(case: Case, row: Row, limited: Limited) -> bool:
    """Do all nodes know the limits? Those that are loose may be exceeded by faults, until the
    leases of then have ended."""
    if limited.known_at == FOREVER:
        return False
    settled = row.time - limited.retry - SETTLED
    return not limited.is_loose or case.world.is_calm(settled, row.time)


def _judge_leases(case: Case, row: Row, limited: Limited) -> None:
    """No more leases than CONCURRENCY. What WORKING has prolonged counts in calm only."""
    if not _is_judged(case, row, limited):
        return
    certain = [each for each in limited.leases.values() if each.is_certain]
    count = sum(
        row.time <= each.until
        or (row.time <= each.prolonged_until and case.world.is_calm(each.since, row.time))
        for each in certain
    )
    case.check("S38")
    if count == limited.concurrency:
        case.mark("limit.reached")
    if count > limited.concurrency:
        detail = f"{count} jobs of {row.queue} are leased, {limited.concurrency} may be"
        case.violate("S38", detail, row.job, row.node)


def _judge_rate(case: Case, row: Row, limited: Limited) -> None:
    """In any time T no more deliveries than BURST, one more, and those of T and `KEPT_TOKENS`."""
    if not _is_judged(case, row, limited):
        limited.level, limited.level_at = 0.0, row.time
        return
    speed = limited.rate * (1 + 2 * case.obligations.rho) / limited.period
    come = (row.time - limited.level_at) * speed
    limited.level, limited.level_at = max(limited.level - come, 0.0) + 1, row.time
    kept = KEPT_TOKENS + case.obligations.no_processor
    most = limited.burst + 1 + kept * speed
    case.check("S38")
    if limited.level > limited.burst + 1:
        case.mark("rate.reached")
    if limited.level > most + 1e-6:
        detail = (
            f"{limited.level:.2f} more jobs of {row.queue} than its rate allows were delivered in "
            f"some time until now, {most:.2f} may be"
        )
        case.violate("S38", detail, row.job, row.node)


# L15.


def on_demand(case: Case, row: Row) -> None:
    """L15: clients wait for jobs that there are. Do the limits allow to deliver one?"""
    limited = case.limits.get(row.queue)
    if limited is None:
        return
    _note_known(case, limited)
    begun = int(row.detail.removeprefix("since="))
    if _is_full(limited, row.time):
        limited.full_at = row.time
    since = max(begun, limited.full_at, limited.known_at)
    settled = since - limited.retry - SETTLED
    if since >= row.time or not case.world.is_calm(settled, row.time) or _lacks_parts(case):
        return
    case.check("L15")
    last = max(since, limited.served_at)
    bound = IDLE + 8 * case.obligations.latency
    if limited.rate:
        bound += case.obligations.longest(limited.period // limited.rate)
    if row.time - last > bound:
        detail = (
            f"{row.queue} has had jobs, clients that wait, and nothing in its limits against it, "
            f"for {(row.time - last) / SECOND:.3f} s"
        )
        case.violate("L15", detail)
    if limited.rate and not limited.concurrency:
        _judge_use(case, row, limited, since)


def _judge_use(case: Case, row: Row, limited: Limited, since: Micros) -> None:
    """While clients wait all the time, most of the rate is used."""
    if limited.demand[0] != since:
        limited.demand = since, row.time, limited.served
    _, seen_at, served = limited.demand
    due = (row.time - seen_at - IDLE - 8 * case.obligations.latency) * limited.rate * USED
    count = limited.served - served
    if count + 1 < due / case.obligations.longest(limited.period):
        detail = (
            f"{count} jobs of {row.queue} were delivered in {(row.time - seen_at) / SECOND:.3f} s "
            f"in which clients waited, {limited.rate} may be in {limited.period / SECOND:g} s"
        )
        case.violate("L15", detail)


def _is_full(limited: Limited, now: Micros) -> bool:
    """May as many leases run as there may be, as far as nodes know?"""
    if not limited.concurrency:
        return False
    for key in [key for key, each in limited.leases.items() if each.until_at_most < now]:
        del limited.leases[key]
    return len(limited.leases) >= limited.concurrency


def _lacks_parts(case: Case) -> bool:
    """Does a node have a part of the limits that cannot be used, because it is gone or leaves?"""
    world = case.world
    return bool(world.removed or world.renamed or world.leaving)
