"""Invariants of one node that hold between any two inputs. For tests and simulation, never in
production.

Only reads records. A violation raises an AssertionError with the values.
"""

from collections.abc import Mapping

from disque_trio.statemachine.backlog import Backlog
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    DEAD,
    DELAYED,
    DELIVERED_HERE,
    HANDSHAKE,
    PAUSE_OUT,
    POSTPONED,
    QUEUED,
    QUEUED_ONCE,
    RESTORED,
    RETURNING,
    TAKEN,
    WAIT_REPL,
)
from disque_trio.statemachine.client import Blocked, Client
from disque_trio.statemachine.cluster import UNREACHABLE
from disque_trio.statemachine.job import Job, next_wake
from disque_trio.statemachine.memory import (
    is_evictable,
    of_demand,
    of_job,
    of_kept,
    of_key,
    of_queue,
    of_result,
)
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState


def check(node: NodeState) -> None:
    """Raise AssertionError for the first invariant that does not hold."""
    assert list(node.table.walk()) == list(node.jobs.values()), "the chain through the jobs is torn"
    for job_id, job in node.jobs.items():
        assert job.id == job_id, (job_id, job.id)
        _check_job(node, job)
    for name, queue in node.queues.items():
        assert queue.name == name, (name, queue.name)
        _check_queue(node, queue)
    for client in node.clients.values():
        _check_client(node, client)
    _check_tracked_deliveries(node)
    _check_counts(node)
    _check_dead(node)
    waiting = sum(map(len, node.awaited.values()))
    assert waiting == sum(bool(each.awaited) for each in node.clients.values()), node.awaited
    _check_adding(node)
    _check_cluster(node)
    _check_memory(node)
    assert not node.ready, f"queues left unserved: {list(node.ready)}"
    for demand in node.demands.values():
        assert demand.askers, f"no node waits for {demand.name!r}"
        assert demand.slot, f"{demand.name!r} is wanted for ever"


def _check_job(node: NodeState, job: Job) -> None:
    assert job.slot, f"{job.id!r} is in no timer slot"
    assert job.due == next_wake(job), f"{job.id!r} wakes at {job.due}, not {next_wake(job)}"
    assert (job.queue is None) == (job.body is None), f"{job.id!r} is half a dummy"
    assert not job.is_dummy or job.state == ACKED, f"dummy {job.id!r} in state {job.state}"
    is_adding = job.id in node.adding and job.id not in node.keys.ordering.replacing
    assert not is_adding or job.state == WAIT_REPL, f"{job.id!r} has a waiting client"
    assert len(dict.fromkeys(job.holders)) == len(job.holders), f"{job.id!r}: {job.holders}"
    if job.state == QUEUED:
        assert job.queue in node.queues, f"{job.id!r} is queued in no queue"
        assert job.in_line, f"{job.id!r} is queued without an entry"
    if job.state in (ACTIVE, QUEUED):
        assert set(job.confirmed or ()) <= set(job.holders), f"{job.id!r}: {job.confirmed}"
        assert job.requeue_at or not job.retry, f"{job.id!r} would never be queued again"
    if job.state not in (WAIT_REPL, ACKED):
        is_dead = job.state == DEAD
        assert job.dead_state.is_dead == is_dead, f"{job.id!r} in state {job.state} is dead"
        assert not (is_dead and job.requeue_at), f"{job.id!r} is dead and would be queued"
    if job.flags & POSTPONED and job.state != ACKED:
        assert job.state in (ACTIVE, WAIT_REPL), f"{job.id!r} is postponed in state {job.state}"
        assert not job.flags & (DELIVERED_HERE | TAKEN), (
            f"{job.id!r} is postponed, and with a worker"
        )
    if job.flags & RETURNING:
        assert job.state in (ACTIVE, ACKED), f"{job.id!r} returns in state {job.state}"
        assert job.state == ACKED or not job.flags & (DELIVERED_HERE | TAKEN | POSTPONED), (
            f"{job.id!r} returns to its queue, and waits"
        )
    if not job.retry and job.flags & QUEUED_ONCE:
        assert not job.requeue_at, f"{job.id!r} would be queued twice"


