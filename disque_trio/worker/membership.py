"""What the member of a batch leaves for the collector when it has ended: a token."""

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
"""A job that is done within this time at its first delivery finds its batch as it was."""


@attrs.frozen
class Membership:
    """What the headers of a member say."""

    queue: str
    """Of the batch."""
    place: int
    until: float
    """The deadline of the batch, in Unix seconds."""
    copies: Copies
    """Of a token."""
    may_be_cancelled: bool = False
    """Is it a flow, which may be over while its members run?"""

    @classmethod
    def of(cls, headers: Mapping[str, Any]) -> Self | None:
        """None for a job of no batch."""
        match headers.get("batch"):
            case {"id": str(batch), "n": int(place), "ttl": int(ttl), **more}:
                until = more.get("until")
                if not isinstance(until, int | float):
                    until = runtime().now() + ttl - SPARE_S
                copies, is_flow = Copies.of(more), more.get("flow") is True
                return cls(TOKENS + batch, place, until, copies, is_flow)
        return None


async def leave(client: "clients.Client", job: Job[Any], end: End | None) -> None:
    """Leave a token that says how the job has ended, None is done, unless it belongs to no batch or
    to one that is over. Raises `DisqueError`."""
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
    """Is the batch that has this queue over, as far as nodes say, and is its queue empty?"""
    try:
        mark = await key_holder(client, (queue, OVER))
    except DisqueError:  # a node of the original, for example
        return "no"
    if mark is None:
        return "no"
    return "swept" if mark.state == "done-kept" else "yes"


def _may_be_late(job: Job[Any], end: End | None, left: float) -> bool:
    """May the job have run twice, or have been redriven, or is the deadline over? Nobody takes the
    token of a batch that is over."""
    born = created_at(job.key)
    return (
        job.delivery > 1
        or end is not None
        or left < 0
        or job.run.lease_end() <= anyio.current_time()
        or born is None
        or runtime().now() - born > _YOUNG_S
    )
