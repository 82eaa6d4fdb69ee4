"""BEGIN: jobs of GETJOB HELD begin (decision 103)."""

from disque_trio.statemachine import tracked_deliveries
from disque_trio.statemachine.base import Reply
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands.parse import with_tokens
from disque_trio.statemachine.state import NodeState


def begin(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """How many begin: not those that are not held here, or not by this delivery."""
    found = tracked_deliveries.held(node, args[1:])
    if None in found:
        # Names of jobs that are held are well formed.
        with_tokens(args[1:])
    return tracked_deliveries.begin(found)
