"""Repair (L7): copies on permanently lost nodes are re-created on others."""

from disque_trio.sim.checkers import zones
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.cluster_liveness import is_whole
from disque_trio.sim.checkers.findings import Findings
from disque_trio.sim.checkers.intervals import meets_any
from disque_trio.sim.checkers.obligations import SECOND
from disque_trio.sim.checkers.records import NEVER, Job
from disque_trio.sim.checkers.refusals import was_short_of_memory
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.terminal.counting import counted
from disque_trio.tracing.rows import Row


def judge_before_heal(case: Case, row: Row) -> None:
    """L7 and S30, while nodes are lost and nothing else is wrong. Later an operator makes the other
    nodes forget them, after which their copies are replaced at once."""
    world = case.world
    if not world.removed or case.is_live or not case.obligations.repair_after:
        return
    since = max(world.crashes[node].time for node in world.removed if node in world.crashes)
    fit = [node for node in world.nodes if world.is_up(node) and not case.may_leave(node)]
    troubles = [*world.link_troubles.values(), *world.pauses.values(), world.planned]
    troubles += [found for node, found in world.outages.items() if node not in world.removed]

    if 2 * len(fit) <= _size(case, fit):
        return  # no majority is left to decide that a node has failed

    def is_calm(since: Micros) -> bool:
        return not any(meets_any(found, since, row.time) for found in troubles)

    if (
        not is_calm(since)
        or row.time - since <= case.obligations.repair
        or case.obligations.has_tail
    ):
        return
    for job in case.jobs.values():
        options, gone = job.options, [node for node in job.lost_on if node in world.removed]
        if options is None or not gone or not options.retry or not job.is_added:
            continue
        may_hold = [node for node in fit if not _lacks_it_unnoticed(case, job, node)]
        due = min(
            _noticed(case, job, options.replicate),
            sum(_has_room(case, job, node, since) for node in may_hold),
        )
        have = sum(node in fit for node in job.copies)
        if not have or job.ended is not None or case.has_expired(job):
            continue
        if have >= options.replicate and job.created_at is not None and is_calm(job.created_at):
            zones.after_repair(case, job, fit)
        if (
            have >= due
            or _are_lists_wrong(case, job, fit, due)
            or _seem_enough(case, job, fit, due)
        ):
            continue
        case.check("L7")
        lasted = (row.time - since) / SECOND
        copies = counted(due, "copy", "copies")
        detail = f"{have} of {copies} {lasted:.3f} s after {' '.join(gone)} went for good"
        case.violate("L7", detail, job.id)


def _size(case: Case, nodes: list[str]) -> int:
    """Return the size of the cluster, as in the largest node table of these nodes."""
    return max((len({node, *case.node_tables.get(node, ())}) for node in nodes), default=0)


def judge_repair(case: Case, job: Job, findings: Findings) -> None:
    """L7: copies on permanently lost nodes are replaced as far as possible, and copies that SYNC
    did not wait for are created, but not those of ASYNC. If a node restarts without its copy, no
    other node detects that, so the copy is not replaced."""
    world, options = case.world, job.options
    assert world.healed is not None
    assert options is not None, job.id
    gone = [node for node in job.lost_on if node in world.removed]
    is_awaited = options.is_async or options.sync >= options.replicate
    if not gone and (is_awaited or not job.is_added):
        return
    if not options.retry or case.has_expired(job):
        return
    if not case.obligations.repair_after and (job.lost_on or not world.in_core(job.origin)):
        return  # only the node that added the job creates the copies that SYNC did not wait for
    if any(queue == job.queue for _, queue in world.queue_pauses.begun):
        return
    fit = [node for node in world.core if world.in_core(node) and not case.may_leave(node)]
    promised = _noticed(case, job, options.replicate)
    # Where repair is off, a copy outside the core is not replaced.
    outside = sum(node not in fit for node in job.copies) * (not case.obligations.repair_after)
    have = sum(node in fit for node in job.copies) + outside
    if not have and job.copies:
        return  # no node of the core has a copy to send
    since = max(world.healed, job.created_at or 0)
    may_hold = [node for node in fit if not _lacks_it_unnoticed(case, job, node)]
    room = sum(_has_room(case, job, node, since) for node in may_hold)
    due = min(promised, room + outside)
    if have < due and (_are_lists_wrong(case, job, fit, due) or _seem_enough(case, job, fit, due)):
        return
    if have < due and (case.now - since <= case.obligations.repair or not is_whole(case)):
        findings.leave_open("L7")
        return
    case.check("L7")
    if have < due:
        copies = counted(due, "copy", "copies")
        detail = f"{have} of {copies}, {' '.join(gone)} gone for good; made again were too few"
        case.violate("L7", detail, job.id)