def _check_queue(node: NodeState, queue: Queue) -> None:
    jobs = [j for j in node.jobs.values() if j.queue == queue.name and j.state == QUEUED]
    assert len(queue) == len(jobs), f"{queue.name!r} counts {len(queue)} of {len(jobs)} jobs"
    order = sorted(jobs, key=_place)
    assert queue.peek(-len(jobs)) == order[::-1], f"{queue.name!r} is out of order"
    seen = queue.peek(len(jobs))
    ranks = [-job.priority for job in seen]
    assert ranks == sorted(ranks), f"{queue.name!r} has priorities out of order"
    assert sorted(seen, key=_group) == sorted(order, key=_group), f"{queue.name!r} is out of order"
    for client in queue.waiting.values():
        assert queue.name in client.queues, f"{queue.name!r} holds client {client.id}"
        assert node.clients.get(client.id) is client, f"client {client.id} has gone"
    if queue.waiting and not queue.paused & PAUSE_OUT:
        is_limited = queue.limit is not None and queue.limit.setting.is_set
        are_parked = all(job.group is not None and queue.is_parked(job.group) for job in jobs)
        asks = queue.limit is not None and bool(queue.limit.awaited)
        is_noted = is_limited and (queue.name in node.short or are_parked or asks)
        assert not len(queue) or is_noted, f"{queue.name!r} lets clients wait, and has jobs"
    assert queue.slot, f"{queue.name!r} is in no timer slot"


def _check_tracked_deliveries(node: NodeState) -> None:
    for job_id, delivery in node.tracked.items():
        job = node.jobs.get(job_id)
        assert job is not None, f"{job_id!r} has gone"
        assert job.state != ACKED, f"{job_id!r} is acknowledged, and has a token"
        client = delivery.client
        if client is not None:
            assert job.state == ACTIVE, f"{job_id!r} is tied in state {job.state}"
            assert client.tied is not None, f"client {client.id} has nothing tied"
            assert client.tied.get(job_id) is job, f"{job_id!r} is not tied to {client.id}"
            assert node.clients.get(client.id) is client, f"{job_id!r} is tied to who has gone"


def _check_counts(node: NodeState) -> None:
    delayed, restored = (
        {name: backlog.number for name, backlog in backlogs.items()}
        for backlogs in (node.delayed, node.restored)
    )
    of_flags = (DELAYED, delayed), (DELIVERED_HERE, node.leased), (RESTORED, restored)
    for flag, counted in of_flags:
        having = [job for job in node.jobs.values() if job.flags & flag and job.state != ACKED]
        found: dict[bytes, int] = {}
        for job in having:
            found[job.queue or b""] = found.get(job.queue or b"", 0) + 1
        assert counted == found, f"flag {flag} is counted as {counted}, and {found} have it"
    active: dict[bytes, int] = {}
    for job in node.jobs.values():
        name = job.queue or b""
        if job.state == ACTIVE:
            active[name] = active.get(name, 0) + 1
    assert node.unqueued == active, f"{node.unqueued} are counted as active, and {active} are"
    seconds = _check_first_due(node, DELAYED, node.delayed)
    seconds += _check_first_due(node, RESTORED, node.restored)
    assert node.due_seconds == seconds, f"{node.due_seconds} seconds are counted of {seconds}"


