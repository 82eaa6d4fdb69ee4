"""Queues are dropped: one that is long unused, or all at once (original 6.11).

Writes what `lifecycle` owns: `NodeState.queues`, `ready` and `pending_queues`, `Memory.held`.
"""

from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.lifecycle import QUEUE_IDLE_LIMIT
from disque_trio.statemachine.memory import of_queue
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState


def drop_queue_if_idle(node: NodeState, queue: Queue, limit: Millis = QUEUE_IDLE_LIMIT) -> bool:
    """Forget a queue that is empty, unpaused, without clients and long unused (original 6.11)."""
    if len(queue) or queue.waiting or queue.paused:
        return False
    if node.mono - queue.accessed < limit:
        return False
    queue.sweep()
    _let_go(node, queue)
    del node.queues[queue.name]
    return True


def drop_queues(node: NodeState) -> None:
    """Forget all queues. They have neither jobs nor waiting clients any more."""
    for queue in node.queues.values():
        _let_go(node, queue)
    node.queues.clear()
    node.ready.clear()
    node.pending_queues.clear()


def _let_go(node: NodeState, queue: Queue) -> None:
    node.timers.disarm(queue)
    node.memory.held -= of_queue(queue)
