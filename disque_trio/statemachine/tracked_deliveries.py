"""Deliveries that have a token, or are tied to a connection (decision 65).

Only jobs whose consumer has requested it have a record here. The record has the last delivery at
this node, and stays until the job has ended, so that a late consumer gets an error.

Owns `NodeState.tracked`, `TrackedDelivery` and `Client.tied`.
"""

import re
from collections.abc import Iterable
from typing import Final

from disque_trio.statemachine.base import (
    DELIVERED,
    JOB_ID_LENGTH,
    LEASED,
    TAKEN,
    CommandError,
    JobId,
    NodeId,
    Reply,
)
from disque_trio.statemachine.client import HELD, META, TIED, Client
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.state import NodeState, TrackedDelivery
from disque_trio.statemachine.suggestions import shown

_TOKEN: Final = re.compile(rb"[0-9a-f]{20}\Z")
_BITS: Final = 48
_FORFEITED: Final = -1


def check_token(token: bytes) -> bytes:
    """The token itself. Raises CommandError BADTOKEN if it is malformed."""
    if not _TOKEN.match(token):
        raise CommandError(
            b"BADTOKEN %b is not a token that GETJOB WITHMETA has answered: 20 hexadecimal digits"
            % shown(token)
        )
    return token


def hand_out(node: NodeState, client: Client, job: Job, wants: int) -> None:
    """Record a delivery to a consumer, in place of an earlier one."""
    supersede(node, job)
    if not wants & (META | TIED):
        return
    token = b""
    if wants & META:
        token = b"%b%012x" % (node.cluster.myself.id[:8], node.rng.getrandbits(_BITS))
    _keep(node, job, token)
    if wants & TIED and job.retry:
        tie(node, client, job, is_held=bool(wants & HELD))


def supersede(node: NodeState, job: Job) -> None:
    """The job is redelivered: invalidate the token of the earlier delivery."""
    delivery = node.tracked.get(job.id)
    if delivery is not None:
        give_up(node, job)
        delivery.token = b""


def adopt(node: NodeState, job: Job, token: bytes) -> None:
    """A consumer has renewed its lease with this token. If the token is unknown here, it is from
    another node or from before a restart; record this consumer's delivery."""
    delivery = node.tracked.get(job.id)
    if delivery is None:
        _keep(node, job, token)
    elif delivery.token != token:
        delivery.token, delivery.attempt = token, _attempt(job)
        delivery.is_given_back = False


def follow(node: NodeState, job: Job, sender: NodeId) -> None:
    """The sender has enqueued or postponed the job. If the token is from the same node, the message
    may be older than that delivery, so the token stays valid."""
    delivery = node.tracked.get(job.id)
    if delivery is not None and delivery.token.startswith(sender[:8]):
        delivery.attempt = _attempt(job)


def _keep(node: NodeState, job: Job, token: bytes) -> None:
    before = node.tracked.get(job.id)
    was_unbegun = before is not None and before.was_unbegun
    node.tracked[job.id] = TrackedDelivery(token, _attempt(job), was_unbegun=was_unbegun)


def _attempt(job: Job) -> int:
    return job.nacks + job.deliveries + job.snoozes


def described(node: NodeState, job: Job) -> list[Reply]:
    """The fields of WITHMETA about the tracked delivery."""
    delivery = node.tracked[job.id]
    if delivery.was_unbegun:
        return [b"token", delivery.token, b"unbegun", 1]
    return [b"token", delivery.token]


def is_lost(node: NodeState, job: Job, token: bytes) -> bool:
    """Has the job been returned, or delivered to another consumer, since the delivery with this
    token?

    A token of this node is compared with the last delivery here. The job is also lost if another
    node has enqueued and delivered it since. For a token of another node, or of an earlier process,
    the only test is whether this node has delivered the job itself.
    """
    delivery = node.tracked.get(job.id)
    if delivery is not None and delivery.token == token:
        is_with_others = bool(job.flags & TAKEN) and delivery.attempt != _attempt(job)
        return delivery.is_given_back or is_with_others
    if delivery is not None and token.startswith(node.cluster.myself.id[:8]):
        return True
    return job.flags & (LEASED | DELIVERED) == LEASED | DELIVERED


def give_back(node: NodeState, job_id: JobId, token: bytes) -> None:
    """The consumer with this token returns the job, so a later WORKING with the token fails."""
    delivery = node.tracked.get(job_id)
    if delivery is not None and token and delivery.token == token:
        delivery.is_given_back = True


def end(node: NodeState, job: Job) -> None:
    """Drop the record of a job that has ended, or has left this node."""
    untie(node, job)
    node.tracked.pop(job.id, None)


# Ties.


def tie(node: NodeState, client: Client, job: Job, *, is_held: bool = False) -> None:
    """Tie the lease to this connection. `is_held`: the job is held until BEGIN."""
    delivery = node.tracked[job.id]
    delivery.client, delivery.is_held = client, is_held
    if client.tied is None:
        client.tied = {}
    client.tied[job.id] = job


def untie(node: NodeState, job: Job, but: Client | None = None) -> None:
    """Untie the job from its connection, unless that is `but`."""
    delivery = node.tracked.get(job.id)
    if delivery is None:
        return
    delivery.is_orphan = False
    client = delivery.client
    if client is not None and client is not but:
        delivery.client = None
        if client.tied is not None:
            client.tied.pop(job.id, None)


def give_up(node: NodeState, job: Job) -> None:
    """The delivery has ended, or may have ended: the job is queued, postponed, or leased by another
    worker."""
    delivery = node.tracked.get(job.id)
    if delivery is not None:
        untie(node, job)
        delivery.is_held = False


def orphan(node: NodeState, client: Client) -> list[Job]:
    """The connection has ended. Returns the jobs that were tied to it."""
    jobs = list((client.tied or {}).values())
    client.tied = None
    for job in jobs:
        delivery = node.tracked[job.id]
        delivery.client, delivery.is_orphan = None, True
    return jobs


def is_orphan(node: NodeState, job: Job) -> bool:
    """Has its tie ended without a renewal since?"""
    delivery = node.tracked.get(job.id)
    return delivery is not None and delivery.is_orphan


# Jobs that are held (decision 103).


def held(node: NodeState, words: Iterable[bytes]) -> list[TrackedDelivery | None]:
    """The held deliveries for these words (each an id, optionally with a token); None for each word
    without one."""
    find = node.tracked.get
    found: list[TrackedDelivery | None] = []
    for word in words:
        delivery = find(word[:JOB_ID_LENGTH])
        if delivery is not None and delivery.is_held:
            named = word[JOB_ID_LENGTH:]
            found.append(delivery if not named or named == b"@" + delivery.token else None)
        else:
            found.append(None)
    return found


def begin(found: list[TrackedDelivery | None]) -> int:
    """Begin these held deliveries. Returns their number."""
    begun = 0
    for delivery in found:
        if delivery is not None and delivery.is_held:
            delivery.is_held = False
            begun += 1
    return begun


def is_held(node: NodeState, job: Job) -> bool:
    """Is the job held by its last consumer here?"""
    delivery = node.tracked.get(job.id)
    return delivery is not None and delivery.is_held


def forfeit(node: NodeState, job: Job) -> None:
    """A held job is requeued without having begun, which does not count as a delivery. So a later
    delivery by another node invalidates the token regardless of counts. The next consumers are
    informed (`unbegun`), because BEGIN may have been late."""
    delivery = node.tracked[job.id]
    delivery.attempt, delivery.was_unbegun = _FORFEITED, True
