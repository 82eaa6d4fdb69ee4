"""The faults of a run, by place and time: cuts, crashes, pauses, clocks; and intervals of calm.

Only rows about faults change `World`. Intervals are never dropped: a run has few, and the cause of
a duplicate may lie long before it.
"""

import re
from typing import Final

import attrs

from disque_trio.sim.checkers.intervals import Interval, Partition, meets_any
from disque_trio.sim.checkers.obligations import MILLI, SECOND, Obligations
from disque_trio.sim.checkers.queue_pauses import QueuePauses
from disque_trio.sim.checkers.records import FOREVER, NEVER
from disque_trio.sim.model.network import MAX_BACKOFF
from disque_trio.sim.scenarios.fault_kinds import WITH_ROWS
from disque_trio.sim.scenarios.plan import Micros, Plan
from disque_trio.tracing.rows import Row

MEMBERSHIP = ("join", "leave", "forget")
"""Faults that count for their whole planned time, because no row records their end."""

BLOCKS: Final = {kind.end_row: kind.row for kind in WITH_ROWS if kind.is_of_links and kind.end_row}
"""Faults of links that delay or lose messages: by kind of the row that ends one, the kind of the
row that begins it."""
DISK_RECOVERY: Micros = 3 * SECOND
"""How long a node may still refuse jobs or lag behind after a fault of its disk."""
START_RECOVERY: Micros = 8 * SECOND
"""The same for a node that started during the fault: if it could not sync its journal, it must
write the file again, and tries that every 5 s."""


Pair = tuple[str, str]


