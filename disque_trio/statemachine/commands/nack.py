"""NACK: jobs are given back as not done; they are queued again, or with DEAD kept as dead."""

from typing import Final

from disque_trio.statemachine import deadletters
from disque_trio.statemachine.base import SYNTAX_ERROR, CommandError, Reply
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands.addjob import NO_PLACE
from disque_trio.statemachine.commands.jobs import give_back, held
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.extensions import MAX_REASON
from disque_trio.statemachine.state import NodeState

_DEAD: Final = b"DEAD"


def nack(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """How many were queued again, or are dead now, and are counted as negative acknowledgements:
    not those that their workers have lost."""
    at = _end_of_ids(args)
    jobs = held(node, args[:at])
    if at < len(args):
        reason = _reason(node, args, at)
        return sum([deadletters.nack(node, job, reason) for job in jobs])
    return sum([give_back(node, job, Cause.NACK) for job in jobs])


def _end_of_ids(args: list[bytes]) -> int:
    """Where the options begin."""
    return next((at for at, word in enumerate(args) if word.upper() == _DEAD), len(args))


def _reason(node: NodeState, args: list[bytes], at: int) -> bytes:
    """What stands behind DEAD."""
    if at == 1:
        raise CommandError(SYNTAX_ERROR + b": DEAD has no job ids before it: NACK id DEAD reason")
    words = args[at + 1 :]
    if len(words) > 1:
        raise CommandError(
            SYNTAX_ERROR + b": the reason behind DEAD is one word, quoted if it has spaces: there"
            b" are %d" % len(words)
        )
    reason = words[0] if words else b""
    if len(reason) > MAX_REASON:
        raise CommandError(
            b"ERR The reason behind DEAD has at most %d bytes: this one has %d"
            % (MAX_REASON, len(reason))
        )
    if not node.config.keeps_extensions:
        raise CommandError(NO_PLACE)
    return reason
