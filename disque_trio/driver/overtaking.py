"""Output that is sent at once, although its batch has to wait for the journal.

These are the messages of failure detection, so that a slow disk does not look like a dead node; and
replies to reads, which depend on no record. The replies to each client remain in order: a read
waits for all earlier requests of the same client. Owns `Client.awaits`.
"""

from typing import Final

from disque_trio.statemachine.chores import ReadVitals
from disque_trio.statemachine.commands.rows import Flag
from disque_trio.statemachine.commands.table import ROWS
from disque_trio.statemachine.outbox import Outbox
from disque_trio.statemachine.watchers import ABOUT_NODES

_WRITERS: Final = frozenset(row.name for row in ROWS if Flag.WRITE in row.flags)


def overtaking(out: Outbox, kept: int, number: int) -> Outbox | None:
    """Remove from the outbox the output that need not wait, and return it; None if there is none.
    The output of batches up to `kept` has been sent. The rest waits for batch `number`, as do later
    replies to the same clients."""
    changing = out.changing
    for client in changing:
        client.awaits = number
    looks = []
    for each in out.replies:
        client = each[0]
        if client.awaits > kept or client in changing or client.command in _WRITERS:
            client.awaits = number
        else:
            looks.append(each)
    if not (looks or out.messages or out.dials or out.lookups or out.chores or out.resumed):
        return None
    early = Outbox()
    if looks:
        early.replies, lookers = looks, dict(looks)
        out.replies = [each for each in out.replies if each[0] not in lookers]
    early.dials, out.dials = out.dials, []
    early.lookups, out.lookups = out.lookups, ()
    early.resumed, out.resumed = out.resumed, []
    early.messages = [each for each in out.messages if isinstance(each[1], ABOUT_NODES)]
    if early.messages:
        out.messages = [each for each in out.messages if not isinstance(each[1], ABOUT_NODES)]
    early.chores = [each for each in out.chores if isinstance(each[1], ReadVitals)]
    if early.chores:
        out.chores = [each for each in out.chores if not isinstance(each[1], ReadVitals)]
    return early