def _check_first_due(node: NodeState, flag: int, backlogs: Mapping[bytes, Backlog]) -> int:
    """Returns the number of seconds in which jobs with this flag are due, summed over queues."""
    moments: dict[bytes, list[int]] = {}
    for job in node.jobs.values():
        if job.flags & flag and job.state != ACKED:
            moments.setdefault(job.queue or b"", []).append(job.requeue_at)
    for name, backlog in backlogs.items():
        first, due = min(moments[name]), backlog.first_due()
        assert 0 <= first - due < 1000, f"{name!r} is first due at {first}, not {due}"
    return sum([len({due // 1000 for due in each}) for each in moments.values()])


def _check_dead(node: NodeState) -> None:
    dead: dict[bytes, set[bytes]] = {}
    for job in node.jobs.values():
        if job.state == DEAD:
            dead.setdefault(job.queue or b"", set()).add(job.id)
            assert not job.flags & (DELIVERED_HERE | DELAYED), (
                f"{job.id!r} is dead, flags {job.flags}"
            )
    listed = {name: set(jobs) for name, jobs in node.dead.items()}
    assert listed == dead, f"{listed} are listed as dead, and {dead} are"


def _group(job: Job) -> bytes:
    """The sort key for groups: within a group, jobs are in queue order."""
    return job.group or b""


def _place(job: Job) -> tuple[int, int, bytes]:
    return -job.priority, job.ctime, job.id


def _check_client(node: NodeState, client: Client) -> None:
    if client.blocked is Blocked.JOBS:
        for name in client.queues:
            assert client.id in node.queues[name].waiting, f"{client.id} is not waiting on {name!r}"
    else:
        assert (client.blocked is Blocked.JOB) == bool(client.awaited), client.id
        if client.awaited:
            assert node.awaited[client.awaited][client.id] is client, f"{client.id} is not told"
            assert client.awaited in node.jobs, f"{client.id} waits for a job that has gone"
        assert not client.queues, f"client {client.id} lingers on {client.queues}"
    for job in (client.tied or {}).values():
        assert node.tracked[job.id].client is client, f"{job.id!r} is tied to another client"
    _check_pending_adds(node, client)
    if client.blocked is not Blocked.NO and client.deadline:
        assert client.slot, f"client {client.id} waits for a deadline that is in no timer slot"
        assert 0 < client.due <= client.deadline, f"{client.id}: {client.due}, {client.deadline}"


def _check_pending_adds(node: NodeState, client: Client) -> None:
    assert (client.blocked is Blocked.COPIES) == bool(client.pending_adds), client.id
    assert not client.pending_adds or client.pending_adds[0].job is not None, (
        f"client {client.id} could be answered"
    )
    for pending in client.pending_adds:
        assert pending.client == client.id, f"client {client.id} waits for another one"
        if pending.job is not None:
            is_known = node.adding.get(pending.job.id) is pending
            assert is_known, f"no ADDJOB waits for {pending.job.id!r}"
            due = min(pending.widen_at, pending.deadline or pending.widen_at)
            assert client.slot, f"client {client.id} waits for a moment that is in no timer slot"
            assert 0 < client.due <= due, f"{client.id}: {client.due}, {due}"


def _check_adding(node: NodeState) -> None:
    waiting = [
        each
        for client in node.clients.values()
        for each in client.pending_adds
        if each.job is not None
    ]
    counted = len(node.adding), node.adding_bytes
    assert counted == (len(waiting), sum(each.size for each in waiting)), (
        f"{counted} ADDJOBs and bytes are counted as waiting for copies"
    )


def _check_cluster(node: NodeState) -> None:
    cluster = node.cluster
    assert cluster.nodes.get(cluster.myself.id) is cluster.myself, "this node is not in its table"
    for name, peer in cluster.nodes.items():
        assert peer.id == name, (name, peer.id)
        assert not peer.link or cluster.links[peer.link].peer is peer, f"{name!r} lost its link"
        assert name not in cluster.blacklist or not peer.flags & HANDSHAKE, name
    members = [peer for peer in cluster.nodes.values() if not peer.flags & HANDSHAKE]
    assert cluster.size == len(members), f"{cluster.size} members counted of {len(members)}"
    for peer in cluster.reachable:
        assert peer is not cluster.myself, "this node counts itself as reachable"
        assert not peer.flags & UNREACHABLE, f"{peer.id!r} is not reachable: {peer.flags}"


def _check_memory(node: NodeState) -> None:
    memory = node.memory
    recovered = [job for job in node.recovered.values() if job.id not in node.jobs]
    jobs = [*node.jobs.values(), *recovered]
    held = sum(map(of_job, jobs)) + sum(map(of_queue, node.queues.values()))
    held += sum(of_demand(each.name, len(each.askers)) for each in node.demands.values())
    held += sum(of_key(name) * len(jobs) for name, jobs in node.keys.index.items())
    held += sum(of_kept(name) * len(some) for name, some in node.keys.kept.items())
    held += sum(of_result(each.queue, each.value) for each in node.results.values())
    assert memory.held == held, f"{memory.held} bytes are on the account, not {held}"
    dummies = [job.id for job in node.jobs.values() if job.is_dummy]
    assert sorted(memory.dummies) == sorted(dummies), "dummy acks are counted wrongly"
    for job in memory.evictable.values():
        assert node.jobs.get(job.id) is job, f"{job.id!r} would be evicted, and is not here"
    for job in node.jobs.values():
        is_listed = job.id in memory.evictable or job.is_dummy
        assert is_evictable(job) == is_listed, (
            f"{job.id!r} in state {job.state} may be evicted: {is_listed}"
        )
