"""ADDJOBs that wait for replicas: several of one client at once, answered in order.

The client may send more ADDJOBs meanwhile (`may_follow`); any other request waits until all are
answered. Replies are kept until those of earlier ADDJOBs are sent. Owns `Client.pending_adds` and
`most_pending`, the fields of `PendingAdd`, `NodeState.adding` and `adding_bytes`; adds to
`Outbox.resumed`.
"""

from typing import Final

from disque_trio.statemachine import counts, send, waiters
from disque_trio.statemachine.base import PENDING, SILENCE, Failure, Millis, Reply, Status
from disque_trio.statemachine.client import Blocked, Client, ReplyMode
from disque_trio.statemachine.job import Job, PendingAdd
from disque_trio.statemachine.state import NodeState

_ON: Final = ReplyMode.ON


def begin(
    node: NodeState, client: Client, job: Job, deadline: Millis, sync: int = 0, widen_at: Millis = 0
) -> None:
    """Begin the wait of a client for this job. Deadline 0 is no limit. The reply is sent when
    `sync` copies are confirmed; 0 is all of them."""
    size = len(job.body or b"")
    widen_at = widen_at or node.mono + node.knobs.widen_every
    is_silent = client.reply_mode is not _ON
    pending = PendingAdd(
        client.id, job, deadline, widen_at, size, is_silent, sync=sync or job.replicas
    )
    node.adding[job.id] = pending
    node.adding_bytes += size
    _append(client, pending)
    if client.blocked is not Blocked.COPIES:
        waiters.block(node, client, Blocked.COPIES, 0)
    due = min(deadline, widen_at) if deadline else widen_at
    if not client.due or due < client.due:
        node.timers.arm(client, due)


def may_follow(node: NodeState, client: Client, body: bytes) -> bool:
    """May an ADDJOB with this body be handled while the client waits for replicas of others?"""
    if client.blocked is not Blocked.COPIES or client.is_closing or node.mono < node.paused_until:
        return False
    waiting, knobs = len(client.pending_adds), node.knobs
    return (
        waiting < knobs.adds_of_client
        and waiting * len(body) < knobs.add_bytes_of_client
        and len(node.adding) < knobs.adds_of_all
        and node.adding_bytes + len(body) <= knobs.add_bytes_of_all
    )


def answer(client: Client, reply: Reply) -> None:
    """Queue the reply of an ADDJOB that does not wait, behind the earlier ones."""
    if reply is PENDING:
        return
    assert client.pending_adds, f"client {client.id} is answered in the turn of nothing"
    is_silent = client.reply_mode is not _ON
    _append(client, PendingAdd(client.id, None, 0, 0, 0, is_silent, reply))


def _append(client: Client, pending: PendingAdd) -> None:
    client.pending_adds.append(pending)
    client.most_pending = max(client.most_pending, len(client.pending_adds))


def settle(node: NodeState, job: Job, reply: Reply) -> None:
    """End the wait for this job's replicas: send the reply if no earlier ADDJOB waits, and then
    those of later ones that are settled already."""
    pending = node.adding.get(job.id)
    assert pending is not None, f"{job.id!r} waits for copies without an ADDJOB"
    if isinstance(reply, Failure):
        counts.failure(node, reply.text)
    elif isinstance(reply, Status) and reply.text == job.id:
        counts.copied(node, job)
    _release(node, pending, job)
    pending.job = None
    pending.reply = reply
    client = node.clients[pending.client]
    waiting = client.pending_adds
    if waiting[0] is not pending:
        return
    answered = 0
    for each in waiting:
        if each.job is not None:
            break
        send.answer(node, client, SILENCE if each.is_silent else each.reply)
        answered += 1
    del waiting[:answered]
    if not waiting:
        waiters.unblock(node, client)
    # The client is resumed when half are answered, so that it sends several ADDJOBs at a time.
    if len(waiting) <= client.most_pending // 2:
        client.most_pending = len(waiting)
        node.out.resumed.append(client)


def _release(node: NodeState, pending: PendingAdd, job: Job) -> None:
    del node.adding[job.id]
    node.adding_bytes -= pending.size


def abandon(node: NodeState, client: Client) -> list[Job]:
    """Drop the ADDJOBs of a client that has disconnected. Returns the jobs for which it waited."""
    jobs = []
    for pending in client.pending_adds:
        if (job := pending.job) is not None:
            _release(node, pending, job)
            jobs.append(job)
    client.pending_adds.clear()
    return jobs


def widen_in(node: NodeState, pending: PendingAdd, wait: Millis) -> None:
    """Set the time after which the job may be sent to one more node."""
    pending.widen_at = node.mono + wait


def await_copies(node: NodeState, job: Job) -> None:
    """The ADDJOB, which has waited for its key, now waits for replicas."""
    pending = node.adding[job.id]
    pending.widen_at = node.mono + node.knobs.widen_every
    client = node.clients[pending.client]
    if not client.due or pending.widen_at < client.due:
        node.timers.arm(client, pending.widen_at)


def rearm(node: NodeState, client: Client) -> None:
    """Set the client's timer to the next deadline or widening of any of its jobs."""
    waiting = [each for each in client.pending_adds if each.job is not None]
    if waiting:
        dues = [each.widen_at for each in waiting]
        dues += [each.deadline for each in waiting if each.deadline]
        node.timers.arm(client, min(dues))
