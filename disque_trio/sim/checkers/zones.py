"""Zones (S30, S31): copies of a job are sent to different zones, and survive the loss of one.

A node may have to reply before all nodes have confirmed, so the zones of the confirming nodes are
not determined. The check examines to which nodes it sends the job (docs/bus.md, "Addresses and
zones").
"""

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.records import Job
from disque_trio.terminal.counting import counted
from disque_trio.tracing.rows import Row


def zone_of(case: Case, node: str) -> str:
    """Return the zone of a node in the plan; empty if it has none."""
    number = node.removeprefix("n")
    return case.plan.zone(int(number)) if number.isdigit() else ""


def after_add_ok(case: Case, row: Row, job: Job) -> None:
    """S30: the copies of a job added in calm are sent to as many zones as have nodes that accept
    copies, or as REPLICATE allows."""
    if not case.plan.zones:
        return
    job.confirmed_in = dict.fromkeys(zone_of(case, node) for node in job.copies)
    add, world = job.add, case.world
    if add is None or not case.has_messages or add.options.is_async or case.obligations.has_limit:
        return
    if not world.is_calm(add.invoked, row.time) or world.is_changing or world.have_left:
        return
    takers = [f"n{number}" for number in range(1, case.plan.nodes + 1)]
    there = {zone_of(case, node) for node in takers if node not in world.removed}
    asked = {zone_of(case, node) for node in (row.node, *job.sent_to)}
    case.check("S30")
    due = min(add.options.replicate, len(there))
    if len(asked) < due:
        detail = (
            f"{row.node} sends the copies to {counted(len(asked), 'zone')}, though there are {due}"
        )
        case.violate("S30", detail, job.id, row.node)


def after_repair(case: Case, job: Job, fit: list[str]) -> None:
    """S30: copies re-created in calm are in as many zones as have remaining nodes, or as REPLICATE
    allows, if the job was spread as widely before."""
    options, world = job.options, case.world
    if not case.plan.zones or options is None or case.obligations.has_limit or world.have_left:
        return
    first = [f"n{number}" for number in range(1, case.plan.nodes + 1)]
    zones = dict.fromkeys(zone_of(case, node) for node in first)
    if len(job.confirmed_in) < min(options.replicate, len(zones)):
        return
    if any(node not in world.removed for node in job.lost_on):
        return
    case.check("S30")
    there = dict.fromkeys(zone_of(case, node) for node in first if node in fit)
    have = dict.fromkeys(zone_of(case, node) for node in job.copies if node in fit)
    due = min(options.replicate, len(there))
    if len(have) < due:
        detail = (
            f"after a repair the copies are in {counted(len(have), 'zone')}, though there are {due}"
        )
        case.violate("S30", detail, job.id)


def judge_zones(case: Case, job: Job) -> None:
    """S31: a job that is on no node has lost copies in every zone in which it had any."""
    if len(job.confirmed_in) < 2:
        return
    case.check("S31")
    hit = dict.fromkeys(zone_of(case, node) for node in job.lost_on)
    if spared := [zone for zone in job.confirmed_in if zone not in hit]:
        case.violate("S31", f"lost, though no fault has destroyed its copy in {spared[0]}", job.id)