@attrs.define(eq=False)
class World:
    """The state of the world after the rows seen so far."""

    obligations: Obligations
    planned: list[Interval]
    """Faults without rows."""
    nodes: dict[str, None] = attrs.Factory(dict)
    """Every node that has existed."""
    blocked: dict[tuple[str, Pair], Interval] = attrs.Factory(dict)
    """Faults of links (`BLOCKS`) that are in force, by kind of row and direction."""
    cuts: list[tuple[Pair, Interval]] = attrs.Factory(list)
    """All cuts, with their directions."""
    link_troubles: dict[Pair, list[Interval]] = attrs.Factory(dict)
    """Intervals in which a cut, clog or rule affected two nodes in either direction, or the nodes
    did not know each other; the pair is sorted."""
    down: dict[str, Interval] = attrs.Factory(dict)
    outages: dict[str, list[Interval]] = attrs.Factory(dict)
    """By node: when it was down."""
    crashes: dict[str, Row] = attrs.Factory(dict)
    """By node: its last crash, except crashes while it was loading its journal. If the power then
    failed, what the killed process had not synced is lost: the crash counts as one of power."""
    mutes: dict[str, list[Interval]] = attrs.Factory(dict)
    """By node: when its disk was faulty, so that it sent no messages about jobs."""
    loading: dict[str, None] = attrs.Factory(dict)
    """Nodes that have not loaded their journals yet."""
    disks: dict[tuple[str, str], Micros | None] = attrs.Factory(dict)
    """By node and kind of disk fault: when it ended; None while it lasts."""
    began_faulty: dict[str, None] = attrs.Factory(dict)
    """Nodes whose disk had a fault when they started."""
    paused: dict[str, Interval] = attrs.Factory(dict)
    slow: dict[tuple[str, str], Interval] = attrs.Factory(dict)
    """Faults that slow down a node, or a link (by node and peer)."""
    pauses: dict[str, list[Interval]] = attrs.Factory(dict)
    """By node: when it was stopped or slow, or the links from it were slow."""
    squeezes: dict[str, list[Interval]] = attrs.Factory(dict)
    """By node: when it had little memory."""
    memory_limits: dict[str, list[tuple[Micros, int]]] = attrs.Factory(dict)
    """By node: the values to which faults have set `maxmemory` since its process started, and
    when."""
    queue_pauses: QueuePauses = attrs.Factory(QueuePauses)
    lags: dict[Pair, list[Interval]] = attrs.Factory(dict)
    """By link and direction: when it was slow, until its last slow messages have arrived."""
    wrong_clocks: dict[str, list[Micros]] = attrs.Factory(dict)
    """By node: when its clock stepped or changed its rate."""
    leaving: dict[str, Micros] = attrs.Factory(dict)
    have_left: dict[str, None] = attrs.Factory(dict)
    """Nodes that were ever ordered to leave. No row records when they receive the order to stay."""
    removed: dict[str, None] = attrs.Factory(dict)
    unknown_nodes: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By node and peer: since when the node does not know the peer, and ignores its messages."""
    is_changing: bool = False
    """Nodes have joined or left, so a node may not know how many there are."""
    renamed: dict[str, Micros] = attrs.Factory(dict)
    """By node: when it started with a new name. Other nodes learn the name by gossip."""
    names_forgotten: int = 0
    """The number of forgotten names of nodes, current and former ones."""
    partitions: list[Partition] = attrs.Factory(list)
    last_trouble: Micros = NEVER
    """When the last fault ended."""
    last_heal: Micros | None = None
    healed: Micros | None = None
    """T0: since when there is no fault, except outside the core."""
    rejoined: Micros | None = None
    """When all nodes of the core had links to each other again."""
    ended: Micros | None = None
    core: tuple[str, ...] = ()
    """The healed nodes; empty before the heal."""

    # Queries.

    @property
    def is_troubled(self) -> bool:
        """Is any fault in force now?"""
        return bool(
            self.blocked or self.down or self.paused or self.slow or self.queue_pauses.begun
        )

    def is_calm(self, since: Micros, until: Micros) -> bool:
        """Was there no fault from `since` until `until`, nor for `calm_after` before?"""
        settled = since - self.obligations.calm_after
        if not self.obligations.is_stream or self.is_troubled or self.last_trouble > settled:
            return False
        return not meets_any(self.planned, settled, until)

    def was_disk_faulty(self, node: str, until: Micros) -> bool:
        """Does the node's disk have a fault, or did it recently, so that its effects may last?"""
        recovery = START_RECOVERY if node in self.began_faulty else DISK_RECOVERY
        return any(
            since is None or until - since < recovery
            for (each, _), since in self.disks.items()
            if each == node
        )

    def had_disk_fault(self, node: str, since: Micros) -> bool:
        """Has the node's disk had a fault since then?"""
        return any(
            end is None or end >= since for (each, _), end in self.disks.items() if each == node
        )

    def is_separated(self, one: str, other: str, since: Micros, until: Micros) -> bool:
        """Could a cut, a clog, a rule or an outage have blocked a message between the two nodes?

        Links may be down for a while after each of them.
        """
        return (
            self.is_cut(one, other, since, until)
            or self.was_out(one, since, until)
            or self.was_out(other, since, until)
        )

    def is_cut(self, one: str, other: str, since: Micros, until: Micros) -> bool:
        """Like `is_separated`, without outages."""
        troubles = self.link_troubles.get(_pair(one, other), ())
        return meets_any(troubles, since - self.obligations.reconnect, until)

    def is_held(self, one: str, other: str, since: Micros, until: Micros) -> bool:
        """Could a cut, a clog, a rule or an outage have blocked a message sent at `since` on a link
        that was up? A message that a cut has blocked arrives within `MAX_BACKOFF` of the heal."""
        troubles = self.link_troubles.get(_pair(one, other), ())
        return meets_any(troubles, since - MAX_BACKOFF, until) or meets_any(
            self.outages.get(other, ()), since, until
        )

    def was_out(self, node: str, since: Micros, until: Micros) -> bool:
        """Was the node down, or silent because of its disk, or were its links not up again yet?"""
        since -= self.obligations.reconnect
        return meets_any(self.outages.get(node, ()), since, until) or self.was_mute(
            node, since, until
        )

    def was_mute(self, node: str, since: Micros, until: Micros) -> bool:
        """Did a faulty disk keep the node from sending messages about jobs at any time of this
        interval?"""
        return meets_any(self.mutes.get(node, ()), since, until)

    def is_stopped(self, node: str, since: Micros, until: Micros) -> bool:
        """Was the node paused or slow at any time of this interval?"""
        return meets_any(self.pauses.get(node, ()), since, until)

    def last_batch(self, node: str, until: Micros) -> Micros:
        """Return how long a batch of the node that ended by then took, if the node was slow."""
        intervals = self.pauses.get(node, ())
        return max(
            (each.lag for each in intervals if each.meets(until - each.lag, until)), default=0
        )

    def has_been_down(self, node: str, since: Micros) -> bool:
        """Has the node had no process at any time since then?"""
        return any(each.end is None or each.end >= since for each in self.outages.get(node, ()))

    def is_lagging(self, one: str, other: str, since: Micros, until: Micros) -> bool:
        """Was a link between these two slow at any time of this interval, in either direction? It
        stays slow until the last slow message has arrived: later messages do not overtake it."""
        lags = (*self.lags.get((one, other), ()), *self.lags.get((other, one), ()))
        return meets_any(lags, since, until)

    def is_queue_paused(self, node: str, queue: str, way: str, now: Micros) -> bool:
        """Is the queue certainly paused in this direction, `in` or `out`? A restart ends the
        pause."""
        _, since = self.queue_pauses.begun.get((node, queue), ("", now))
        is_certain = self.queue_pauses.is_certain(node, queue, way, now)
        return is_certain and not self.was_out(node, since, now)

    def may_not_have_met(self, node: str, peer: str, since: Micros) -> bool:
        """For a job created at `since`: may the node not know the peer, or may its list of holders
        have the peer's former name?"""
        return (node, peer) in self.unknown_nodes or self.is_name_new(peer, node, since)

    def memory_limit(self, node: str, now: Micros) -> int:
        """Return the greatest value that `maxmemory` may have at the node. One that was stopped at
        the last order, and until just now, may not have executed it."""
        orders = self.memory_limits.get(node)
        if not orders:
            return self.obligations.memory
        time, limit = orders[-1]
        if self.is_stopped(node, time, time) and self.is_stopped(node, now - SECOND, now):
            limit = max(each for _, each in orders)
        return max(limit, self.obligations.memory)

    def started_at(self, node: str) -> Micros:
        """Return when the node's process started."""
        intervals = self.outages.get(node)
        end = intervals[-1].end if intervals else None
        return NEVER if end is None else end

    def may_be_unknown(self, node: str, peer: str, now: Micros) -> bool:
        """May the node not know the peer? It may know only the former name of a renamed peer."""
        if (node, peer) in self.unknown_nodes:
            return True
        return self.is_name_new(node, peer, now) or self.is_name_new(peer, node, now)

    def has_new_name(self, node: str, since: Micros) -> bool:
        """Has the node started with a new name since `since`?"""
        return self.renamed.get(node, NEVER) > since

    def is_name_new(self, node: str, other: str, now: Micros) -> bool:
        """Does the node have a new name that the other one may not know yet? The name spreads more
        slowly during faults, and again from the start when a link between the two is restored."""
        since = self.renamed.get(node)
        if since is None:
            return False
        if now - since < self.obligations.introduction:
            return True
        lately = now - self.obligations.introduction - self.obligations.reconnect
        return self._was_hindered(node, other, max(since, lately), now)

    def _was_hindered(self, one: str, other: str, since: Micros, until: Micros) -> bool:
        """Was there a fault of one of the two nodes, or of a link of one, in this interval? They
        may learn of each other from third nodes. It does not count that they do not know each
        other."""
        intervals = [
            interval
            for pair, found in self.link_troubles.items()
            if one in pair or other in pair
            for interval in found
            if not interval.is_unknown
        ]
        for node in (one, other):
            intervals += self.pauses.get(node, ())
            # The outage that ended with the new name does not count.
            intervals += [down for down in self.outages.get(node, ()) if down.end != since]
        return meets_any(intervals, since, until)

    def is_up(self, node: str) -> bool:
        """Does the node have a process, running or stopped?"""
        return node not in self.down and node not in self.removed

    def in_core(self, node: str) -> bool:
        """Is it one of the nodes for which liveness is judged?"""
        return node in self.core and self.is_up(node)

    def since_heal(self, now: Micros) -> Micros | None:
        """Return the time since the last cut ended; 0 during a cut, None if there was none."""
        if self.partitions and self.partitions[-1].end is None:
            return 0
        return None if self.last_heal is None else now - self.last_heal

    def met_by(self, since: Micros, until: Micros, reach: Micros) -> Partition | None:
        """Return the last partition that overlaps the interval, if its effects last for `reach`."""
        for partition in reversed(self.partitions):
            end = None if partition.end is None else partition.end + reach
            if partition.start <= until and (end is None or end >= since):
                return partition
        return None

    def one_way_cuts(self) -> int:
        """Return the number of cuts in one direction only."""
        return sum(
            not any(
                other == (pair[1], pair[0])
                and reverse.meets(interval.start, FOREVER if interval.end is None else interval.end)
                for other, reverse in self.cuts
            )
            for pair, interval in self.cuts
        )

    # Updates from rows.

    def on_block(self, row: Row, alive: int) -> None:
        """A cut, a clog or a rule begins."""
        if row.kind == "cut" and not any(kind == "cut" for kind, _ in self.blocked):
            self.partitions.append(Partition(row.time, alive=alive))
        key = (row.kind, (row.node, row.peer))
        if key not in self.blocked:
            interval = self.blocked[key] = Interval(row.time)
            if row.kind == "cut":
                self.cuts.append((key[1], interval))
            self.link_troubles.setdefault(_pair(row.node, row.peer), []).append(interval)

    def on_heal(self, row: Row) -> None:
        """A cut, a clog or a rule ends; if the row names no nodes, all of the kind do."""
        kind = BLOCKS[row.kind]
        for key in list(self.blocked):
            if key[0] == kind and (not row.node or key[1] == (row.node, row.peer)):
                self._unblock(key, row.time)

    def _unblock(self, key: tuple[str, Pair], now: Micros) -> None:
        self.blocked.pop(key).end = now
        self.last_trouble = now
        if key[0] == "cut":
            self.last_heal = now
            if not any(kind == "cut" for kind, _ in self.blocked):
                self.partitions[-1].end = now

    def on_crash(self, row: Row) -> None:
        """A process ends."""
        self.nodes[row.node] = None
        if row.node not in self.loading:
            self.crashes[row.node] = row
        elif row.cause == "power" and self.crashes[row.node].cause == "kill":
            self.crashes[row.node] = attrs.evolve(self.crashes[row.node], cause="power")
        self.resume(row.node, row.time)
        if row.node not in self.down:
            interval = self.down[row.node] = Interval(row.time)
            self.outages.setdefault(row.node, []).append(interval)

    def on_start(self, row: Row) -> None:
        """A process starts. As after an outage, the links of a new node are not up at once."""
        self.nodes[row.node] = None
        self.memory_limits.pop(row.node, None)
        if row.cause == "fresh":
            self.leaving.pop(row.node, None)
        if row.cause == "loaded":
            self.loading[row.node] = None
        self.began_faulty.pop(row.node, None)
        if self.was_disk_faulty(row.node, row.time):
            self.began_faulty[row.node] = None
        interval = self.down.pop(row.node, None)
        if interval is None and row.time <= 0:
            return
        if interval is None:
            self.is_changing = True
            interval = Interval(row.time)
            self.outages.setdefault(row.node, []).append(interval)
        interval.end = row.time
        self.last_trouble = row.time
        if row.cause == "fresh":
            self.renamed[row.node] = row.time
            for other in self.nodes:
                self._make_unknown(row.node, other, row.time - SECOND)

    def _make_unknown(self, node: str, other: str, now: Micros) -> None:
        """Record that these two nodes do not know each other."""
        if node != other:
            self.unknown_nodes[node, other] = self.unknown_nodes[other, node] = now
            interval = Interval(now, is_unknown=True)
            self.link_troubles.setdefault(_pair(node, other), []).append(interval)

    def on_pause(self, row: Row) -> None:
        """A process is stopped."""
        if row.node not in self.paused:
            interval = self.paused[row.node] = Interval(row.time)
            self.pauses.setdefault(row.node, []).append(interval)

    def on_memory(self, row: Row) -> None:
        """The memory of a node is reduced, or made ample."""
        limits = self.memory_limits.setdefault(row.node, [])
        limits.append((row.time, int(row.detail) or FOREVER))
        squeezes = self.squeezes.setdefault(row.node, [])
        if squeezes and squeezes[-1].end is None:
            squeezes[-1].end = row.time
        if row.detail != "0":
            squeezes.append(Interval(row.time))

    def on_slow(self, row: Row) -> None:
        """A node or a link becomes slow, or normal again."""
        key = (row.node, row.peer)
        interval = self.slow.pop(key, None)
        if interval is not None:
            interval.end = self.last_trouble = row.time
        if row.detail not in {"", "0"}:
            lag = int(row.detail) * MILLI if row.kind == "slow" else 0
            interval = self.slow[key] = Interval(row.time, is_slow=True, lag=lag)
            self.pauses.setdefault(row.node, []).append(interval)
        if row.kind == "delay":
            self._on_lag(key, row.time, int(row.detail or 0) * MILLI)

    def _on_lag(self, link: Pair, now: Micros, lag: Micros) -> None:
        lags = self.lags.setdefault(link, [])
        if lags and lags[-1].end is None:
            lags[-1].end = now + lags[-1].lag
        if lag:
            lags.append(Interval(now, lag=lag))

    def on_pause_queue(self, row: Row) -> None:
        """A queue is paused or resumed. A broadcast may not reach all nodes while a fault lasts."""
        self.queue_pauses.on_order(row, is_calm=self.is_calm(row.time, row.time))
        if row.detail.endswith(" none"):
            self.last_trouble = row.time

    def resume(self, node: str, now: Micros) -> None:
        """A stopped process resumes, or ends. It receives only now what was sent meanwhile."""
        interval = self.paused.pop(node, None)
        if interval is None:
            return
        interval.end = self.last_trouble = now
        self.queue_pauses.on_resume(node, interval.start, now)

    def on_forget(self, row: Row) -> None:
        """A node forgets another one. If the row has a name, it is a former name of that node."""
        self.names_forgotten += 1
        self.is_changing = True
        if not row.detail:
            self.unknown_nodes[row.node, row.peer] = row.time
            pair = _pair(row.node, row.peer)
            self.link_troubles.setdefault(pair, []).append(Interval(row.time, is_unknown=True))

    def meet(self, node: str, peer: str, now: Micros) -> None:
        """A node sends a message about jobs to one that it had forgotten: they have met again.

        The message does not count while FORGET may be in transit.
        """
        if now - self.unknown_nodes[node, peer] < SECOND:
            return
        del self.unknown_nodes[node, peer]
        for interval in self.link_troubles[_pair(node, peer)]:
            if interval.is_unknown and interval.end is None:
                interval.end = now

    def on_clock(self, row: Row) -> None:
        """A clock steps, or changes its rate."""
        self.wrong_clocks.setdefault(row.node, []).append(row.time)

    def on_core(self, row: Row) -> None:
        """The heal is complete: T0. The row names the core, unless it consists of all nodes."""
        if not self.core or row.kind == "heal.end":
            self.healed = row.time
            named = tuple(re.findall(r"\bn\d+\b", row.detail))
            self.core = named or tuple(node for node in self.nodes if self.is_up(node))


def _pair(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)


def world_of(plan: Plan, obligations: Obligations) -> World:
    """Return the world before the run."""
    planned = []
    for fault in plan.faults:
        if fault.kind in MEMBERSHIP:
            end = plan.chaos if fault.when or not fault.hold else fault.at + fault.hold
            planned.append(Interval(fault.at, end))
    nodes = {f"n{number}": None for number in range(1, plan.nodes + 1)}
    return World(obligations, planned, nodes)
