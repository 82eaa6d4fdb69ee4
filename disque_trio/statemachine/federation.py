"""Jobs where the clients are: a node whose clients find a queue empty asks others (original 6.7).

Nodes of ours are told once that clients wait (WAITING), and say which of them have jobs (HAVEJOBS;
`offering`). Those are asked for as many as clients wait (NEEDJOBS), and send them (`transfer`).
Original nodes are asked as they ask each other: everybody, ever more rarely, and directly whoever
gave jobs lately.

What a batch of inputs leaves unmet is looked at when they are all in (`settle`): the clients here
come first, and a pipeline of jobs is one offer.

Owns the broadcast, adhoc and poll fields of `Queue`, its `responders` and `supply`, the fields of
`Supply` and, with `lifecycle`, `NodeState.unmet`; charges `Memory.held` for a `Supply`.
"""

import enum
from typing import Final

from disque_trio.statemachine import lifecycle, offering, send, transfer
from disque_trio.statemachine.base import FOREVER, HANDSHAKE, PAUSE_OUT, LinkId, Millis
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.memory import SUPPLY_BYTES
from disque_trio.statemachine.messages import HaveJobs, NeedJobs, Waiting, YourJobs
from disque_trio.statemachine.offering import MAX_REQUEST
from disque_trio.statemachine.queue import Queue, Supply
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.transfer import import_rate, imported

MIN_REQUEST: Final = 5
BROADCAST_DELAY: Final[Millis] = 2000
MAX_BROADCAST_DELAY: Final[Millis] = 30_000
ADHOC_DELAY: Final[Millis] = 25
MAX_ADHOC_DELAY: Final[Millis] = 2000
RESPONDER_MEMORY: Final[Millis] = 5000
ANSWER_WITHIN: Final[Millis] = 250
"""Who has not answered NEEDJOBS by then is taken to have no jobs."""
BUSY: Final = 10
"""So many imports in the last seconds make it worth while to have jobs before clients ask."""
AHEAD: Final[Millis] = 50
"""A busy queue is asked for what its clients take in so long, beside what they wait for."""
POLL_MEMORY: Final[Millis] = 1000
"""For so long a job is fetched for a client that asked with NOHANG: it may ask again."""
IDLE_CHECK: Final[Millis] = 10_000
"""How often a queue is looked at that nobody has used for long, but that is not empty."""
MAX_ATTEMPT: Final = 7
"""Enough for both delays to reach their limits. More would overflow (original, defect 17)."""


class Why(enum.Enum):
    """What makes a node ask for jobs."""

    CLIENTS_WAIT = "a client found the queue empty"
    REACHED_ZERO = "a fetch took the last job"


# Asking.


def need_jobs(node: NodeState, queue: Queue, why: Why) -> None:
    """Ask other nodes for jobs, as often as it makes sense.

    A queue paused in output asks for nothing: nothing could be delivered (original, defect 20).
    """
    if not may_ask(node, queue):
        return
    if why is Why.CLIENTS_WAIT:
        node.unmet[queue.name] = True
    elif rate := import_rate(node, queue):
        _forget_silent(node, queue)
        _ask_responders(node, queue, _share(queue, rate))
        if _is_due(node, queue):
            node.unmet[queue.name] = True
        else:
            lifecycle.mark_unmet(node, queue.name)


