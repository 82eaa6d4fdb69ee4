"""Checks of the nodes' answers: pure functions from facts to findings."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from disque_trio.explain.zones import Place, lacks
from disque_trio.observe import refusals
from disque_trio.observe.client import ON_PASSWORD
from disque_trio.observe.cluster import NodeFacts, label_of, node_name
from disque_trio.observe.finding import RESET, Finding, note, problem, spelled, warning
from disque_trio.statemachine.pressure import LEAST_ROOM, MOST_RESIDENT_PERCENT, SAFE_PERCENT
from disque_trio.terminal.counting import counted

MAX_SKEW_MS: Final = 500
"""Jobs have stamps of wall clocks, and the stamps determine the order of jobs from different
nodes."""
_NOTED_MS: Final = 1000
_GRAVE_MS: Final = 3000
"""A standstill of this length is a warning, not a note."""
_QUORUM: Final = 3
_MOST_REQUEUED: Final = 0.05
"""A higher share of requeued jobs among deliveries is a warning."""
_NAMED: Final = 10
"""The maximum number of queues that a finding names."""
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


def judge(nodes: list[NodeFacts], closed: Sequence[str] = ()) -> list[Finding]:
    """Return all findings about a cluster. `closed` are the queues that are paused in input."""
    found: list[Finding] = []
    nodes = [attrs.evolve(node, where=node.label) for node in nodes]
    well = [node for node in nodes if not node.error and not node.is_loading]
    reported = {*_failed(well), *_left(well, nodes)}
    for node in nodes:
        if node.error and node.id in reported:
            pass  # `_members` reports it with more detail
        elif node.error:
            found.append(_silent(node, well))
        elif node.is_loading:
            found.append(_loading(node))
        else:
            found += [*_duplicate(node), *_reach(node), *_process(node), *refusals.judge(node)]
            found += _standstill(node)
            found += [*_memory(node), *_disk(node), *_jobs(node)]
    if well:
        found += [*refusals.requests(well, closed), *_lacking(well, closed), *_delayed(well)]
        found += [
            *_members(well, nodes),
            *_few(well),
            *_one_way(well),
            *_clocks(well),
            *zones_of(well),
        ]
        found += _limits(well)
        found += _versions([node for node in nodes if not node.error])
    return found


def _silent(node: NodeFacts, well: Sequence[NodeFacts]) -> Finding:
    advice, known = _advice_for(node, well), [node.error_since]
    if any(p.flags & {"fail", "fail?"} for each in well for p in each.peers if p.id == node.id):
        known.append(_last_pong(well, node.id))
    since = min(filter(None, known), default=None)
    return problem(node.where, node.error, advice, kind="silent", since=since)


def _advice_for(node: NodeFacts, others: Sequence[NodeFacts]) -> str:
    if node.advice == ON_PASSWORD and any(other.has_password for other in others):
        return (
            "the other nodes accept the password: give this one the same (requirepass-file, or "
            "CONFIG SET requirepass)"
        )
    return node.advice


def unasked(nodes: Sequence[NodeFacts]) -> Iterator[Finding]:
    """Yield a finding about nodes that a client over TLS does not query."""
    asked = {node.id for node in nodes}
    others = {peer.id: peer for node in nodes for peer in node.peers if peer.id not in asked}
    if not others:
        return
    names = (label_of(node_name(id, peer.name), peer.address) for id, peer in others.items())
    yield note(
        "the cluster",
        f"{counted(len(others), 'node was', 'nodes were')} not queried: {', '.join(names)}",
        "over TLS only the named nodes are queried, and the console of a node queries that node "
        "alone: disque-trio doctor --tls queries all",
        kind="unasked",
    )


def _reach(node: NodeFacts) -> Iterator[Finding]:
    if node.bus_error:
        yield problem(
            node.where,
            f"its bus port cannot be reached from here: {node.bus_error}",
            "nodes connect to each other on the client port + 10000: open it between all nodes. If "
            "it is closed only to this machine, run the doctor on a node",
            kind="bus-port",
        )
    if silent := node.number("unanswered_meets"):
        others = filter(None, node.info.get("unanswered_meet_others", "").split(","))
        named = [node.info.get("unanswered_meet_address", "?"), *others]
        where = ", ".join(named) + (f" and {silent - len(named)} more" * (silent > len(named)))
        reason = node.info.get("unanswered_meet_error", "it does not answer")
        yield warning(
            node.where,
            f"{silent} CLUSTER MEET without an answer: {where}, the first for "
            f"{node.number('unanswered_meet_seconds')} s: {reason}",
            "open the bus port (after the @; by default the client port + 10000) between all "
            "nodes, and check that both have the same cluster secret. The node keeps trying until "
            "CLUSTER FORGET with the id that CLUSTER NODES shows",
        )
    bind = node.config.get("bind", "").split()
    if node.config and not node.has_password:
        is_open = node.config.get("protected-mode") == "no" or not node.is_ours
        if is_open and not (bind and all(each in _LOOPBACK for each in bind)):
            yield warning(
                node.where,
                "clients need no password",
                "set requirepass-file (docs/security.md), or limit access with 'bind'",
            )


def _duplicate(node: NodeFacts) -> Iterator[Finding]:
    if not node.number("duplicate_node_id"):
        return
    other = node.info.get("duplicate_node_id_address", "?")
    who = "This one" if node.number("duplicate_node_id_yields") else "The other"
    yield problem(
        node.where,
        f"another process, at {other}, has its node ID: one of them was started from a copied "
        f"directory. {who} refuses to serve jobs",
        "stop the copy, remove its nodes.conf and append-only file, and start it again: it joins "
        "as a new node with CLUSTER MEET",
        kind="not-ready",
    )


def _loading(node: NodeFacts) -> Finding:
    percent, left = node.info.get("loading_loaded_perc"), node.number("loading_eta_seconds")
    progress = f"{percent} % loaded, about {left} s left" if percent else "100 % loaded"
    return warning(
        node.where,
        f"it is loading its append-only file: {progress}",
        "wait: it serves clients and joins the others when the file is loaded",
        kind="not-ready",
    )


def _process(node: NodeFacts) -> Iterator[Finding]:
    clients, most = node.number("connected_clients"), _limit(node, "maxclients")
    if most and clients > 0.9 * most:
        yield warning(
            node.where,
            f"{clients} of {counted(most, 'client is', 'clients are')} connected",
            "raise maxclients, or find the clients that do not close connections (CLIENT LIST)",
        )
    if dropped := node.number("bus_frames_dropped"):
        yield warning(
            node.where,
            f"{counted(dropped, 'bus frame was', 'bus frames were')} dropped: "
            "a peer did not keep up",
            f"look for a node that is overloaded or stopped; {RESET}",
            kind="frames-dropped",
        )
    if node.config.get("trace-file") and node.config.get("trace-file-sample") == "1":
        yield warning(
            node.where,
            f"it traces every job to {node.config['trace-file']}",
            "restart it with 'trace-file-sample 100' for one job in 100, or without 'trace-file'",
        )
    if node.number("bus_frames_refused"):
        reasons = node.info.get("bus_frames_refused_by_reason", "")
        yield note(node.where, f"bus input was refused: {reasons}")


def _standstill(node: NodeFacts) -> Iterator[Finding]:
    stood, ago = node.number("standstill_ms"), node.number("standstill_seconds_ago")
    if stood < _NOTED_MS:
        return
    make = warning if stood >= _GRAVE_MS else note
    since = node.now_s - ago if node.now_s else None
    yield make(
        node.where,
        f"its event loop was blocked for {stood / 1000:.1f} s, {spelled(ago)} ago",
        "look for a machine that swaps, was suspended or has too few cores, for a disk that hangs, "
        "and for DEBUG SLEEP. After cluster-node-timeout the other nodes mark it as failed",
        kind="standstill",
        since=since,
    )


def _limit(node: NodeFacts, directive: str) -> int:
    value = node.config.get(directive, "")
    return int(value) if value.isdigit() else 0


def _memory(node: NodeFacts) -> Iterator[Finding]:
    """Check the memory by the levels at which the node itself acts (statemachine.pressure)."""
    used, most = node.number("used_memory"), _limit(node, "maxmemory")
    own = node.number("used_memory_process")
    if not most:
        return
    if most <= own:
        yield problem(
            node.where,
            f"maxmemory is {most >> 20} MiB, and the process itself uses {own >> 20} MiB: it "
            "refuses new jobs",
            f"raise maxmemory: {(2 * own >> 20) + 1} MiB leave jobs as much as the process uses",
            kind="memory",
        )
        return
    allowed, what = node.number("memory_limit"), node.info.get("memory_limit_of", "")
    if allowed and most > allowed // 100 * SAFE_PERCENT:
        kind = problem if most > allowed else warning
        yield kind(
            node.where,
            f"maxmemory is {most >> 20} MiB, and the {what} allows {allowed >> 20} MiB: the node "
            "may be killed before it refuses jobs",
            f"lower maxmemory to {allowed // 100 * SAFE_PERCENT >> 20}mb, or leave it out",
        )
    if own and most < own + LEAST_ROOM:
        yield warning(
            node.where,
            f"maxmemory leaves only {(most - own) >> 10} KiB for jobs",
            f"raise maxmemory: {(2 * own >> 20) + 1} MiB leave jobs as much as the process uses",
        )
    if node.is_ours:
        yield from _resident(node, most)
    share = (used - own) / (most - own)
    level = node.number("memory_level") if node.is_ours else (share > 0.75) + (share > 0.95)
    if not level:
        return
    if node.info.get("memory_limited_by") == "resident-size":
        return
    what = f"{(used - own) >> 20} of the {(most - own) >> 20} MiB that maxmemory leaves for jobs"
    doing = "it refuses new jobs" if level > 1 else "it leaves new jobs to other nodes"
    grade = problem if level > 1 else warning
    yield grade(
        node.where,
        f"{what} are used ({share:.0%}): {doing}",
        "add consumers, add nodes, or raise maxmemory; with spill-directory, bodies go to disk",
        kind="memory",
    )


def _resident(node: NodeFacts, most: int) -> Iterator[Finding]:
    """Check the memory that the process has and that no job uses."""
    resident, used = node.number("used_memory_rss"), node.number("used_memory")
    what = (
        f"the resident size is {resident >> 20} MiB, {resident / most:.0%} of maxmemory; jobs left "
        f"from earlier backlogs keep {(resident - used) >> 20} MiB from being released"
    )
    advice = (
        "have these jobs acknowledged, raise maxmemory, or restart the node (SHUTDOWN "
        "REWRITE-AOF); with spill-directory, large bodies go to disk"
    )
    level = node.number("memory_level")
    is_bound = level > 0 and node.info.get("memory_limited_by") == "resident-size"
    if level > 1 and is_bound:
        yield problem(node.where, f"{what}: it refuses new jobs", advice, kind="memory")
    elif is_bound:
        yield warning(
            node.where, f"{what}: it leaves new jobs to other nodes", advice, kind="memory"
        )
    elif resident * 100 > most * MOST_RESIDENT_PERCENT:
        yield warning(node.where, what, advice)


def _disk(node: NodeFacts) -> Iterator[Finding]:
    info = node.info
    if info.get("aof_enabled", "0") == "0":
        yield note(
            node.where,
            "it keeps jobs in memory only, and loses them when it stops",
            "set 'appendonly yes', or rely on copies: at any time stop fewer nodes than a job has "
            "copies (REPLICATE of ADDJOB, by default 3)",
        )
        return
    if (status := info.get("aof_file_status", "ok")) != "ok":
        if status == "left unsynced":
            what, advice = "could not be synced at its start", "Check the disk"
        else:
            what = f"was {status} by another process"
            advice = "Find that process. If it put another file there, that is kept as .found"
        yield problem(
            node.where,
            f"its append-only file {what}: new jobs are refused",
            f"it rewrites the file by itself; if that fails, see its log. {advice}",
            kind="journal",
        )
    elif info.get("aof_last_write_status", "ok") != "ok":
        yield problem(
            node.where,
            "its append-only file cannot be written: new jobs are refused",
            "see its log: the disk is full or broken. It recovers by itself once it can write",
            kind="journal",
        )
    if info.get("aof_last_bgrewrite_status", "ok") != "ok":
        yield warning(
            node.where,
            "the last rewrite of its append-only file failed",
            "see its log, make room on the disk, then BGREWRITEAOF",
        )
    if node.number("aof_delayed_fsync"):
        syncs = counted(node.number("aof_delayed_fsync"), "sync")
        yield note(node.where, f"{syncs} took longer than planned")


def _lacking(well: list[NodeFacts], closed: Sequence[str]) -> Iterator[Finding]:
    """Check for jobs with too few copies. Each is counted by one of its remaining holders, so the
    sum over all nodes is correct."""
    if under := sum(node.number("under_replicated_jobs") for node in well):
        off = [node.where for node in well if node.config.get("replica-repair-after") == "0"]
        yield warning(
            "the cluster",
            f"{_jobs_that(under, 'has', 'have')} fewer holders than REPLICATE asks for",
            f"repair is off at {', '.join(off)}: set replica-repair-after" if off
            else f"{refusals.resuming(closed)}start the nodes that are gone. After "
            "replica-repair-after seconds the holders create new copies. If there are too few "
            "nodes, add some; if nodes are gone for good, CLUSTER FORGET them",
            kind="under-replicated", stake=float(under),
        )  # fmt: skip


def _jobs(node: NodeFacts) -> Iterator[Finding]:
    """Check for jobs whose leases ended, and for jobs that have expired."""
    again, delivered = node.number("jobs_requeued_lately"), node.number("jobs_delivered_meanwhile")
    last = node.now_s - node.number("jobs_requeued_last")
    if again > _MOST_REQUEUED * max(delivered, 1) and last <= refusals.RECENT_S:
        yield warning(
            node.where,
            f"{_jobs_that(again, 'was', 'were')} requeued after RETRY without an "
            f"acknowledgement, the last {spelled(round(max(last, 0)))} ago; meanwhile "
            f"{_jobs_that(delivered, 'was', 'were')} delivered",
            "workers die, or work longer than RETRY without renewing the lease (WORKING), or the "
            "node that had these jobs was lost or restarted",
            kind="redelivered", stake=float(again), since=float(node.number("jobs_requeued_since")),
        )  # fmt: skip
    if expired := node.number("expired_while_down"):
        yield note(
            node.where,
            f"{_jobs_that(expired, 'had', 'had')} expired when the node read its append-only file",
            "if its downtime does not explain that, its wall clock was wrong (TTL of ADDJOB)",
        )


def _jobs_that(count: int, one: str, many: str) -> str:
    """Return the number of jobs with the verb in the right number."""
    return counted(count, f"job {one}", f"jobs {many}")


def _delayed(well: list[NodeFacts]) -> Iterator[Finding]:
    """Sum up the delayed jobs of all nodes, each of which counts its own."""
    waiting = [node for node in well if node.number("delayed_jobs")]
    if not waiting:
        return
    count = sum(node.number("delayed_jobs") for node in waiting)
    queues: Counter[str] = Counter()
    for node in waiting:
        queues.update(node.counts("delayed_jobs_by_queue"))
    most = ", ".join(f"{jobs} of {queue}" for queue, jobs in queues.most_common(_NAMED))
    due = min(node.number("delayed_jobs_first_due_ms") for node in waiting) // 1000
    yield note(
        "the cluster",
        "at most " * (len(waiting) > 1)  # after a failure, several nodes may count one job
        + _jobs_that(count, "is", "are")
        + " delayed, or backing off after a failure"
        + (f": {most}; the first is enqueued in {spelled(due)}" if queues else ""),
        "JSCAN STATE backing-off REPLY all lists those that are backing off",
        kind="delayed",
        link="#/later",
    )


def _failed(well: list[NodeFacts]) -> set[str]:
    """Return the ids of nodes that another node marks as failed and whose address is known."""
    flags: dict[str, set[str]] = {}
    for peer in (peer for node in well for peer in node.peers):
        flags.setdefault(peer.id, set()).update(peer.flags)
    return {id for id, of_node in flags.items() if "fail" in of_node and "noaddr" not in of_node}


def _left(well: list[NodeFacts], nodes: list[NodeFacts]) -> set[str]:
    """Return the ids of nodes that were leaving and do not answer any more."""
    leaving = {peer.id for node in well for peer in node.peers if "leaving" in peer.flags}
    return leaving & ({node.id for node in nodes if node.error} | _failed(well))


def _members(well: list[NodeFacts], nodes: list[NodeFacts]) -> Iterator[Finding]:
    names = {node.id: node.where for node in nodes}
    errors = {node.id: f"; {node.error}" for node in nodes if node.error}
    failed, left = _failed(well), _left(well, nodes)
    loading = {node.id for node in nodes if node.is_loading}
    known = {peer.id: peer for node in well for peer in node.peers}
    for peer_id, peer in known.items():
        if peer_id in loading:
            continue  # it has no links until its file is loaded
        where = names.get(peer_id, label_of(node_name(peer_id, peer.name), peer.address))
        thoughts = [p.flags for node in well for p in node.peers if p.id == peer_id]
        count = counted(len(thoughts), "node reports", "nodes report")
        if any("noaddr" in flags for flags in thoughts):
            yield warning(
                where,
                f"the address of node {peer_id} is unknown: its last one belongs to another node",
                f"if it is gone for good: CLUSTER FORGET {peer_id} on every node",
            )
        elif peer_id in left:
            yield warning(
                where,
                "it was leaving, and does not answer" + _silent_for(well, peer_id),
                f"if it was stopped: CLUSTER FORGET {peer_id} on every node; the other holders "
                "then create new copies of the jobs that it still had",
                kind="left",
                since=_last_pong(well, peer_id),
                operation="nodes forget",
                args={"node": peer_id},
            )
        elif peer_id in failed:
            yield problem(
                where,
                f"{count} it as failed" + _silent_for(well, peer_id) + errors.get(peer_id, ""),
                kind="failed",
                since=_last_pong(well, peer_id),
                **_mend_of_failed(peer_id, nodes),
            )
        elif peer_id not in errors and any("fail?" in flags for flags in thoughts):
            suspecting = sum("fail?" in flags for flags in thoughts)
            yield warning(
                where,
                f"{suspecting} of {counted(len(thoughts), 'node suspects', 'nodes suspect')} it",
                "check its log and network",
                since=_last_pong(well, peer_id),
            )
        if any("handshake" in flags for flags in thoughts):
            yield note(where, "is about to join")
        if peer_id not in left and any("leaving" in flags for flags in thoughts):
            yield note(
                where,
                "is leaving: stop it when INFO jobs shows registered_jobs:0",
                kind="not-ready",
                operation="nodes stay",
                args={"node": peer_id},
            )


def _mend_of_failed(id: str, nodes: Sequence[NodeFacts]) -> dict[str, Any]:
    """Return the advice, and the operation that fits. A node that runs must not be forgotten."""
    node = next((each for each in nodes if each.id == id), None)
    if node is not None and not node.error:
        return {
            "advice": "it runs and answers here, but the nodes cannot reach each other. Open their "
            "bus ports (client port + 10000) to each other; if links are refused, see their logs"
        }
    gone = f"if it is gone for good: CLUSTER FORGET {id} on every node"
    forget = {"operation": "nodes forget", "args": {"node": id}}
    if node is not None and node.is_there:
        advice = _advice_for(node, nodes).rstrip(".")
        return {"advice": f"it runs, but refuses to answer: {advice}. Or {gone}"}
    return {"advice": f"start it again, or {gone}", **forget}


def _few(well: list[NodeFacts]) -> Iterator[Finding]:
    """Check for a cluster that has no majority after the failure of one node."""
    ids = {node.id for node in well}
    size = len(ids.union(peer.id for node in well for peer in node.peers))
    if size < _QUORUM:
        yield note(
            well[0].where,
            f"the cluster has {counted(size, 'node')}",
            "run at least three: with fewer there is no majority after one fails",
        )


def _silent_for(well: list[NodeFacts], id: str) -> str:
    last = _last_pong(well, id)
    return f"; last heard from {spelled(max(round(well[0].now_s - last), 0))} ago" if last else ""


def _last_pong(well: Sequence[NodeFacts], id: str) -> float | None:
    """Return when any node received the last PONG of this node."""
    moments = [p.pong_s for node in well for p in node.peers if p.id == id and p.pong_s]
    return max(moments, default=None)


def _one_way(well: list[NodeFacts]) -> Iterator[Finding]:
    """Find pairs of answering nodes of which one has no link to the other or does not know it."""
    for node in well:
        lines = {peer.id: peer for peer in node.peers}
        for other in well:
            if other.id == node.id:
                continue
            line = lines.get(other.id)
            if line is None:
                yield warning(
                    node.where,
                    f"it does not know {other.where}, which is in the cluster",
                    f"introduce them by CLUSTER MEET, or CLUSTER FORGET {other.id} on the others",
                )
            elif not line.is_connected and "handshake" not in line.flags:
                back = next((p for p in other.peers if p.id == node.id), None)
                one_way = back is not None and back.is_connected
                yield warning(
                    node.where,
                    f"it has no link to {other.where}"
                    + (", which has one to it: a one-way cut" if one_way else ""),
                    "open the bus port (client port + 10000) in this direction; the node "
                    "reconnects by itself",
                )


def _clocks(well: list[NodeFacts]) -> Iterator[Finding]:
    middle = sorted(node.skew_ms for node in well)[len(well) // 2]
    for node in well:
        off = node.skew_ms - middle
        surely = max(abs(off) - node.uncertainty_ms, 0)
        if surely > MAX_SKEW_MS:
            side = "ahead of" if off > 0 else "behind"
            amount = f"{abs(off) / 1000:.1f} s" if abs(off) < 1e6 else f"{abs(off) / 3.6e6:.1f} h"
            yield warning(
                node.where,
                f"its wall clock is {amount} {side} the others'",
                "run NTP: jobs of different nodes are ordered by wall clocks, and an append-only "
                "file is loaded by them. No job is lost",
            )
    if all(abs(node.skew_ms - middle) <= MAX_SKEW_MS for node in well):
        local = min(abs(node.skew_ms) - node.uncertainty_ms for node in well)
        if local > MAX_SKEW_MS and math.isfinite(local):
            yield note("this machine", f"its wall clock differs by {local / 1000:.1f} s from all")


def _versions(well: list[NodeFacts]) -> Iterator[Finding]:
    """Compare the versions of nodes. For nodes that do not answer here, the reports of others
    count."""
    ours = dict.fromkeys(node.version for node in well if node.is_ours)
    reported = [name for node in well for name in node.counts("cluster_versions")]
    missing = dict.fromkeys(name for name in reported if "/" in name and name not in ours)
    originals = [node.where for node in well if not node.is_ours]
    if not originals and "original" in reported:
        originals = ["the cluster"]
    if originals:
        yield note(
            ", ".join(originals),
            "original servers",
            "they do not support repair, the cluster secret or leases",
        )
    names = sorted([*ours, *missing])
    if "earlier" in reported and all("/" in name for name in names):
        names.append("an earlier one")
    if len(names) > 1:
        yield warning(
            "the cluster",
            f"nodes run different versions: {', '.join(names)}",
            "finish the upgrade, node by node (docs/versions.md)",
            kind="versions",
        )


def _limits(well: list[NodeFacts]) -> Iterator[Finding]:
    """Check for limits of queues that are not enforced, because some nodes do not support them."""
    limited = max(node.number("limited_queues") for node in well)
    unlimited = max(node.number("nodes_without_limits") for node in well)
    if not limited or not unlimited:
        return
    known = [node.where for node in well if "queue-limits" not in node.info.get("features", "")]
    yield warning(
        ", ".join(known) or "the cluster",
        f"{counted(unlimited, 'node delivers', 'nodes deliver')} jobs of "
        f"{counted(limited, 'queue')} without regard to their limits: "
        "earlier versions and original servers do not support limits",
        "finish the upgrade, node by node (docs/versions.md); until then connect workers of "
        "these queues only to the other nodes",
        kind="limits-not-held",
    )


def zones_of(well: list[NodeFacts]) -> Iterator[Finding]:
    """Check whether the nodes are in fewer zones than a job has copies."""
    ours = [
        Place(
            where=node.where,
            zone=node.info.get("replica_zone", ""),
            replicate=int(node.config.get("default-replicate", 0)),
        )
        for node in well
        if node.is_ours
    ]
    for lack in lacks(ours, len(well)):
        yield warning(lack.subject, lack.what, lack.advice)
