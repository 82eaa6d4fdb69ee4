"""Federation: a node whose clients find a queue empty asks other nodes for jobs (original 6.7).

Our nodes are notified once that clients wait (WAITING), and those with jobs answer HAVEJOBS
(`offering`). They then receive a request for one job per waiting client (NEEDJOBS), and send the
jobs (`transfer`). Original nodes are asked as they ask each other: all of them, at growing
intervals, and directly those that sent jobs recently.

Clients that always find jobs at their node never wait, so their node sends no WAITING. A node
therefore announces at intervals jobs that no client takes, and nodes whose clients take jobs
request some (`_even_out`).

The queues in `NodeState.pending_queues` are handled at the end of a batch of inputs (`settle`):
clients of this node come first, and a pipeline of jobs makes one offer.

Owns the broadcast, adhoc and poll fields of `Queue`, its `responders`, `supply`, `seen_taken` and
`unattended`, the fields of `Supply` and, with `lifecycle`, `NodeState.pending_queues`; charges
`Memory.held` for a `Supply`.
"""

import enum
from typing import Final

from disque_trio.statemachine import lifecycle, limiting, offering, send, transfer
from disque_trio.statemachine.base import FOREVER, HANDSHAKE, PAUSE_OUT, LinkId, Millis
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.memory import SUPPLY_BYTES
from disque_trio.statemachine.messages import HaveJobs, NeedJobs, Waiting, YourJobs
from disque_trio.statemachine.queue import Queue, Supply
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.transfer import import_rate, imported

BROADCAST_DELAY: Final[Millis] = 2000
MAX_BROADCAST_DELAY: Final[Millis] = 30_000
ADHOC_DELAY: Final[Millis] = 25
MAX_ADHOC_DELAY: Final[Millis] = 2000
RESPONDER_MEMORY: Final[Millis] = 5000
ANSWER_WITHIN: Final[Millis] = 250
"""A node that has not answered NEEDJOBS after this time counts as having no jobs."""
BUSY: Final = 10
"""With this number of imports in the last seconds, jobs are fetched ahead of the clients'
requests."""
AHEAD: Final[Millis] = 50
"""The number of jobs that the clients of a busy queue take in this time is fetched ahead."""
POLL_MEMORY: Final[Millis] = 1000
"""How long a job is fetched after a GETJOB NOHANG without a job: the client may ask again."""
EVEN_OUT_AGAIN: Final[Millis] = 2000
"""The time between two checks of a queue while another node is known to have jobs that clients take
here."""
RAREST_OFFER: Final = 32
"""Jobs that no client takes are offered less and less often: at the first check, the second, the
fourth …, and then at every 32nd, which is once in 16 minutes."""
IDLE_CHECK: Final[Millis] = 10_000
"""How often a node without others checks an unused queue that is not empty."""
MAX_ATTEMPT: Final = 7
"""Enough attempts for both delays to reach their limits. More would overflow (original, defect
17)."""


class Reason(enum.Enum):
    """Reasons to ask for jobs."""

    CLIENTS_WAIT = "a client found the queue empty"
    REACHED_ZERO = "a fetch took the last job"


# Requests.


def need_jobs(node: NodeState, queue: Queue, reason: Reason) -> None:
    """Ask other nodes for jobs, with the limits on how often.

    A queue paused for output requests nothing, because nothing could be delivered (original, defect
    20).
    """
    if not may_ask(node, queue):
        return
    if reason is Reason.CLIENTS_WAIT:
        node.pending_queues[queue.name] = True
    elif rate := import_rate(node, queue):
        _forget_silent(node, queue)
        _ask_responders(node, queue, _share(node, queue, rate))
        if _is_due(node, queue):
            node.pending_queues[queue.name] = True
        else:
            lifecycle.mark_pending(node, queue.name)


