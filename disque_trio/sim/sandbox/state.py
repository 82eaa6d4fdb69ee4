"""The present state of a sandbox, as JSON values for a page. Reading it changes nothing."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from disque_trio.sim.engines.heap.nodes import Host
from disque_trio.sim.fault_controls import number_of
from disque_trio.sim.model.clock import EPOCH_MS
from disque_trio.sim.sandbox.context import Context
from disque_trio.sim.sandbox.manual_client import in_words
from disque_trio.sim.sandbox.sandbox import Sandbox
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    FAIL,
    HANDSHAKE,
    LEAVING,
    PFAIL,
    QUEUED,
    WAIT_REPL,
    JobId,
)
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.job import Job

Json = dict[str, Any]
JOBS: Final = 60
"""The number of shown jobs: the oldest, which have problems."""
OPERATIONS: Final = 60
"""The number of shown operations: the newest."""
_STATES: Final = {WAIT_REPL: "copying", ACTIVE: "held", QUEUED: "queued", ACKED: "acked"}


def state(box: Sandbox) -> Json:
    """Return the whole state."""
    context = box.context
    jobs = _jobs(context)
    return {
        "scenario": "" if box.is_by_hand else box.sim.plan.scenario,
        "seed": box.sim.plan.seed,
        "now": box.now,
        "events": len(box.rows),
        "ended": box.ended,
        "is_finished": box.is_finished,
        "digest": box.digest,
        "counts": _counts(box),
        "nodes": [_node(context, host) for host in context.sim.world.hosts.values()],
        "links": _links(context),
        "faults": [
            {"number": each.number, "words": each.words, "at": each.fault.at}
            for each in context.going_on()
        ],
        "jobs": [_job(box, id, copies) for id, copies in islice(jobs.items(), JOBS)],
        "all_jobs": len(jobs),
        "in_hand": [
            {
                "job": each.job,
                "queue": each.queue,
                "node": each.node,
                "nacks": each.nacks,
                "again": each.again,
            }
            for each in context.client.held_jobs()
        ],
        "workers": list(_workers(context)),
        "asked": [
            {"at": each.at, "node": each.node, "words": each.words, "reply": in_words(each.pending)}
            for each in context.client.asked
        ],
        "operations": [{"at": each.at, "words": each.words} for each in box.done[-OPERATIONS:]],
        "all_operations": len(box.done),
    }


def _counts(box: Sandbox) -> Json:
    kinds = box.counts
    return {
        "added": kinds["add.ok"],
        "refused": kinds["add.refused"],
        "unknown": kinds["add.unknown"],
        "delivered": len(box.deliveries),
        "again": kinds["get.deliver"] - len(box.deliveries),
        "acked": kinds["ack.ok"],
    }


def _node(context: Context, host: Host) -> Json:
    machine, name = host.machine, host.name
    known: Json = {"name": name, "life": host.lives, "slow_ms": host.slowness // 1000}
    known["clock_ms"] = host.clock.now(context.sim.now).wall - EPOCH_MS - context.sim.now // 1000
    if machine is None:
        return known | {"state": "down", "jobs": None, "queued": None, "queues": None, "sees": {}}
    state = machine.state
    is_leaving = bool(state.cluster.myself.flags & LEAVING)
    word = "paused" if host.is_paused else "leaving" if is_leaving else "up"
    return known | {
        "state": word,
        "jobs": len(state.jobs),
        "queued": sum(queue.length for queue in state.queues.values()),
        "queues": {
            queue.name.decode("utf-8", "replace"): queue.length for queue in state.queues.values()
        },
        "sees": dict(_sees(context, machine.state.cluster.nodes.values())),
    }


def _sees(context: Context, peers: Any) -> Iterator[tuple[str, str]]:
    for peer in peers:
        name = context.sim.world.names.get(peer.id)
        if name and context.sim.world.hosts[number_of(name)].id == peer.id:
            yield name, _view(peer)


def _view(peer: Peer) -> str:
    if peer.flags & HANDSHAKE:
        return "unknown"
    if peer.flags & FAIL:
        return "failed"
    return "suspect" if peer.flags & PFAIL else "up"


def _links(context: Context) -> list[tuple[str, str, str]]:
    """Return the directions that are cut or clogged."""
    network, names = context.sim.world.network, context.nodes
    found = []
    for source in names:
        for target in names:
            if source != target:
                path = network.path(number_of(source), number_of(target))
                if path.cuts or path.clogs:
                    found.append((source, target, "cut" if path.cuts else "held"))
    return found


def _jobs(context: Context) -> dict[JobId, dict[str, Job]]:
    """Return the copies by job, oldest first, then by running node."""
    found: dict[JobId, dict[str, Job]] = {}
    for host in context.sim.world.hosts.values():
        if host.machine is not None:
            for job in host.machine.state.jobs.values():
                found.setdefault(job.id, {})[host.name] = job
    made = {id: next(iter(copies.values())).ctime for id, copies in found.items()}
    return dict(sorted(found.items(), key=lambda item: made[item[0]]))


def _job(box: Sandbox, id: JobId, copies: dict[str, Job]) -> Json:
    text = id.decode("latin-1")
    some = next(iter(copies.values()))
    return {
        "id": text,
        "queue": (some.queue or b"").decode("utf-8", "replace"),
        "body": _body(some),
        "copies": {node: _STATES[job.state] for node, job in copies.items()},
        "wanted": some.replicas,
        "delivered": box.deliveries[text],
        "again_ms": _again(box, copies),
    }


def _body(job: Job) -> str:
    return job.body[:100].decode("utf-8", "replace") if isinstance(job.body, bytes) else ""


def _again(box: Sandbox, copies: dict[str, Job]) -> int | None:
    """Return the earliest time, in milliseconds, at which the job is queued if nothing else
    happens."""
    if any(job.state == QUEUED for job in copies.values()):
        return None
    dues = [
        job.requeue_at - box.context.sim.world.hosts[number_of(node)].now.mono
        for node, job in copies.items()
        if job.state == ACTIVE and job.requeue_at
    ]
    return max(0, min(dues)) if dues else None


def _workers(context: Context) -> Iterator[Json]:
    for each in context.client.workers:
        if each.until is None:
            plan = each.plan
            yield {
                "name": plan.name,
                "node": f"n{plan.node}",
                "queue": plan.queues[0],
                "work_ms": plan.work[0] // 1000,
                "acks": each.acks,
                "has_job": not each.worker.is_idle(),
            }
