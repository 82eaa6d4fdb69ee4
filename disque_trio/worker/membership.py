"""The token that a member of a batch leaves for the collector when it ends."""

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

import anyio
import attrs

from disque_trio import client as clients
from disque_trio.client.errors import DisqueError
from disque_trio.worker import tokens
from disque_trio.worker.context import Job
from disque_trio.worker.copies import Copies
from disque_trio.worker.envelope import created_at
from disque_trio.worker.operating.key_holders import key_holder
from disque_trio.worker.runtime import runtime
from disque_trio.worker.tokens import OVER, SPARE_S, TOKENS, End, Token

_YOUNG_S: Final = 5.0
"""A job that succeeds within this time, at its first delivery, cannot be late for its batch."""


@attrs.frozen
class Membership:
    """The membership of a job in a batch, from its headers."""

    queue: str
    """The queue of the batch."""
    place: int
    until: float
    """The deadline of the batch, in Unix seconds."""
    copies: Copies
    """The replicas and confirmations of a token."""
    may_be_cancelled: bool = False
    """Is it a flow, which may be over while members run?"""

    @classmethod
    def of(cls, headers: Mapping[str, Any]) -> Self | None:
        """The membership of a job; None if it is in no batch."""
        match headers.get("batch"):
            case {"id": str(batch), "n": int(place), "ttl": int(ttl), **more}:
                until = more.get("until")
                if not isinstance(until, int | float):
                    until = runtime().now() + ttl - SPARE_S
                copies, is_flow = Copies.of(more), more.get("flow") is True
                return cls(TOKENS + batch, place, until, copies, is_flow)
        return None


async def leave(client: "clients.Client", job: Job[Any], end: End | None) -> None:
    """Leave a token that states how the job has ended; `end` is None if it succeeded. Does nothing
    if the job is in no batch, or if the batch is over. Raises `DisqueError`."""
    member = Membership.of(job.headers)
    if member is None:
        return
    left = member.until - runtime().now()
    may_be_over = member.may_be_cancelled or _may_be_late(job, end, left)
    if left < -SPARE_S or (may_be_over and await over(client, member.queue) != "no"):
        return
    if end is None:
        token = Token(done=[member.place])
    else:
        token = Token(ended=[(member.place, (end[0], tokens.shortened(end[1])))])
    await client.run(tokens.add(member.queue, token, max(left, 0) + SPARE_S, member.copies))


async def over(client: "clients.Client", queue: str) -> Literal["no", "yes", "swept"]:
    """Is the batch of this queue over, as far as nodes report, and has its queue been emptied?"""
    try:
        mark = await key_holder(client, (queue, OVER))
    except DisqueError:  # a node of the original, for example
        return "no"
    if mark is None:
        return "no"
    return "swept" if mark.state == "done-kept" else "yes"


def _may_be_late(job: Job[Any], end: End | None, left: float) -> bool:
    """May the batch be over: may the job have run twice or have been redriven, or has the deadline
    passed? Tokens of a batch that is over remain in its queue."""
    born = created_at(job.key)
    return (
        job.delivery > 1
        or end is not None
        or left < 0
        or job.run.lease_end() <= anyio.current_time()
        or born is None
        or runtime().now() - born > _YOUNG_S
    )