def _share(node: NodeState, queue: Queue, rate: int) -> int:
    """The number of jobs to request from each node that sent some recently."""
    knobs = node.knobs
    share = max(rate // max(len(queue.responders), 1), knobs.request_least)
    return min(share, knobs.jobs_per_request)


def may_ask(node: NodeState, queue: Queue) -> bool:
    """May jobs of this queue be requested, and delivered when they arrive?"""
    cluster = node.cluster
    return cluster.size > 1 and not cluster.is_leaving and not queue.paused & PAUSE_OUT


def poll(node: NodeState, queue: Queue) -> None:
    """A client used NOHANG and got nothing: fetch a job for its next request."""
    queue.polled_until = node.mono + POLL_MEMORY


def settle(node: NodeState) -> None:
    """End of a batch: offer jobs for which no client here waits, and request jobs for which clients
    wait."""
    pending_queues = node.pending_queues
    while pending_queues:
        name = next(iter(pending_queues))
        has_asked = pending_queues.pop(name)
        queue = node.queues.get(name)
        if queue is None:
            continue
        if limiting.has_jobs(node, queue):
            offering.offer(node, queue)
        elif node.refusal is not None or not may_ask(node, queue):
            continue
        elif queue.waiting or has_asked:
            _seek(node, queue)
        elif queue.supply is not None:
            _ask_ahead(node, queue, queue.supply)


def _seek(node: NodeState, queue: Queue) -> None:
    """Announce that clients wait, ask the nodes that have jobs, and set the timer for the next
    try."""
    if _is_due(node, queue):
        _broadcast(node, queue)
    if queue.supply is not None:
        _ask_for_clients(node, queue, queue.supply)
    if queue.responders:
        _forget_silent(node, queue)
        if node.mono >= _next_adhoc(queue):
            _ask_responders(node, queue, _share(node, queue, import_rate(node, queue)))
    watch(node, queue)


def _broadcast(node: NodeState, queue: Queue) -> None:
    queue.broadcast_at = node.mono
    queue.broadcast_attempt = min(queue.broadcast_attempt + 1, MAX_ATTEMPT)
    ours: list[LinkId] = []
    theirs: list[LinkId] = []
    for peer in node.cluster.nodes.values():
        if peer.link and not peer.flags & HANDSHAKE:
            (ours if peer.is_ours else theirs).append(peer.link)
    send.broadcast(node, theirs, NeedJobs(queue.name, 1))
    send.broadcast(node, ours, Waiting(queue.name, max(len(queue.waiting), 1)))


def _is_due(node: NodeState, queue: Queue) -> bool:
    """Is a broadcast due? Immediately, if a link has come up since the last one."""
    return node.mono >= _next_broadcast(queue) or queue.broadcast_at < node.announcements.began


def _next_broadcast(queue: Queue) -> Millis:
    delay = min(BROADCAST_DELAY << queue.broadcast_attempt, MAX_BROADCAST_DELAY)
    return queue.broadcast_at + delay


# Original nodes.


def _ask_responders(node: NodeState, queue: Queue, wanted: int) -> None:
    find = node.cluster.nodes.get
    theirs = [id for id in queue.responders if (peer := find(id)) is None or not peer.is_ours]
    if theirs:
        queue.adhoc_at = node.mono
        queue.adhoc_attempt = min(queue.adhoc_attempt + 1, MAX_ATTEMPT)
        send.to_ids(node, theirs, NeedJobs(queue.name, wanted))


def _next_adhoc(queue: Queue) -> Millis:
    return queue.adhoc_at + min(ADHOC_DELAY << queue.adhoc_attempt, MAX_ADHOC_DELAY)


def _forget_silent(node: NodeState, queue: Queue) -> None:
    for id, last in list(queue.responders.items()):
        if node.mono - last > RESPONDER_MEMORY:
            del queue.responders[id]


# Our nodes.


def on_havejobs(node: NodeState, sender: Peer, message: HaveJobs) -> None:
    """The sender has this number of jobs for which no client waits there. This node requests them;
    or it declines, and requests them later when a client waits."""
    queue = node.queues.get(message.queue)
    if queue is None:
        if message.count:
            send.to_node(node, sender, Waiting(message.queue, 0))
        return
    supply = queue.supply
    if supply is None:
        supply = queue.supply = Supply()
        node.memory.held += SUPPLY_BYTES
    supply.asked.pop(sender.id, None)
    if not message.count:
        supply.known.pop(sender.id, None)
        lifecycle.mark_pending(node, queue.name)
        return
    supply.known[sender.id] = message.count
    if may_ask(node, queue) and node.refusal is None:
        _ask_for_clients(node, queue, supply)
    if sender.id in supply.asked:
        watch(node, queue)
    else:
        send.to_node(node, sender, Waiting(message.queue, 0))


def _ask_for_clients(node: NodeState, queue: Queue, supply: Supply) -> None:
    """Ask the nodes that are known to have jobs for one job per waiting client."""
    if supply.asked and node.mono >= supply.asked_at + ANSWER_WITHIN:
        _give_up(queue, supply)
    wanted = len(queue.waiting) - sum(supply.asked.values())
    waits = bool(queue.waiting)
    if wanted > 0:
        wanted += _soon_wanted(node, queue)
    if not waits and not supply.asked and _is_polled(node, queue):
        wanted = 1
    is_only_one = len(supply.known) == 1
    for id, count in list(supply.known.items()):
        if wanted <= 0:
            break
        if id not in supply.asked:
            # The only supplier is asked for all: jobs that arrive there soon then need no second
            # request.
            most = wanted if is_only_one else min(wanted, count)
            wanted -= _ask(
                node, queue, supply, id, min(most, node.knobs.jobs_per_request), waits=waits
            )


def _soon_wanted(node: NodeState, queue: Queue) -> int:
    """The number of jobs that the clients of a busy queue take before another request would be
    answered: one request per job costs more than the job."""
    if imported(node, queue) < BUSY:
        return 0
    return import_rate(node, queue) * AHEAD // 1000


def _is_polled(node: NodeState, queue: Queue) -> bool:
    """Should a job be fetched for a client that does not wait? One per request, and not more often
    than for original nodes."""
    if node.mono > queue.polled_until or node.mono < _next_adhoc(queue):
        return False
    queue.polled_until = -FOREVER
    queue.adhoc_at = node.mono
    queue.adhoc_attempt = min(queue.adhoc_attempt + 1, MAX_ATTEMPT)
    return True


def _ask_ahead(node: NodeState, queue: Queue, supply: Supply) -> None:
    """Clients take jobs as fast as they arrive: fetch the next ones ahead of their requests."""
    if supply.asked or not supply.known or imported(node, queue) < BUSY:
        return
    wanted = _share(node, queue, import_rate(node, queue))
    for id in list(supply.known):
        _ask(node, queue, supply, id, wanted, waits=False)


def _ask(
    node: NodeState, queue: Queue, supply: Supply, id: bytes, count: int, *, waits: bool
) -> int:
    """Request this number of jobs from the node. Returns the number requested, 0 if it cannot be
    asked."""
    peer = node.cluster.nodes.get(id)
    if peer is None or not peer.is_connected:
        del supply.known[id]
        return 0
    send.to_node(node, peer, NeedJobs(queue.name, count, waits))
    supply.asked[id] = count if waits else 0
    supply.asked_at = node.mono
    return count


def _give_up(queue: Queue, supply: Supply) -> None:
    """These nodes do not answer: broadcast again, in case they missed the last broadcast."""
    for id in supply.asked:
        supply.known.pop(id, None)
    supply.asked.clear()
    queue.broadcast_at = -FOREVER


def on_yourjobs(node: NodeState, sender: Peer, message: YourJobs) -> None:
    """Take jobs into their queues."""
    names = dict.fromkeys([copy.queue for copy in message.copies])
    asked = {name: _answered(node, sender, name, more=message.more) for name in names}
    for copy in message.copies:
        queue = transfer.take(node, sender, copy, is_for_clients=asked[copy.queue])
        if queue is not None:
            if sender.id not in queue.responders and not sender.is_ours:
                queue.broadcast_attempt = 0
            queue.responders[sender.id] = node.mono
            queue.adhoc_attempt = 0
    for name in names:
        lifecycle.mark_pending(node, name)


def _answered(node: NodeState, sender: Peer, name: bytes, *, more: bool) -> bool:
    """The sender has sent jobs. True if they were requested because clients waited."""
    queue = node.queues.get(name)
    if queue is None or queue.supply is None:
        return sender.is_ours
    supply = queue.supply
    if more:
        supply.known[sender.id] = node.knobs.jobs_per_request
    else:
        supply.known.pop(sender.id, None)
    return bool(supply.asked.pop(sender.id, sender.is_ours))


# Time.


def watch(node: NodeState, queue: Queue) -> None:
    """If clients wait on this queue, set its timer for the next request."""
    if not queue.waiting or queue.paused & PAUSE_OUT or node.cluster.size == 1:
        return
    again = _next_broadcast(queue)
    if any(not _is_ours(node, id) for id in queue.responders):
        again = min(again, _next_adhoc(queue))
    if queue.supply is not None and queue.supply.asked:
        again = min(again, queue.supply.asked_at + ANSWER_WITHIN)
    node.timers.arm(queue, max(again, node.mono + ADHOC_DELAY))


def _is_ours(node: NodeState, id: bytes) -> bool:
    peer = node.cluster.nodes.get(id)
    return peer is not None and peer.is_ours


def watch_all(node: NodeState) -> None:
    """The cluster has grown: the new node may have jobs for the clients that wait here."""
    for queue in node.queues.values():
        watch(node, queue)


def on_queue_due(node: NodeState, queue: Queue) -> None:
    """A queue's timer: clients still wait, jobs wait for clients, or the queue has been idle for
    long."""
    again = max(queue.accessed + lifecycle.QUEUE_IDLE_LIMIT, node.mono + IDLE_CHECK)
    if queue.waiting:
        lifecycle.mark_pending(node, queue.name)
    elif lifecycle.drop_queue_if_idle(node, queue):
        return
    elif node.cluster.size > 1:
        again = node.mono + _even_out(node, queue)
    node.timers.arm(queue, again)
    watch(node, queue)


# Jobs that wait at one node while clients at another node always find some.


def _even_out(node: NodeState, queue: Queue) -> Millis:
    """Announce jobs that clients do not take here, and request such jobs of other nodes: as many as
    clients have taken here since the last check. Returns when to check again.

    Where there are no jobs, a new client waits, and the node requests jobs then. Imported jobs are
    older than those that are added now, so they are delivered first.
    """
    taken = queue.jobs_out - queue.transferred
    lately, queue.seen_taken = taken - queue.seen_taken, taken
    if lately or not queue.length:
        queue.unattended = 0
        return _ask_known(node, queue, lately) if queue.length else lifecycle.QUEUE_LOOK
    queue.unattended = times = queue.unattended + 1
    if times % min(1 << (times.bit_length() - 1), RAREST_OFFER) == 0:
        offering.offer_to_all(node, queue)
    return lifecycle.QUEUE_LOOK


def _ask_known(node: NodeState, queue: Queue, wanted: int) -> Millis:
    """Request jobs from the nodes that have announced some. Returns when to check again."""
    supply = queue.supply
    if supply is None or not may_ask(node, queue) or node.refusal is not None:
        return lifecycle.QUEUE_LOOK
    if supply.asked and node.mono >= supply.asked_at + ANSWER_WITHIN:
        _give_up(queue, supply)
    for id in list(supply.known):
        if wanted <= 0:
            break
        if id not in supply.asked:
            count = min(wanted, node.knobs.jobs_per_request)
            wanted -= _ask(node, queue, supply, id, count, waits=False)
    return EVEN_OUT_AGAIN if supply.known else lifecycle.QUEUE_LOOK
