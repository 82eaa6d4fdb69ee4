"""Refused requests, by the first word of the error: errors caused by the state of the node, a queue
or the cluster, not by a mistake of the client.

One table, for INFO, metrics and `disque-trio doctor`.
"""

from types import MappingProxyType
from typing import Final

import attrs


@attrs.frozen
class Refusal:
    """The explanation of one cause, and advice."""

    why: str
    advice: str
    is_problem: bool = True
    """Does it indicate a malfunction? Otherwise it is intended by an operator or client."""


REFUSALS: Final = MappingProxyType(
    {
        b"NOREPL": Refusal(
            "too few nodes could store the copies of a job",
            "start the nodes that are gone, or add some; or request fewer copies: REPLICATE and "
            "SYNC of ADDJOB, default-replicate, default-sync",
        ),
        b"OOM": Refusal("it was out of memory", "add consumers, add nodes, or raise maxmemory"),
        b"MISCONF": Refusal(
            "its append-only file could not be written",
            "see its log: the disk is full or broken. It recovers by itself once it can write",
        ),
        b"DUPLICATEID": Refusal(
            "another process has its node ID", "stop the one that was started from a copy"
        ),
        b"LOADING": Refusal(
            "it was loading its append-only file", "wait until it is loaded", is_problem=False
        ),
        b"LEAVING": Refusal(
            "it is leaving the cluster",
            "stop it when it has no jobs, or keep it with CLUSTER LEAVING no",
            is_problem=False,
        ),
        b"PAUSED": Refusal(
            "the input of a queue is paused",
            "PAUSE queue none ends the pause ('disque-trio queues resume')",
            is_problem=False,
        ),
        b"MAXLEN": Refusal(
            "a queue had as many jobs as MAXLEN of ADDJOB allows",
            "add consumers, or raise MAXLEN",
            is_problem=False,
        ),
    }
)
