"""The trace row of a message: its name, its job, its queue, and the rest as text.

The row of a message about several jobs (YOURJOBS) has a job only if there is one; `detail` has all.
"""

from collections.abc import Iterable
from typing import Any, Final

import attrs

from disque_trio.statemachine.base import NodeId
from disque_trio.statemachine.messages import (
    Fail,
    Holders,
    JobsMessage,
    Message,
    Names,
    Suspect,
    name_of,
)

SHORT: Final = 8
"""How many digits of a node ID form its name outside simulated runs, as in the ids of its jobs."""


def short_name(node: NodeId) -> str:
    """The name of a node in rows of live nodes."""
    return node[:SHORT].decode("latin-1")


def names_in(message: Message) -> Names:
    """The short names of the nodes in the message."""
    ids: Iterable[NodeId] = ()
    if isinstance(message, JobsMessage):
        ids = [holder for copy in message.copies for holder in copy.holders]
    elif isinstance(message, Holders):
        ids = message.holders
    elif isinstance(message, Fail | Suspect):
        ids = [message.node]
    return {node: short_name(node) for node in ids}


@attrs.define(eq=False)
class Wording:
    """The message's part of a row."""

    name: str
    job: str = ""
    queue: str = ""
    detail: str = ""


def wording(message: Message, names: Names) -> Wording:
    """The message's part of its row."""
    untyped: Any = message
    if isinstance(message, JobsMessage):
        copies = message.copies
        job = copies[0].id if len(copies) == 1 else b""
        queue = copies[0].queue if copies else b""
    else:
        job, queue = getattr(untyped, "id", b""), getattr(untyped, "queue", b"")
    return Wording(
        name_of(type(message)),
        job.decode("latin-1"),
        queue.decode("utf-8", "replace"),
        untyped.detail(names),
    )
