"""What is measured: the same work in the words of Disque and, for the yardstick, of Redis."""

from typing import Final

import attrs

QUEUE: Final = "bench"
BODY: Final = "ten bytes!"


@attrs.frozen
class Load:
    """One request, sent again and again, `pipeline` of them at a time by each client.

    `share` is its part of the requests that other loads have.
    """

    title: str
    disque: tuple[str, ...]
    redis: tuple[str, ...] = ()
    pipeline: int = 1
    share: float = 1.0


ADD: Final = ("ADDJOB", QUEUE, BODY, "0")
REPLICATED: Final = ("ADDJOB", QUEUE, BODY, "0", "REPLICATE", "3")
PUSH: Final = ("LPUSH", QUEUE, BODY)

ALONE: Final = (
    Load("PING", ("PING",), ("PING",)),
    Load("ADDJOB", ADD, PUSH),
    Load("ADDJOB -P 16", ADD, PUSH, pipeline=16),
    # There are twice as many jobs by now as this takes.
    Load("GETJOB", ("GETJOB", "FROM", QUEUE), ("RPOP", QUEUE)),
)
"""On one node, in this order."""
TOGETHER: Final = (
    Load("ADDJOB REPLICATE 3", REPLICATED, share=0.2),
    Load("ADDJOB REPLICATE 3 -P 16", REPLICATED, pipeline=16, share=0.2),
)
"""On one of three nodes."""
