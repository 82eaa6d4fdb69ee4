"""Paused queues: PAUSE here and from other nodes (original 2.9, 6.8). Owns `Queue.paused`."""

from typing import Final

from disque_trio.statemachine import lifecycle, pressure
from disque_trio.statemachine.base import PAUSE_IN, PAUSE_OUT
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.messages import Pause
from disque_trio.statemachine.state import NodeState

PAUSED: Final = b"PAUSED Queue paused in input, try later"
"""The error of an ADDJOB."""


def set_pause(node: NodeState, name: bytes, bits: int) -> None:
    """Set the queue's pause state. If output is resumed, jobs are delivered at once."""
    bits &= PAUSE_IN | PAUSE_OUT
    if not bits and name not in node.queues:
        return
    queue = lifecycle.queue_for(node, name)
    queue.paused = bits
    if queue.waiting:
        lifecycle.mark_ready(node, queue)
    lifecycle.mark_pending(node, name)


def on_pause(node: NodeState, _sender: Peer, message: Pause) -> None:
    """Handle PAUSE of another node (BCAST). If memory is short, no queue is created for it."""
    if message.queue in node.queues or pressure.level(node) < pressure.WANT:
        set_pause(node, message.queue, message.bits)
