"""Waiting clients, of GETJOB and WAITJOB: blocking, releasing, timing out (original 1.5, 6.6).

Owns `Client.blocked`, `queues`, `awaited`, `deadline`, `wants`, `wants_result`, `NodeState.awaited`
and `Queue.waiting`, removes from `NodeState.ended`, sets `Client.active` and `Outbox.resumed`, and
arms the client's timer: for the end of its wait, or for the idle timeout.
"""

from collections.abc import Sequence

from disque_trio.statemachine import send
from disque_trio.statemachine.base import NULL_ARRAY, Failure, JobId, Millis, Reply
from disque_trio.statemachine.client import Blocked, Client
from disque_trio.statemachine.lifecycle import drop_queue_if_idle, queue_for
from disque_trio.statemachine.state import NodeState

NO_JOB = b"NOJOB Job not known in the context of this node."
LEAVING_ERROR = b"LEAVING This node is leaving the cluster, please connect to a different one"


def block_for_jobs(
    node: NodeState,
    client: Client,
    queues: Sequence[bytes],
    deadline: Millis,
    wants: int,
) -> None:
    """Block the client until a job is available in any of the queues; deadline 0 is no limit."""
    client.queues = tuple(dict.fromkeys(queues))
    client.wants = wants
    for name in client.queues:
        queue_for(node, name).waiting[client.id] = client
    block(node, client, Blocked.JOBS, deadline)


def block_for_end(
    node: NodeState, client: Client, job_id: JobId, deadline: Millis, *, with_result: bool
) -> None:
    """Block the client until the end of a job, optionally with its result; deadline 0 is no
    limit."""
    client.awaited = job_id
    client.wants_result = with_result
    node.awaited.setdefault(job_id, {})[client.id] = client
    block(node, client, Blocked.JOB, deadline)


def answer_ended(node: NodeState) -> None:
    """Reply to the clients that wait for jobs that have ended, or have left this node."""
    while node.ended:
        job_id = next(iter(node.ended))
        end = node.ended.pop(job_id)
        for client in list(node.awaited.get(job_id, {}).values()):
            reply = end_reply(node, job_id, end, with_result=client.wants_result)
            release(node, client, reply if end else Failure(NO_JOB))


def end_reply(node: NodeState, job_id: JobId, end: bytes, *, with_result: bool) -> Reply:
    """The reply of WAITJOB: the outcome of the job; with WITHRESULT, also its result."""
    if not with_result:
        return end
    kept = node.results.get(job_id)
    return [end, None if kept is None else kept.value]


def block(node: NodeState, client: Client, reason: Blocked, deadline: Millis) -> None:
    """Block the client: its further requests wait until it is released."""
    client.blocked = reason
    client.deadline = deadline
    if deadline:
        node.timers.arm(client, deadline)


def release(node: NodeState, client: Client, reply: Reply) -> None:
    """Reply to a blocked client, and resume its requests."""
    unblock(node, client)
    send.answer(node, client, reply)
    node.out.resumed.append(client)


def unblock(node: NodeState, client: Client) -> None:
    """End a client's wait without a reply."""
    for name in client.queues:
        queue = node.queues[name]
        del queue.waiting[client.id]
        drop_queue_if_idle(node, queue)
    client.queues = ()
    if client.awaited:
        others = node.awaited[client.awaited]
        del others[client.id]
        if not others:
            del node.awaited[client.awaited]
        client.awaited = b""
    client.blocked = Blocked.NO
    client.deadline = 0
    client.active = node.mono
    watch_idle(node, client)


def watch_idle(node: NodeState, client: Client) -> None:
    """Set the client's timer to the time when it has been idle for longer than `timeout`."""
    limit = node.config.timeout_s * 1000
    if limit:
        node.timers.arm(client, client.active + limit + 1)


def release_all_for_jobs(node: NodeState, reply: Reply) -> None:
    """Reply to all clients that wait for jobs, such as when the node is flushed."""
    for client in list(node.clients.values()):
        if client.blocked is Blocked.JOBS:
            release(node, client, reply)


def release_leaving(node: NodeState) -> None:
    """Reply LEAVING to all clients that wait for jobs. ADDJOBs continue (original, defect 2)."""
    release_all_for_jobs(node, Failure(LEAVING_ERROR))


def time_out(node: NodeState, client: Client) -> None:
    """End the client's wait for jobs, or for the end of a job, with null, after its timeout or by
    CLIENT UNBLOCK."""
    release(node, client, NULL_ARRAY if client.blocked is Blocked.JOBS else None)
