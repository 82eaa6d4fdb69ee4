"""Liveness of the cluster: ADDJOB gets a reply (L5), and nodes reconnect (L6)."""

from collections.abc import Iterator

from disque_trio.sim.bounds import reconnect_bound
from disque_trio.sim.checkers import silence
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.findings import Findings
from disque_trio.sim.checkers.obligations import MILLI, SECOND
from disque_trio.sim.checkers.records import Add
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

GOSSIP = ("ping", "pong", "meet")
REPLY: Micros = 2 * SECOND
"""An ADDJOB that needs other nodes gets its reply at most this long after its timeout."""
FORGOTTEN_FOR: Micros = 60 * SECOND
"""Gossip does not add a forgotten node again for this long."""


def on_add_end(case: Case, row: Row) -> None:
    """L5: a node that is up replies to an ADDJOB in time, and always accepts one with REPLICATE 1.
    In calm it accepts every ADDJOB for which there are enough nodes."""
    add = case.adds.get((row.client, row.ref))
    if add is None:
        return
    since = _waits_since(case, row, add)
    if _needs_others(case, add):
        _check_answer(case, row, add, since)
        return
    if row.cause == "quit":
        return
    case.check("L5")
    if was_disturbed(case, row.node, since, row.time):
        return
    if row.kind == "add.unknown" or row.cause == "NOREPL":
        detail = f"{row.kind} ({row.cause}) of an ADDJOB with REPLICATE 1, though the node was up"
        case.violate("L5", detail, node=row.node)


def _waits_since(case: Case, row: Row, add: Add) -> Micros:
    """Return when the ADDJOB was sent. If the producer gives up a whole pipeline, return when its
    first request was sent, because the others wait behind it."""
    if row.kind != "add.unknown":
        return add.invoked
    at, since = case.cut_short.get((row.client, row.node), (row.time, add.invoked))
    since = min(since, add.invoked) if at == row.time else add.invoked
    case.cut_short[row.client, row.node] = (row.time, since)
    return since


def _check_answer(case: Case, row: Row, add: Add, since: Micros) -> None:
    """L5 for an ADDJOB that needs other nodes."""
    case.check("L5")
    late = row.time - add.invoked - add.options.timeout
    is_silent = row.cause == "timeout" and late > REPLY and add.options.timeout > 0
    if is_silent and not was_disturbed(case, row.node, since, row.time):
        detail = "an ADDJOB was not answered in time, though the node was up"
        case.violate("L5", detail, node=row.node)
    # The refusal is immediate, or follows the whole timeout.
    is_due = row.kind == "add.refused" or late >= 0
    if row.cause != "NOREPL" or not is_due or _may_lack_links(case, row):
        return
    if _has_live_peers(case, row, add):
        detail = f"NOREPL with REPLICATE {add.options.replicate}, with nothing wrong"
        case.violate("L5", detail, node=row.node)


def _may_lack_links(case: Case, row: Row) -> bool:
    """Was the ADDJOB refused at once while its node may have lacked links? It may have closed a
    link to a node that answered late, or may not yet have received the other node's announcement of
    extensions on a new link."""
    if row.kind != "add.refused":
        return False
    if "extensions" not in row.detail:
        return bool(silence.unlinked(case, row.node))
    return any(silence.may_be_unlinked(case, row.node, peer) for peer in case.world.nodes)


def _has_live_peers(case: Case, row: Row, add: Add) -> bool:
    """Could all other nodes be reached soon enough, and keep copies?"""
    world, least = case.world, 4 * case.obligations.latency + SECOND // 4
    return (
        not world.is_changing
        and not case.obligations.has_limit
        and not world.queue_pauses.begun
        and not _has_left(case, add)
        and add.options.replicate <= case.obligations.nodes
        and (not add.options.timeout or add.options.timeout > least)
        and world.is_calm(add.invoked, row.time)
    )


def judge_unanswered(case: Case) -> None:
    """L5: an ADDJOB with REPLICATE 1 had no reply by the end of the run."""
    for add in case.adds.values():
        allowed = add.options.timeout + 10 * SECOND
        if _needs_others(case, add):
            continue
        if case.now > add.invoked + allowed:
            _report_no_answer(case, add)


def _report_no_answer(case: Case, add: Add) -> None:
    case.check("L5")
    if not was_disturbed(case, add.node, add.invoked, case.now):
        detail = "an ADDJOB with REPLICATE 1 was never answered, though the node was up"
        case.violate("L5", detail, node=add.node)


def _needs_others(case: Case, add: Add) -> bool:
    """Does the reply depend on other nodes: on their copies, or on their records of its key?"""
    # The default of a cluster that has grown is more than the options say.
    may_be_more = add.options.is_default and len(case.world.nodes) > case.obligations.nodes
    return (
        add.options.replicate != 1
        or may_be_more
        or add.options.unique is not None
        or _has_left(case, add)
    )


def _has_left(case: Case, add: Add) -> bool:
    """Was the node of the ADDJOB leaving at any time, or may it be? Then it needs others even for a
    single copy."""
    return add.was_leaving or case.may_leave(add.node)


def was_disturbed(case: Case, node: str, since: Micros, until: Micros) -> bool:
    """Was the node down or stopped, or its disk faulty, so that it may not have replied?"""
    world, known = case.world, since - MILLI  # a client notices a crash a moment later
    return (
        world.was_out(node, known + case.obligations.reconnect, until)
        or world.is_stopped(node, since, until)
        or world.was_disk_faulty(node, until)
    )


def judge_rejoin(case: Case, findings: Findings) -> None:
    """L6: after the heal all nodes of the core have links to each other.

    The row `rejoin` has the time; without it, each node must at least have received gossip of the
    others. The bound counts from the last start of a node, if that is later than the heal: a real
    process takes time to start.
    """
    world = case.world
    assert world.healed is not None
    bound = reconnect_bound(case.plan) + case.obligations.reconnect_late
    if world.is_changing:
        bound += case.obligations.longest(FORGOTTEN_FOR)
    began = max([world.healed, *(world.started_at(node) for node in world.core)])
    if not is_whole(case):
        findings.leave_open("L6")
        return
    if world.rejoined is not None:
        case.check("L6")
        if world.rejoined - began > bound:
            _report_missing_links(case, world.rejoined)
        return
    silent = [pair for pair in _core_pairs(case) if pair not in case.received_from]
    if not silent and case.seen.get("gossip"):
        case.check("L6")
    elif case.is_live and not case.seen.get("gossip"):
        return
    elif case.now - began <= bound:
        findings.leave_open("L6")
    else:
        case.check("L6")
        _report_missing_links(case, case.now)


def is_whole(case: Case) -> bool:
    """Are the nodes of the core one cluster? A CLUSTER MEET during a cut fails, and is not
    repeated."""
    return case.world.rejoined is not None or not case.world.is_changing


def _report_missing_links(case: Case, now: Micros) -> None:
    healed = case.world.healed or 0
    silent = [f"{n} of {p}" for n, p in _core_pairs(case) if (n, p) not in case.received_from]
    note = f"; {', '.join(silent)} has heard nothing" if silent and case.seen.get("gossip") else ""
    case.violate("L6", f"not all linked {(now - healed) / SECOND:.3f} s after the heal{note}")


def _core_pairs(case: Case) -> Iterator[tuple[str, str]]:
    core = [n for n in case.world.core if case.world.in_core(n) and n not in case.world.paused]
    return ((node, peer) for node in core for peer in core if node != peer)