def _noticed(case: Case, job: Job, copies: int) -> int:
    """Return this number of copies, less those on nodes that have restarted without them."""
    return copies - sum(node not in case.world.removed for node in job.lost_on)


def _has_room(case: Case, job: Job, node: str, since: Micros) -> bool:
    """Has it a copy, or has had memory for one since then, and is of a version that keeps it?"""
    if node in job.copies:
        return True
    return (not job.is_dead or case.keeps_dead_jobs(node)) and not was_short_of_memory(
        case, node, since, case.now
    )


def _lacks_it_unnoticed(case: Case, job: Job, node: str) -> bool:
    """Has the node lost its copy and kept its name, so that the other holders still list it? They
    ask it only if the node that added the job is permanently lost since then."""
    lost_at, world = job.lost_on.get(node), case.world
    if lost_at is None or node in job.copies:
        return False
    is_asked = job.origin in world.removed and lost_at < world.crashes[job.origin].time
    return not is_asked and world.renamed.get(node, NEVER) < lost_at


def _are_lists_wrong(case: Case, job: Job, fit: list[str], due: int) -> bool:
    """Has the node that added the job lost it, after it sent a copy that never arrived? Only this
    node knew which holders had confirmed. The other holders use its list, which has the required
    number of names (docs/guarantees.md, "What is not promised"), unless that node is permanently
    lost: then they ask each other."""
    if job.origin in job.copies or job.origin in case.world.removed:
        return False
    holders = [node for node in job.copies if node in fit]
    had_it = {**job.copies, **job.dropped, **job.lost_on}
    return bool(holders) and all(
        sum(
            peer == node or peer in job.copies or peer not in had_it
            for peer in {node: 0, **_names_received(job, node)}
            if peer in fit or not _is_failing(case, node, peer)
        )
        >= due
        for node in holders
    )


def _names_received(job: Job, node: str) -> dict[str, object]:
    """Return the possible names on the node's list. No row has a list from a disk, so for a loaded
    copy these are all names that it ever received."""
    listed = job.listed.get(node, {})
    if job.copies[node].cause != "loaded":
        return {**listed}
    return {**dict.fromkeys(job.perhaps_listed.get(node, ())), **listed}


def _seem_enough(case: Case, job: Job, fit: list[str], due: int) -> bool:
    """Does every holder in the core have enough others listed as alive? A node outside the core
    with a copy counts among them while most nodes reach it."""
    holders = [node for node in job.copies if node in fit]
    return bool(holders) and all(
        1 + sum(not _is_failing(case, node, peer) for peer in _known_to(job, node)) >= due
        for node in holders
    )


def _known_to(job: Job, node: str) -> list[str]:
    """Return the other holders on the node's list. No row has a list from a disk."""
    listed = job.copies if job.copies[node].cause == "loaded" else job.listed.get(node, ())
    return [peer for peer in job.copies if peer in listed and peer != node]


def _is_failing(case: Case, node: str, peer: str) -> bool:
    """Did the node, when it last reported its table, have the other one as failed?"""
    return bool({"fail", "noaddr"}.intersection(case.node_tables.get(node, {}).get(peer, ["fail"])))