def _share(queue: Queue, rate: int) -> int:
    """What each of the nodes that gave jobs lately is asked for."""
    return min(max(rate // max(len(queue.responders), 1), MIN_REQUEST), MAX_REQUEST)


def may_ask(node: NodeState, queue: Queue) -> bool:
    """May jobs of this queue be asked for, and delivered when they come?"""
    cluster = node.cluster
    return cluster.size > 1 and not cluster.is_leaving and not queue.paused & PAUSE_OUT


def poll(node: NodeState, queue: Queue) -> None:
    """A client asked, found nothing, and does not wait: fetch a job for when it asks again."""
    queue.polled_until = node.mono + POLL_MEMORY


def settle(node: NodeState) -> None:
    """The inputs of a batch are in: offer the jobs that no client waits for, and ask for those that
    clients wait for."""
    unmet = node.unmet
    while unmet:
        name = next(iter(unmet))
        has_asked = unmet.pop(name)
        queue = node.queues.get(name)
        if queue is None:
            continue
        if queue.length:
            offering.offer(node, queue)
        elif node.refusal is not None or not may_ask(node, queue):
            continue
        elif queue.waiting or has_asked:
            _seek(node, queue)
        elif queue.supply is not None:
            _ask_ahead(node, queue, queue.supply)


def _seek(node: NodeState, queue: Queue) -> None:
    """Tell that clients wait, ask those who have jobs, and see when to do so again."""
    if _is_due(node, queue):
        _tell_everybody(node, queue)
    if queue.supply is not None:
        _ask_for_clients(node, queue, queue.supply)
    if queue.responders:
        _forget_silent(node, queue)
        if node.mono >= _next_adhoc(queue):
            _ask_responders(node, queue, _share(queue, import_rate(node, queue)))
    watch(node, queue)


def _tell_everybody(node: NodeState, queue: Queue) -> None:
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
    """Is it time to tell everybody? At once if a link has come up since the last time."""
    return node.mono >= _next_broadcast(queue) or queue.broadcast_at < node.greetings.began


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


def _note_responder(node: NodeState, queue: Queue, sender: Peer) -> None:
    if sender.id not in queue.responders and not sender.is_ours:
        queue.broadcast_attempt = 0
    queue.responders[sender.id] = node.mono
    queue.adhoc_attempt = 0


# Nodes of ours.


def on_havejobs(node: NodeState, sender: Peer, message: HaveJobs) -> None:
    """The sender has so many jobs for which no client waits there. Who does not ask for them now
    says so, and asks when a client waits."""
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
        lifecycle.mark_unmet(node, queue.name)
        return
    supply.known[sender.id] = message.count
    if may_ask(node, queue) and node.refusal is None:
        _ask_for_clients(node, queue, supply)
    if sender.id in supply.asked:
        watch(node, queue)
    else:
        send.to_node(node, sender, Waiting(message.queue, 0))


def _ask_for_clients(node: NodeState, queue: Queue, supply: Supply) -> None:
    """Ask for as many jobs as clients wait, of those who are known to have some."""
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
            # One that gets more jobs in a moment may then give them without being asked again.
            most = wanted if is_only_one else min(wanted, count)
            wanted -= _ask(node, queue, supply, id, min(most, MAX_REQUEST), waits=waits)


def _soon_wanted(node: NodeState, queue: Queue) -> int:
    """What the clients of a busy queue take before another question would be answered: one question
    for each job costs more than the job."""
    if imported(node, queue) < BUSY:
        return 0
    return import_rate(node, queue) * AHEAD // 1000


def _is_polled(node: NodeState, queue: Queue) -> bool:
    """Is a job to be fetched for a client that does not wait? One for each time it asks, and not
    more often than an original node would be asked."""
    if node.mono > queue.polled_until or node.mono < _next_adhoc(queue):
        return False
    queue.polled_until = -FOREVER
    queue.adhoc_at = node.mono
    queue.adhoc_attempt = min(queue.adhoc_attempt + 1, MAX_ATTEMPT)
    return True


def _ask_ahead(node: NodeState, queue: Queue, supply: Supply) -> None:
    """Clients take jobs as fast as they come: have the next ones here before they are asked for."""
    if supply.asked or not supply.known or imported(node, queue) < BUSY:
        return
    wanted = _share(queue, import_rate(node, queue))
    for id in list(supply.known):
        _ask(node, queue, supply, id, wanted, waits=False)


def _ask(
    node: NodeState, queue: Queue, supply: Supply, id: bytes, count: int, *, waits: bool
) -> int:
    """Ask the node for so many; none if it cannot be asked."""
    peer = node.cluster.nodes.get(id)
    if peer is None or not peer.is_connected:
        del supply.known[id]
        return 0
    send.to_node(node, peer, NeedJobs(queue.name, count, waits))
    supply.asked[id] = count if waits else 0
    supply.asked_at = node.mono
    return count


def _give_up(queue: Queue, supply: Supply) -> None:
    """These do not answer. Tell everybody anew, in case that they have not heard it."""
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
            _note_responder(node, queue, sender)
    for name in names:
        lifecycle.mark_unmet(node, name)


def _answered(node: NodeState, sender: Peer, name: bytes, *, more: bool) -> bool:
    """The sender has given jobs. Was it because clients waited?"""
    queue = node.queues.get(name)
    if queue is None or queue.supply is None:
        return sender.is_ours
    supply = queue.supply
    if more:
        supply.known[sender.id] = MAX_REQUEST
    else:
        supply.known.pop(sender.id, None)
    return bool(supply.asked.pop(sender.id, sender.is_ours))


# Time.


def watch(node: NodeState, queue: Queue) -> None:
    """If clients wait on this queue, come back when asking again makes sense."""
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
    """The cluster has grown: clients that wait here may have waited for just that."""
    for queue in node.queues.values():
        watch(node, queue)


def on_queue_due(node: NodeState, queue: Queue) -> None:
    """A queue's timer: its clients still wait, or nobody has used it for long."""
    if queue.waiting:
        lifecycle.mark_unmet(node, queue.name)
    elif lifecycle.drop_queue_if_idle(node, queue):
        return
    idle_at = queue.accessed + lifecycle.QUEUE_IDLE_LIMIT
    node.timers.arm(queue, max(idle_at, node.mono + IDLE_CHECK))
    watch(node, queue)
