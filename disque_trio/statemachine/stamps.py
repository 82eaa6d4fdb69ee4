"""Creation stamps of new jobs. Owns `NodeState.last_made` and `last_number`."""

from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.job import STAMPS
from disque_trio.statemachine.state import NodeState


def next_stamp(node: NodeState) -> tuple[Millis, int]:
    """A creation stamp that is greater than every earlier one, even if the clock is set back."""
    if node.wall > node.last_made:
        node.last_made = node.wall
        node.last_number = 0
    else:
        node.last_number += 1
        if node.last_number == STAMPS:
            node.last_made += 1
            node.last_number = 0
    return node.last_made, node.last_number
