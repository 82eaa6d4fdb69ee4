"""How much memory replies take."""

from typing import Final

from disque_trio.statemachine.base import Failure, Lengthy, Map, Reply, Set, Spilled, Status

REPLY_BYTES: Final = 64
"""What each value of a reply takes beside its text."""


def weight(reply: Reply) -> int:
    """About how many bytes a reply holds while it waits to be sent."""
    match reply:
        case Status():
            return REPLY_BYTES + len(reply.text)
        case bytes() | Spilled():
            return REPLY_BYTES + len(reply)
        case list():
            return REPLY_BYTES + sum(map(weight, reply))
        case Failure():
            return REPLY_BYTES + len(reply.text)
        case Lengthy():
            return REPLY_BYTES + reply.left()[1]
        case Set():
            return weight(reply.items)
        case Map():
            return sum(weight([key, value]) for key, value in reply.items.items())
        case _:
            return REPLY_BYTES
